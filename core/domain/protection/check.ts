import { readPhone } from '#contract/calls/phone.ts';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { NumberKind } from '#contract/protection/numbers.ts';
import type { CheckNumber, CheckReason, ProtectionScope } from '#contract/protection/protection.ts';
import { scopeFor } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type { CampaignRules, DoNotCallEntry, RuleScope, Viewer } from '../model.ts';
import type { Ports } from '../ports.ts';
import { invalidField } from '../problem.ts';
import { notInScope, requireAccess } from './do-not-call.ts';
import { selectRules } from './hours/calling-hours.ts';
import { defaultRules, findNumberObjection, getCallZones, judge } from './judge.ts';
import { getCountry, getNumberKind } from './numbers.ts';

type CheckedNumber = {
  phone: string;
  reasons: CheckReason[];
  kind: NumberKind;
  country: string | null;
  zones: readonly string[];
  entries: DoNotCallEntry[];
  rules: readonly HoursRule[];
  rulesFrom: RuleScope | null;
  opensAt: Millis | null;
};

/** Says what would happen if a campaign called a number now, and why. Applies the same rules as placing a call. */
export async function checkNumber(ports: Ports, viewer: Viewer, input: CheckNumber): Promise<CheckedNumber> {
  const access = requireAccess(scopeFor(viewer).campaigns);
  const campaign = await ports.stores.protection.findScope(access, 'campaign', input.campaignId);
  if (!campaign || campaign.owner.accountId === null) throw notInScope();
  const { accountId, partnerId } = campaign.owner;
  const read = readPhone(input.phone, { country: undefined, accept: 'valid' });
  if ('reason' in read) throw invalidField('phone', read.reason);
  const { phone } = read;
  const now = ports.clock.now();
  const rules = (await ports.stores.protection.campaignRules(campaign.id)) ?? defaultRules;
  const blocking = await ports.stores.protection.findBlocking({ accountId, partnerId }, phone, now);
  const entries = access.kind === 'account' ? blocking.map(withoutOthersNotes) : blocking;
  const call = { phone, timeZone: input.timeZone ?? null, notBefore: null, notAfter: null };
  const hours = judge({ ...rules, kinds: [...anyKind(phone)], countries: [] }, call, now, now);
  const objection = findNumberObjection(rules, phone);
  const reasons: (CheckReason | null)[] = [
    entries.length > 0 ? 'do-not-call' : null,
    objection ? (objection.kind === 'country' ? 'country' : 'number-kind') : null,
    hours.kind === 'unknown-time-zone' ? hours.kind : null,
    hours.kind === 'held' || hours.kind === 'outside-calling-hours' ? 'outside-calling-hours' : null,
  ];
  return {
    ...{ phone, entries, kind: getNumberKind(phone), country: getCountry(phone), zones: getCallZones(call) },
    reasons: reasons.filter((reason) => reason !== null),
    rules: selectRules(rules.hours, phone),
    rulesFrom: await findRulesScope(ports, campaign, rules),
    opensAt: hours.kind === 'held' ? hours.until : hours.kind === 'outside-calling-hours' ? hours.opensAt : null,
  };
}

/** Someone who sees only one account learns that the partner's list blocks a number, but doesn't see notes by the partner's users. */
function withoutOthersNotes(entry: DoNotCallEntry): DoNotCallEntry {
  return entry.scope.kind === 'account' ? entry : { ...entry, note: null, call: null, createdBy: null };
}

/** Allows all kinds and countries, so that the hours are checked even if the number itself isn't allowed. */
function anyKind(phone: string) {
  const kind = getNumberKind(phone);
  return kind === 'ordinary' ? [] : [kind];
}

async function findRulesScope(ports: Ports, { id, owner }: RuleScope, { hoursFrom }: CampaignRules): Promise<RuleScope | null> {
  if (hoursFrom === null) return null;
  const kind: ProtectionScope = hoursFrom === id ? 'campaign' : hoursFrom === owner.accountId ? 'account' : 'partner';
  return ports.stores.protection.findScope({ kind: 'all' }, kind, hoursFrom);
}
