/** An instant: milliseconds since 1970 in UTC. It has its own type so that durations and counts can't be mistaken for instants. */
export type Millis = number & { readonly unit: 'ms' };

/** Converts a number to an instant. @throws RangeError if a Date can't hold it (for example, NaN) */
export function instant(ms: number): Millis {
  if (!isInstant(ms)) throw new RangeError(`${ms} isn't a valid timestamp.`);
  return ms;
}

/** Returns the instant this many milliseconds later, or earlier if `ms` is negative. */
export function plus(at: Millis, ms: number): Millis {
  return instant(at + ms);
}

/** In ms. All days in UTC have the same length. */
export const oneMinute = 60_000;
export const oneHour = 3_600_000;
export const oneDay = 86_400_000;

/** In ms. In all of today's time zones, days begin on a quarter-hour, so calls and key use are counted by quarter-hours. */
export const quarterHour = 900_000;

/** Whether ECMAScript's Date can hold the number. */
function isInstant(ms: number): ms is Millis {
  return Math.abs(ms) <= 8.64e15;
}
