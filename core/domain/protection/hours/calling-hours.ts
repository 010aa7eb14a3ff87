import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { instant, type Millis, oneDay } from '../../instant.ts';
import { getSchedule, type Schedule } from './hours-rules.ts';
import { getOffset, oneMinute } from './local-time.ts';

export { selectRules } from './hours-rules.ts';

/** Openings later than this aren't considered. */
export const maxDaysAhead = 31;

/**
 * Finds when someone who may be in any of the zones can be called.
 *
 * @param input.rules from {@link selectRules}
 * @returns 'open' if all zones are open at `from`; otherwise, the next instant at which they are. Null if there's none within 31 days, or
 * no zone
 */
export function findOpening(input: { rules: readonly HoursRule[]; zones: readonly string[]; from: Millis }): Opening {
  const { rules, zones, from } = input;
  const ofRules = cachedOpenings.get(rules) ?? new WeakMap<readonly string[], CachedOpening>();
  cachedOpenings.set(rules, ofRules);
  const cached = ofRules.get(zones);
  if (cached && from >= cached.from && from < cached.until) return cached.opening;
  const opening = searchOpening(input);
  // The result stays the same until the opening, or until the end of the minute.
  const minute = from - (from % oneMinute);
  const valid = typeof opening === 'number' ? { from, until: opening } : { from: minute, until: minute + oneMinute };
  ofRules.set(zones, { opening, ...valid });
  return opening;
}

type Opening = 'open' | Millis | null;

/** An opening that's valid for all instants from `from` until `until`. */
type CachedOpening = { opening: Opening; from: number; until: number };

/**
 * Results are remembered, because a search takes longer than everything else for a call, and most calls have the same rules, zones and
 * minute as an earlier one. Windows, offsets and clock changes all start at full minutes.
 */
const cachedOpenings = new WeakMap<readonly HoursRule[], WeakMap<readonly string[], CachedOpening>>();

function searchOpening({ rules, zones, from }: Parameters<typeof findOpening>[0]): Opening {
  if (zones.length === 0) return null;
  const schedule = getSchedule(rules);
  const limit = from + maxDaysAhead * oneDay;
  for (let at: number = from; at < limit; ) {
    let latest = at;
    for (const zone of zones) latest = findOpeningIn(schedule, zone, latest, limit);
    if (latest === at) return at === from ? 'open' : instant(at);
    at = latest;
  }
  return null;
}

/**
 * Returns the first instant at which one zone is open. Both that instant and the one a minute later must be within a window, so that the
 * phone doesn't ring when the window has just closed.
 *
 * @returns `limit` or later if there's none
 */
function findOpeningIn(schedule: Schedule, zone: string, from: number, limit: number): number {
  let at = from;
  while (at < limit) {
    const start = findWindow(schedule, zone, at, limit);
    if (findWindow(schedule, zone, start + oneMinute, limit + oneMinute) === start + oneMinute) return start;
    at = start + oneMinute;
  }
  return at;
}

/** Returns the first instant within a window, or `limit`. */
function findWindow(schedule: Schedule, zone: string, from: number, limit: number): number {
  for (let at = from; at < limit; ) {
    // Until the offset changes, local time and UTC differ by a constant.
    const { ms, until } = getOffset(at, zone);
    const local = findLocalWindow(schedule, at + ms, until + ms);
    if (local !== null) return local - ms;
    at = until;
  }
  return limit;
}

/** As {@link findWindow}, in ms of local time. */
function findLocalWindow(schedule: Schedule, from: number, before: number): number | null {
  for (let day = Math.floor(from / oneDay); day * oneDay < before; day++) {
    const midnight = day * oneDay;
    const next = schedule(day).find(({ to }) => midnight + to * oneMinute > from);
    if (!next) continue;
    const start = Math.max(from, midnight + next.from * oneMinute);
    return start < before ? start : null;
  }
  return null;
}
