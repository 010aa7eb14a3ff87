import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { dialingLimits } from '../calls/dialing.ts';
import { instant, type Millis, plus } from '../instant.ts';
import type { CampaignRules, NewCall, Objection } from '../model.ts';
import { findOpening, selectRules } from './hours/calling-hours.ts';
import { getZones, onlyZone } from './hours/zones.ts';
import { getCountry, getNumberKind } from './numbers.ts';

/** The rules if no one has set any. */
export const defaultRules: CampaignRules = { version: null, hours: [], hoursFrom: null, countries: [], kinds: [] };

/** The rules' verdict on a call: it may be made now, only later, or not at all. */
export type Judgement = { kind: 'open' } | { kind: 'held'; until: Millis } | Objection;

type JudgedCall = Pick<NewCall, 'phone' | 'timeZone' | 'notBefore' | 'notAfter'>;

/** @param placedAt when the call was placed. A call without `notAfter` must be dialed within 30 days of this time, or of `notBefore` */
export function judge(rules: CampaignRules, call: JudgedCall, now: Millis, placedAt: Millis): Judgement {
  return findNumberObjection(rules, call.phone) ?? judgeHours(rules, call, now, placedAt);
}

/** Returns the reason why a number can never be called; null if it can be called. */
export function findNumberObjection({ kinds, countries }: CampaignRules, phone: string): Objection | null {
  const numberKind = getNumberKind(phone);
  if (numberKind !== 'ordinary' && !kinds.includes(numberKind)) return { kind: 'number-kind', numberKind };
  if (countries.length === 0) return null;
  const country = getCountry(phone);
  return country !== null && countries.includes(country) ? null : { kind: 'country', country };
}

const open = { kind: 'open' } as const;

function judgeHours({ hours }: CampaignRules, call: JudgedCall, now: Millis, placedAt: Millis): Judgement {
  if (hours.length === 0) return open;
  const rules = selectRules(hours, call.phone);
  if (rules.length === 0) return open;
  const { notBefore, notAfter } = call;
  const from = notBefore !== null && notBefore > now ? notBefore : now;
  const zones = call.timeZone === null ? getZones(call.phone) : onlyZone(call.timeZone);
  const opening = findOpening({ rules, zones, from });
  if (opening === 'open') return open;
  if (opening === null && isZoneUnclear(rules, zones, from)) return { kind: 'unknown-time-zone' };
  const latest = notAfter ?? plus(instant(Math.max(placedAt, notBefore ?? 0)), dialingLimits.life.toMillis());
  return opening === null || opening >= latest ? { kind: 'outside-calling-hours', opensAt: opening } : { kind: 'held', until: opening };
}

/** Returns the contact's zone, spelled as in the call, or else every zone that the number may be in. */
export function getCallZones({ phone, timeZone }: Pick<NewCall, 'phone' | 'timeZone'>): readonly string[] {
  return timeZone === null ? getZones(phone) : [timeZone];
}

/** Whether the only reason for no opening is that the number may be in several zones, or that its zone is unknown. */
function isZoneUnclear(rules: readonly HoursRule[], zones: readonly string[], from: Millis): boolean {
  const [first] = zones;
  return first === undefined || (zones.length > 1 && findOpening({ rules, zones: onlyZone(first), from }) !== null);
}
