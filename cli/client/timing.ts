import { setTimeout as wait } from 'node:timers/promises';

/** Time and randomness, replaced in tests. */
export type Timing = {
  now(): number;
  /** In ms since some moment. Unlike `now`, it isn't affected by changes of the clock. */
  elapsed(): number;
  /** From 0 to 1. */
  random(): number;
  /** Resolves early when the signal aborts. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>;
};

export const systemTiming: Timing = {
  now: Date.now,
  elapsed: () => performance.now(),
  random: Math.random,
  wait: (milliseconds, signal) => wait(milliseconds, undefined, signal && { signal }).catch(() => undefined),
};
