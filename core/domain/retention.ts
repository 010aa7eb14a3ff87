import type { DateTime } from 'luxon';
import type { Clock } from './ports.ts';

export type RetentionStore = {
  /** Calls that ended before, with contact data still there. */
  countErasable(endedBefore: DateTime): Promise<number>;
  /** Erases phone number, name, zone and variables of some of them. @returns of how many */
  erase(endedBefore: DateTime, limit: number): Promise<number>;
};

const callsAtOnce = 500;

/** Erases the contact data of calls that ended more than so many days ago. What became of them stays. @returns of how many calls */
export async function eraseOldContacts(store: RetentionStore, clock: Clock, days: number): Promise<number> {
  const endedBefore = clock.now().minus({ days });
  let erased = 0;
  for (;;) {
    // In small steps, so that placed calls do not have to wait for the writer.
    const step = await store.erase(endedBefore, callsAtOnce);
    erased += step;
    if (step < callsAtOnce) return erased;
  }
}
