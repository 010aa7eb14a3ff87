import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { Duration, type DurationLike } from 'luxon';
import type { Timing } from '../../cli/client/timing.ts';
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

/** What happens while a command waits. */
export type OnWait = (milliseconds: number, signal?: AbortSignal) => Promise<void> | void;

/** A clock on which waiting takes no time. The random numbers make delays as long as they can be. */
export function fakeTiming(onWait: OnWait = () => undefined): Timing {
  let elapsed = 0;
  return {
    ...{ now: Date.now, elapsed: () => elapsed, random: () => 1 },
    async wait(milliseconds, signal) {
      elapsed += milliseconds;
      await onWait(milliseconds, signal);
    },
  };
}

/** Waits until the command no longer wants to wait. */
export async function untilAborted(_: number, signal?: AbortSignal): Promise<void> {
  if (signal && !signal.aborted) await once(signal, 'abort');
}
