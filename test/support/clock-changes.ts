import { IANAZone } from 'luxon';

/** No zone changes its clocks twice within this time. */
const step = 14 * 24 * 3_600_000;

/** Finds the instants, to the minute, at which a zone's clocks change. */
export function findClockChanges(zone: string, from: number, to: number): number[] {
  const iana = IANAZone.create(zone);
  const find = (start: number, end: number): number[] => {
    if (iana.offset(start) === iana.offset(end)) return [];
    const middle = (start + end) / 2;
    return end - start <= 60_000 ? [end] : [...find(start, middle), ...find(middle, end)];
  };
  const starts = Array.from({ length: Math.ceil((to - from) / step) }, (_, n) => from + n * step);
  return starts.flatMap((start) => find(start, start + step));
}
