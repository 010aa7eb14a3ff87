import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { DateTime, type DurationLike } from 'luxon';
import type { Clock, Randomness } from '../../core/domain/ports.ts';

export type FakeClock = Clock & {
  set(instant: string): void;
  advance(by: DurationLike): void;
};

/** A clock that stands still until it's moved. */
export function fakeClock(start = '2026-11-21T09:00:00.000Z'): FakeClock {
  let now = at(start);
  return {
    now: () => now,
    millis: () => now.toMillis(),
    set: (instant) => {
      now = at(instant);
    },
    advance: (by) => {
      now = now.plus(by);
    },
  };
}

export function at(instant: string): DateTime<true> {
  const parsed = DateTime.fromISO(instant, { zone: 'utc' });
  if (!parsed.isValid) throw new Error(`${instant} isn't a valid timestamp.`);
  return parsed;
}

/** Its identifiers contain the machine's time, whatever a test's own clock says. */
export const testRandomness: Randomness = { bytes: (size) => randomBytes(size), id: () => randomUUIDv7(), firstIdAt: () => null };
