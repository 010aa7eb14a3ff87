import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { Duration, type DurationLike } from 'luxon';
import { instant, type Millis, plus } from '../../core/domain/instant.ts';
import type { Clock, Randomness } from '../../core/domain/ports.ts';

export type FakeClock = Clock & {
  set(instant: string): void;
  advance(by: DurationLike): void;
};

/** Creates a clock that stands still until it's moved. */
export function fakeClock(start = '2026-11-21T09:00:00.000Z'): FakeClock {
  let now = at(start);
  return {
    standsForDatabase: true,
    now: () => now,
    set: (instant) => {
      now = at(instant);
    },
    advance: (by) => {
      now = plus(now, Duration.fromDurationLike(by).toMillis());
    },
  };
}

export function at(text: string): Millis {
  return instant(Date.parse(text));
}

/** Bounds that include every ID, for IDs that don't follow the test's clock. */
export const unknownIds = { lowestId: '', highestId: '~' };

/** Creates identifiers that contain the machine's time, whatever a test's own clock says. */
export const testRandomness: Randomness = { bytes: (size) => randomBytes(size), id: nextId, idsAround: () => unknownIds };

let lastId = '';

/** Returns IDs in ascending order, even within a millisecond, so that a list's order doesn't depend on the speed of the machine. */
function nextId(): string {
  const id = randomUUIDv7();
  // If the clock hasn't moved on, or was set back, only the digits after the time and the version count on.
  lastId = id > lastId ? id : `${lastId.slice(0, 24)}${(Number.parseInt(lastId.slice(24), 16) + 1).toString(16).padStart(12, '0')}`;
  return lastId;
}
