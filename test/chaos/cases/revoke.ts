import { ask } from '../../support/http.ts';
import { createKey } from '../../support/tenants.ts';
import { callBody, openScene, type Scene, stopAndCompare } from '../environment.ts';
import { inParallel, startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** Keys are revoked at one core while they are in use at both: no request that is sent after the answer is accepted. */
export const revoke: Case = {
  name: 'revoke',
  title: 'revoked here, used there',
  quickDatabases: ['postgres'],
  async attack(trial) {
    const scene = await openScene(trial);
    const urls = [scene.core().url, (await scene.start()).url] as const;
    const load = startLoad(scene, { placers: trial.isQuick ? 4 : 8, url: (n) => urls[n % 2 ? 0 : 1] });
    await inParallel(trial.calls(10, 1_000), 4, (n) => revokeInUse(scene, urls, n));
    await load.stop();
    await stopAndCompare(scene);
  },
};

async function revokeInUse(scene: Scene, urls: readonly [string, string], n: number): Promise<void> {
  const { ledger, campaignId, cookie } = scene;
  const { id, keyValue } = await createKey(urls[0], cookie);
  let isUsed = true;
  let turn = 0;
  const use = () => ledger.place(urls[turn % 2 ? 0 : 1], campaignId, keyValue, callBody(`revoke-${n}-${turn++}`));
  const using = Array.from({ length: 3 }, async () => {
    while (isUsed) await use();
  });
  await use();
  const { status } = await ask('DELETE', `${urls[n % 2 ? 0 : 1]}/console/api-keys/${id}`, { cookie });
  if (status === 204) ledger.revoke(keyValue);
  else ledger.fail(`a revoke was answered ${status}`);
  for (let times = 0; times < 4; times++) await use();
  isUsed = false;
  await Promise.all(using);
}
