import type { CallView } from '#contract/console/calls.ts';

/** Returns the time from dialing to the end; null if a call wasn't dialed or hasn't ended. */
export function callDurationMs({ dialedAt, endedAt }: Pick<CallView, 'dialedAt' | 'endedAt'>): number | null {
  return dialedAt === null || endedAt === null ? null : Math.max(0, Date.parse(endedAt) - Date.parse(dialedAt));
}
