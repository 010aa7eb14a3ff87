import { IANAZone } from 'luxon';

/** No zone changes its clocks twice within this time. */
const step = 14 * 24 * 3_600_000;

/** Finds the instants, to the minute, at which a zone's clocks change. */
export function findClockChanges(zone: string, from: number, to: number): number[] {
  const iana = IANAZone.create(zone);
  const look = (at: number) => ({ at, offset: iana.offset(at) });
  type Look = ReturnType<typeof look>;
  const find = (start: Look, end: Look): number[] => {
    if (start.offset === end.offset) return [];
    if (end.at - start.at <= 60_000) return [end.at];
    const middle = look((start.at + end.at) / 2);
    return [...find(start, middle), ...find(middle, end)];
  };
  const looks = Array.from({ length: Math.ceil((to - from) / step) + 1 }, (_, n) => look(from + n * step));
  return looks.slice(1).flatMap((end, n) => find(looks[n] ?? end, end));
}
