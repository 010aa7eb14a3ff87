import { setTimeout as pause } from 'node:timers/promises';
import { createKey, signIn } from '../../support/tenants.ts';
import { callBody, callsIn, eventually, openScene, stopAndCompare } from '../environment.ts';
import { inParallel } from '../load.ts';
import { takesAfter } from '../provider.ts';
import type { Case } from '../run.ts';

/** Cancels against two dialers: each call is cancelled or handed off, never both, never neither. */
export const races: Case = {
  name: 'races',
  title: 'cancels racing with two dialers',
  quickDatabases: ['postgres'],
  async attack(trial) {
    const scene = await openScene(trial);
    const { ledger, campaignId, key, provider } = scene;
    const urls = [scene.core().url, (await scene.start()).url] as const;
    const dialed = new Set<string>();
    await inParallel(trial.calls(200, 5_000), 32, async (n) => {
      const body = callBody(`race-${n}`);
      const { contactId } = await ledger.place(urls[n % 2 ? 0 : 1], campaignId, key, body);
      const { status } = await ledger.cancel(urls[n % 3 ? 0 : 1], campaignId, key, body.requestId);
      if (status === 409 && contactId !== null) dialed.add(contactId);
      else if (status !== 200) ledger.fail(`a cancel was answered ${status}`);
    });
    await eventually(() => [...dialed].every((contactId) => provider.calls.of(contactId) > 0), 30_000);
    const neither = [...dialed].filter((contactId) => provider.calls.of(contactId) === 0).length;
    if (neither > 0) ledger.fail(`${neither} calls are neither cancelled nor dialed`);
    ledger.note(`${ledger.cancelled.size} won by cancel, ${dialed.size} by the dialer`);
    await stopAndCompare(scene);
  },
};

/** One account's flood, and another's single calls in the middle of it, which do not wait for it to end. */
export const flood: Case = {
  name: 'flood',
  title: 'one account flooding the queue of another',
  quickDatabases: ['postgres'],
  async attack(trial) {
    const scene = await openScene(trial, { manner: takesAfter(50) });
    const { ledger, provider, tenants } = scene;
    const { url } = scene.core();
    const other = await createKey(url, await signIn(url, 'oda@example.com'));
    const count = trial.calls(600, 8_000);
    const flooding = inParallel(count, 64, async (n) => {
      const { status } = await ledger.place(url, scene.campaignId, scene.key, callBody(`flood-${n}`));
      if (status !== 202) ledger.note(`a call of the flood was answered ${status}`);
    });
    await eventually(() => provider.arrivals.size >= 50, 20_000);
    const waits: number[] = [];
    for (let n = 0; n < (trial.isQuick ? 5 : 20); n++) {
      const { contactId } = await ledger.place(url, tenants.otherCampaign.id, other.keyValue, callBody(`single-${n}`));
      const placedAt = performance.now();
      const isDialed = await eventually(() => contactId !== null && provider.arrivals.has(contactId), 10_000);
      if (!isDialed) ledger.fail('a single call waited behind the flood for more than 10 s');
      waits.push((provider.arrivals.get(contactId ?? '') ?? performance.now()) - placedAt);
    }
    const queued = (await callsIn(scene.database)).filter(({ state }) => state === 'queued').length;
    await flooding;
    ledger.note(`with ${queued} calls queued, single calls were handed off after ${Math.round(Math.max(...waits))} ms at the most`);
    await pause(500);
    await stopAndCompare(scene);
  },
};
