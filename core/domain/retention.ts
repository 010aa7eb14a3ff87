import type { DateTime } from 'luxon';
import type { DialingStore } from './dialing.ts';
import type { Clock } from './ports.ts';

export type RetentionStore = {
  /** Calls that ended before, with contact data still there. */
  countErasable(endedBefore: DateTime): Promise<number>;
  /** Erases phone number, name, zone, variables and the provider's detail, in short steps. @returns of how many calls */
  erase(endedBefore: DateTime, signal?: AbortSignal): Promise<number>;
};

/** Erases the contact data of calls that ended more than so many days ago. What became of them stays. @returns of how many calls */
export function eraseOldContacts(store: RetentionStore, clock: Clock, days: number, signal?: AbortSignal): Promise<number> {
  return store.erase(clock.now().minus({ days }), signal);
}

/** Ends calls that no dialer has ended in their time: retention counts from then. @returns how many */
export async function endOverdueCalls(store: DialingStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  const now = clock.millis();
  await store.recoverFromClockStep(now, signal);
  return (await store.lapse(now, signal)) + (await store.endForgotten(now, signal));
}
