import { offsetAt } from '#contract/calendar.ts';
import { oneDay } from '../../instant.ts';

export const oneMinute = 60_000;

/** A time zone's offset from UTC, in ms, and the instant until which it certainly stays the same. */
type Offset = { ms: number; until: number };

/** The offset at the start of a UTC day, and the change if there is one on that day: when, and to which offset. */
type DayOffsets = { first: number; change: { at: number; ms: number } | null };

/** Looking up an offset takes much longer than everything else, so each zone's days are remembered, up to this many. */
const maxDays = 20_000;
const days = new Map<string, DayOffsets>();

export function getOffset(at: number, timeZone: string): Offset {
  const day = Math.floor(at / oneDay);
  const key = `${day} ${timeZone}`;
  let offsets = days.get(key);
  if (!offsets) {
    if (days.size >= maxDays) days.clear();
    offsets = findOffsets(day * oneDay, timeZone);
    days.set(key, offsets);
  }
  const { first, change } = offsets;
  const end = (day + 1) * oneDay;
  if (change === null) return { ms: first, until: end };
  return at < change.at ? { ms: first, until: change.at } : { ms: change.ms, until: end };
}

/** No zone changes its clocks twice within a day. */
function findOffsets(from: number, timeZone: string): DayOffsets {
  const offset = (at: number) => offsetAt(at, timeZone) * oneMinute;
  const first = offset(from);
  const last = offset(from + oneDay - 1);
  if (first === last) return { first, change: null };
  let before = from;
  let after = from + oneDay - 1;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offset(middle) === first) before = middle;
    else after = middle;
  }
  return { first, change: { at: after, ms: last } };
}
