import { createKey } from '../support/tenants.ts';
import { describeAttacks, isQuick, openScene, startCrowd, startLoad, type Trial } from './attack.ts';

/**
 * Opens a scene with two cores. @returns the scene, and a function that returns one core's address for even numbers, and the other's for
 * odd ones
 */
async function openTwoCores(trial: Trial) {
  const scene = await openScene(trial);
  const urls = [scene.core().url, (await scene.start()).url] as const;
  return { ...scene, url: (n: number) => urls[n % 2 ? 0 : 1] };
}

/** Keys are revoked on one core while they're in use on both: no request sent after the response may be accepted. */
async function revoke(trial: Trial): Promise<void> {
  const scene = await openTwoCores(trial);
  const { url } = scene;
  const load = startLoad(scene, { placers: isQuick ? 4 : 8, url });
  const revokeOne = async (n: number) => {
    const { id, keyValue: key } = await createKey(url(1), scene.cookie);
    let turn = 0;
    const use = () => scene.place(`revoke-${n}-${turn}`, { key, url: url(turn++) });
    const using = startCrowd(trial, 3, use);
    await use();
    await scene.revoke(id, key, url(n));
    for (let times = 0; times < 4; times++) await use();
    await using.stop();
  };
  await startCrowd(trial, 4, revokeOne, isQuick ? 10 : 1_000).ended();
  await load.stop();
  await scene.stopAndCompare();
}

/**
 * While both cores use a key, one core limits it to other addresses and then lifts the limit. The long version has 10,000 requests that are
 * in progress during such a change.
 */
async function narrow(trial: Trial): Promise<void> {
  const scene = await openTwoCores(trial);
  const { ledger, cookie, url } = scene;
  const changeLimits = async (lane: number) => {
    const { id, keyValue: key } = await createKey(url(1), cookie);
    const limit = async (n: number, addresses: string[] | null) => {
      const { status } = await scene.change('PATCH', `${url(n)}/console/api-keys/${id}`, { cookie, body: { addresses } });
      if (status !== 200) ledger.fail(`limiting a key got ${status}`);
    };
    for (let n = 0; n < (isQuick ? 3 : 85); n++) {
      const use = (turn: number) => scene.place(`narrow-${lane}-${n}-${turn}`, { key, url: url(turn) });
      ledger.revoked.delete(key);
      await limit(n, null);
      for (const turn of [0, 1]) if ((await use(turn)).status !== 202) ledger.fail('a key that is allowed everywhere was refused');
      const using = Array.from({ length: 30 }, (_, turn) => use(turn + 2));
      await limit(n + 1, ['192.0.2.0/24']);
      ledger.revoked.add(key);
      await Promise.all([...using, use(32), use(33)]);
    }
  };
  await startCrowd(trial, 4, changeLimits, 4).ended();
  await scene.stopAndCompare();
}

describeAttacks(
  { name: 'revoke', title: 'keys revoked on one core and used on another', run: revoke },
  { name: 'narrow', title: 'keys limited to other addresses on one core and used on another', quickOn: 'postgres', run: narrow },
);
