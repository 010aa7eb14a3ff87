/** An instant: milliseconds since 1970 in UTC. It has its own type so that durations and counts can't be mistaken for instants. */
export type Millis = number & { readonly unit: 'ms' };

/** @throws RangeError if a Date can't hold it, such as NaN */
export function instant(ms: number): Millis {
  if (!isInstant(ms)) throw new RangeError(`${ms} isn't a valid timestamp.`);
  return ms;
}

/** The instant that many milliseconds later, or earlier if they're negative. */
export function plus(at: Millis, ms: number): Millis {
  return instant(at + ms);
}

/** In ms. In UTC, all days have the same length. */
export const oneDay = 86_400_000;

/** The limit of ECMAScript's Date. */
function isInstant(ms: number): ms is Millis {
  return Math.abs(ms) <= 8.64e15;
}
