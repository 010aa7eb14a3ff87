import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { ContactLimits } from '#contract/protection/dialing.ts';
import { restrictedKindNames } from '#contract/protection/numbers.ts';
import { latestDialing } from '../calls/dialing.ts';
import { instant, type Millis, oneDay, oneMinute } from '../instant.ts';
import type { CampaignRules, NewCall, Objection, StopReason } from '../ports.ts';
import { findOpening, selectRules } from './calling-hours.ts';
import { getCountry, getNumberKind, getZones, onlyZone } from './numbers.ts';

export const defaultRules: CampaignRules = {
  version: null,
  hours: [],
  hoursFrom: null,
  countries: [],
  kinds: [],
  paces: [],
  contactLimits: null,
};

export type Judgement = { kind: 'open' } | { kind: 'held'; until: Millis } | Objection;

type JudgedCall = Pick<NewCall, 'phone' | 'timeZone' | 'notBefore' | 'notAfter'>;

/** @param placedAt when the call was placed. A call without `notAfter` must be dialed within 30 days of this time, or of `notBefore` */
export function judge(rules: CampaignRules, call: JudgedCall, now: Millis, placedAt: Millis): Judgement {
  return findNumberObjection(rules, call.phone) ?? judgeHours(rules, call, now, placedAt);
}

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
  const latest = latestDialing({ placedAt, notBefore, notAfter });
  return opening === null || opening >= latest ? { kind: 'outside-calling-hours', opensAt: opening } : { kind: 'held', until: opening };
}

/** Returns the first moment from `now` on at which a number may be called. @param times when it was called, latest first */
export function firstAllowed({ calls, days, minutesBetween }: ContactLimits, times: readonly Millis[], now: Millis): Millis {
  const [latest] = times;
  const oldestThatCounts = times[calls - 1];
  return instant(
    Math.max(
      now,
      latest === undefined ? 0 : latest + minutesBetween * oneMinute,
      oldestThatCounts === undefined ? 0 : oldestThatCounts + days * oneDay,
    ),
  );
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

export function toStopReason({ kind }: Objection): StopReason {
  if (kind === 'number-kind' || kind === 'country') return 'number';
  return kind === 'unknown-time-zone' || kind === 'outside-calling-hours' ? 'calling-hours' : kind;
}

export const doNotCallDetail = 'The number is on a do-not-call list.';
export const stoppedDetail = 'Dialing was stopped until the time window ended.';
export const pacedDetail = 'The pace was too slow for the call to leave before the time window ended.';
export const contactLimitDetail = 'The number has had as many calls as its contact limits allow.';

/** Never contains the number. */
export function describeObjection(objection: Objection): string {
  switch (objection.kind) {
    case 'number-kind':
      return `${restrictedKindNames[objection.numberKind]} can't be called from this account.`;
    case 'country': {
      const { country } = objection;
      return `${country === null ? 'Numbers whose country is unknown' : `Numbers in ${country}`} can't be called from this account.`;
    }
    case 'unknown-time-zone':
      return "Calling hours apply, but the number's time zone is unknown.";
    case 'outside-calling-hours':
      return "Calling hours don't allow the call in time.";
    case 'contact-limit':
      return contactLimitDetail;
    case 'stop':
      return stoppedDetail;
    case 'pace':
      return "The pace didn't allow the call within 30 days.";
  }
}
