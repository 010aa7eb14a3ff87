import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { makeKeyValue } from '#contract/key-value.ts';
import { ask } from '../../support/http.ts';
import { createKey, onDemand, openDirect, placeCall, signIn } from '../../support/tenants.ts';
import { callBody, openScene, type Scene, stopAndCompare } from '../environment.ts';
import type { Case } from '../run.ts';

/** Another key, strangers and users of the console do all they can at once: a key that places a call now and then is served as always. */
export const lanes: Case = {
  name: 'lanes',
  title: 'a quiet key beside floods of another key, of unknown keys, and of slow searches of four users',
  async attack(trial) {
    const scene = await openScene(trial);
    const { ledger, campaignId, key, cookie, tenants } = scene;
    const { url } = scene.core();
    const quiet = await createKey(url, cookie);
    await endedCalls(scene, quiet.id, trial.isQuick ? 20_000 : 300_000);
    const searchers = await Promise.all(Array.from({ length: 4 }, () => signIn(url, tenants.users.account.email)));
    let isOver = false;
    let disturbances = 0;
    const all = (width: number, disturb: () => Promise<unknown>) =>
      Array.from({ length: width }, async () => {
        while (!isOver) {
          await disturb().catch(() => undefined);
          disturbances++;
        }
      });
    const search = `${url}/console/campaigns/${campaignId}/calls?search=nobody-has-this`;
    const floods = [
      ...all(trial.isQuick ? 32 : 128, () => placeCall(url, campaignId, key)),
      ...all(16, () => ask('POST', onDemand(url, campaignId), { key: makeKeyValue(randomBytes), body: {} })),
      ...searchers.flatMap((searcher) => all(2, () => ask('GET', search, { cookie: searcher }))),
    ];
    let slowest = 0;
    for (let n = 0; n < (trial.isQuick ? 50 : 500); n++) {
      const startedAt = performance.now();
      const { status } = await ledger.place(url, campaignId, quiet.keyValue, callBody(`quiet-${n}`));
      slowest = Math.max(slowest, performance.now() - startedAt);
      if (status !== 202) ledger.fail(`a call of the quiet key was answered ${status}`);
      await pause(20);
    }
    isOver = true;
    await Promise.all(floods);
    ledger.note(`${disturbances} requests of others; the quiet key waited for ${Math.round(slowest)} ms at the most`);
    await stopAndCompare(scene);
  },
};

/** What a search has to look through. */
async function endedCalls({ database, campaignId, tenants }: Scene, keyId: string, count: number): Promise<void> {
  const direct = await openDirect(database);
  const of = { campaign_id: campaignId, account_id: tenants.account.id, api_key_id: keyId, state: 'completed', placed_at: 1, ended_at: 1 };
  const rows = Array.from({ length: count }, (_, n) => ({ ...of, contact_id: `old-${n}`, request_id: `old-${n}`, name: 'Ada' }));
  await direct.storage.database.write.batchInsert('calls', rows, 100);
  await direct.close();
}
