import { limits } from '#contract/limits.ts';
import type { Clock, DialingStore, RetentionStore } from './ports.ts';

/** Erases the contact data of calls that ended more than `days` ago, and keeps their states. @returns of how many calls */
export function eraseOldContacts(store: RetentionStore, clock: Clock, days: number, signal?: AbortSignal): Promise<number> {
  return store.erase(clock.now().minus({ days }), signal);
}

/** Ends calls that no dialer has ended in time, so that their retention begins. @returns how many */
export async function endOverdueCalls(store: DialingStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  const now = clock.millis();
  await store.recoverFromClockStep(now, signal);
  return (await store.lapse(now, signal)) + (await store.endForgotten(now, signal));
}

/** Deletes what charts have counted before their first day, in whatever zone that is. @returns how many counts */
export function forgetOldCounts(store: RetentionStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  return store.forgetCounts(clock.now().minus({ days: limits.chartDays + 1 }), signal);
}
