import { setTimeout as pause } from 'node:timers/promises';
import { openScene, stopAndCompare, type Trial, waitForNone } from '../environment.ts';
import { leaseClock } from '../faults.ts';
import { startLoad } from '../load.ts';
import { failsAndDrops, reportCompleted } from '../provider.ts';
import type { Case } from '../run.ts';

/** A provider that fails and drops answers, and a core that is killed again and again. Each call comes to exactly one end. */
async function killAgainAndAgain(trial: Trial, deduplicates: boolean): Promise<void> {
  const leases = leaseClock(trial);
  const environment = { DIALER_CONCURRENCY: '50', ...leases.environment };
  const scene = await openScene(trial, { environment, manner: failsAndDrops, deduplicates });
  let isOver = false;
  trial.cleanup.defer(() => {
    isOver = true;
  });
  scene.provider.onTaken(async (handoffId) => {
    // Later than the next try after a lost answer: an outcome would end the call before it.
    await pause(1_500);
    while (!isOver && !(await reportCompleted(scene.core().url, handoffId))) await pause(200);
  });
  const count = trial.calls(150, 2_000);
  const kills = trial.isQuick ? 2 : 20;
  const load = startLoad(scene, { every: 10, stopAt: count });
  for (let kill = 1; kill <= kills; kill++) {
    await load.more(Math.floor(count / (kills + 1)), 60_000);
    await scene.stop('SIGKILL');
    await scene.start();
  }
  await load.more(count, 60_000);
  await load.stop();
  // What was under way in a killed core waits for its lease; what failed, for its next try.
  await leases.passLease();
  const unended = await waitForNone(scene, ['queued', 'dialing'], trial.isQuick ? 30_000 : 120_000);
  if (unended > 0) trial.ledger.fail(`${unended} calls have come to no end`);
  const found = await stopAndCompare(scene);
  const states = Object.groupBy(found, ({ state }) => state);
  trial.ledger.note(
    `${kills} kills: ${Object.entries(states)
      .map(([state, calls]) => `${calls?.length} ${state}`)
      .join(', ')}`,
  );
}

export const kills: Case = {
  name: 'kills',
  title: 'killed again and again, with a provider that does not de-duplicate',
  attack: (trial) => killAgainAndAgain(trial, false),
};

export const killsDeduplicated: Case = {
  name: 'kills-deduplicated',
  title: 'killed again and again, with a provider that de-duplicates',
  quickDatabases: ['sqlite'],
  attack: (trial) => killAgainAndAgain(trial, true),
};
