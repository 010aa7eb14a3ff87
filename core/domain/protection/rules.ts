import { hash } from 'node:crypto';
import { readPhone } from '#contract/calls/phone.ts';
import type { AuditAction } from '#contract/console/activity.ts';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { describeRules } from '#contract/protection/describe-hours.ts';
import type { ContactLimits, Pace } from '#contract/protection/dialing.ts';
import type { NumberRules } from '#contract/protection/numbers.ts';
import type { CheckNumber, CheckReason, OptOutScope, ProtectionScope } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { auditEvent } from '../audit/audit.ts';
import { requireAdministrator, scopeFor } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type { Caller, Viewer } from '../model.ts';
import type { DoNotCallEntry, Ports, RuleScope, ScopeRules } from '../ports.ts';
import { invalidField, notFound, Problem } from '../problem.ts';
import { selectRules } from './calling-hours.ts';
import { requireAccess } from './do-not-call.ts';
import { defaultRules, findNumberObjection, firstAllowed, getCallZones, type Judgement, judge } from './judge.ts';
import { getCountry, getNumberKind, isCountry, notACountry } from './numbers.ts';

export type Reference = { scope: ProtectionScope; id: string };
type Ruled = Pick<RuleScope, 'kind' | 'id' | 'name'>;
type ScopeAndRules = ScopeRules & { from: Ruled };

/**
 * Finds a scope that the viewer can see. Someone who sees only one account can't use the partner's ID to see the rules of the whole
 * partner.
 */
export async function findVisible(ports: Ports, viewer: Caller['viewer'], { scope, id }: Reference): Promise<RuleScope> {
  const access = requireAccess(scopeFor(viewer).campaigns);
  const ruleScope = await ports.stores.rules.findScope(access, scope, id);
  if (!ruleScope) throw notFound('ID');
  return ruleScope;
}

/** Reads the rules of a scope that the viewer can see, then those of its account and its partner. */
async function readChain(ports: Ports, viewer: Caller['viewer'], reference: Reference): Promise<[ScopeAndRules, ...ScopeAndRules[]]> {
  const scope = await findVisible(ports, viewer, reference);
  const { kind, owner } = scope;
  const above: [ProtectionScope, string | null][] = [
    ['account', kind === 'campaign' ? owner.accountId : null],
    ['partner', kind === 'partner' ? null : owner.partnerId],
  ];
  const { rules } = ports.stores;
  const chain: [ScopeAndRules, ...ScopeAndRules[]] = [{ from: toRuled(scope), ...(await rules.findRules(scope.id)) }];
  for (const [parent, id] of above) {
    const from = id === null ? null : await rules.findScope({ kind: 'all' }, parent, id);
    if (from) chain.push({ from: toRuled(from), ...(await rules.findRules(from.id)) });
  }
  return chain;
}

function toRuled({ kind, id, name }: RuleScope): Ruled {
  return { kind, id, name };
}

export async function showHours(ports: Ports, viewer: Caller['viewer'], reference: Reference) {
  const [own, ...above] = await readChain(ports, viewer, reference);
  const inherited = above.flatMap(({ from, hours }) => (hours ? [{ from, rules: [...hours] }] : []));
  return { scope: own.from, rules: [...(own.hours ?? [])], version: versionOf.hours(own), inherited: inherited[0] ?? null };
}

/** A scope without rules inherits them. @throws Problem `conflict` if a version is passed and the rules have changed since */
export async function setHours(ports: Ports, caller: Caller, reference: Reference, given: readonly HoursRule[], version?: string) {
  requireAdministrator(caller.viewer, 'change calling hours');
  const rules = given.map((rule) => (rule.days ? { ...rule, days: once(rule.days) } : rule));
  const change = { hours: rules.length === 0 ? null : rules };
  const event = { action: 'calling-hours.changed', detail: describeHours(rules) } as const;
  await setRules(ports, caller, reference, change, event, version, versionOf.hours);
  return showHours(ports, caller.viewer, reference);
}

export async function showNumberRules(ports: Ports, viewer: Caller['viewer'], reference: Reference) {
  const chain = await readChain(ports, viewer, reference);
  const [own] = chain;
  const effective = {
    countries: [...(chain.find((rules) => rules.countries !== null)?.countries ?? [])],
    kinds: [...(chain.find((rules) => rules.kinds !== null)?.kinds ?? [])],
  };
  const { from, countries, kinds } = own;
  return { scope: from, countries: countries && [...countries], kinds: kinds && [...kinds], version: versionOf.numbers(own), effective };
}

/**
 * Changes the settings that are passed. Null removes the scope's own setting.
 *
 * @throws Problem `invalid` for a code that isn't a country's, because all calls to the intended country would be refused; `conflict` like
 * {@link setHours}
 */
export async function setNumberRules(ports: Ports, caller: Caller, reference: Reference, given: Partial<NumberRules>, version?: string) {
  requireAdministrator(caller.viewer, 'change which numbers may be called');
  const { countries, kinds } = given;
  const rules = { ...given, ...(countries && { countries: once(countries) }), ...(kinds && { kinds: once(kinds) }) };
  const wrong = countries?.find((code) => !isCountry(code));
  if (wrong !== undefined) throw invalidField('countries', `${wrong}: ${notACountry}`);
  const event = { action: 'numbers.changed', detail: describeNumbers(rules) } as const;
  await setRules(ports, caller, reference, rules, event, version, versionOf.numbers);
  return showNumberRules(ports, caller.viewer, reference);
}

/** Returns each item once, in the order given. */
function once<Item>(items: readonly Item[]): Item[] {
  return [...new Set(items)];
}

/** Returns a scope's own pace, without that of its account or of the server. */
export async function showPace(ports: Ports, viewer: Caller['viewer'], reference: Reference) {
  const scope = await findVisible(ports, viewer, reference);
  const { pace } = await ports.stores.rules.findRules(scope.id);
  return toPaceView(pace ?? { perSecond: null, liveCalls: null });
}

function toPaceView(pace: Pace) {
  return { ...pace, version: versionOf.pace({ pace }) };
}

/** @throws Problem `conflict` like {@link setHours} */
export async function setPace(ports: Ports, caller: Caller, reference: Reference, pace: Pace, version?: string) {
  requireAdministrator(caller.viewer, 'change the pace');
  const { perSecond, liveCalls } = pace;
  const change = { pace: perSecond === null && liveCalls === null ? null : pace };
  const live = liveCalls === null ? 'any number of live calls' : counted(liveCalls, 'live call');
  const detail = `${perSecond ?? 'any number'} per second, ${live}`;
  await setRules(ports, caller, reference, change, { action: 'pace.changed', detail }, version, versionOf.pace);
  return toPaceView(pace);
}

export async function showContactLimits(ports: Ports, viewer: Caller['viewer'], reference: Reference) {
  const chain = await readChain(ports, viewer, reference);
  const effective = chain.flatMap(({ from, contactLimits }) => (contactLimits ? [{ from, limits: contactLimits }] : []));
  const [own] = chain;
  return { scope: own.from, limits: own.contactLimits, version: versionOf.contactLimits(own), effective: effective[0] ?? null };
}

/** @throws Problem `conflict` like {@link setHours} */
export async function setContactLimits(ports: Ports, caller: Caller, reference: Reference, limits: ContactLimits | null, version?: string) {
  requireAdministrator(caller.viewer, 'change contact limits');
  const detail =
    limits === null
      ? 'no limits of its own'
      : `${counted(limits.calls, 'call')} in ${counted(limits.days, 'day')}, ${counted(limits.minutesBetween, 'minute')} apart`;
  const event = { action: 'contact-limits.changed', detail } as const;
  await setRules(ports, caller, reference, { contactLimits: limits }, event, version, versionOf.contactLimits);
  return showContactLimits(ports, caller.viewer, reference);
}

/** Each differs only if the rules do. */
const versionOf = {
  hours: ({ hours }: Pick<ScopeRules, 'hours'>) => toVersion(hours ?? []),
  numbers: ({ countries, kinds }: Pick<ScopeRules, 'countries' | 'kinds'>) => toVersion([countries, kinds]),
  pace: ({ pace }: Pick<ScopeRules, 'pace'>) => toVersion([pace?.perSecond ?? null, pace?.liveCalls ?? null]),
  contactLimits: ({ contactLimits: limits }: Pick<ScopeRules, 'contactLimits'>) =>
    toVersion([limits?.calls, limits?.days, limits?.minutesBetween]),
};

function toVersion(rules: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(rules), 'base64url').slice(0, 16);
}

/** @param version refuses the change if the rules have another version. Without it, the last change wins */
async function setRules(
  ports: Ports,
  { viewer, actor }: Caller,
  reference: Reference,
  change: Partial<ScopeRules>,
  { action, detail }: { action: AuditAction; detail: string },
  version: string | undefined,
  toOwnVersion: (rules: ScopeRules) => string,
): Promise<void> {
  const scope = await findVisible(ports, viewer, reference);
  const { kind, id, name, owner } = scope;
  const event = { ...auditEvent(ports, actor, action, { kind, id, name }, owner), detail };
  await ports.stores.rules.setRules(scope, change, event, (before) => {
    // A repeated change isn't refused, because the response to the first one may have been lost.
    if (version === undefined || [version, toOwnVersion({ ...before, ...change })].includes(toOwnVersion(before))) return;
    throw new Problem('conflict', 'Someone else changed these rules in the meantime. Check the current rules, then save yours again.');
  });
  ports.onRulesChanged();
}

/** Characters in an audit event's description of calling hours, because a week may have dozens of windows. */
const maxDescription = 1_000;

function describeHours(rules: readonly HoursRule[]): string {
  const text = rules.length === 0 ? 'no rules of its own' : describeRules(rules);
  return text.length > maxDescription ? counted(rules.length, 'rule') : text;
}

function describeNumbers({ countries, kinds }: Partial<NumberRules>): string {
  const describe = (what: string, values: readonly string[] | null | undefined, ifEmpty: string) => {
    if (values === undefined) return [];
    if (values === null) return [`${what}: no setting of its own`];
    return [`${what}: ${values.length === 0 ? ifEmpty : values.join(', ')}`];
  };
  return [...describe('countries', countries, 'all'), ...describe('restricted kinds', kinds, 'none')].join('; ');
}

export async function showOptOuts(ports: Ports, viewer: Viewer, accountId: string): Promise<OptOutScope> {
  const account = await findVisible(ports, viewer, { scope: 'account', id: accountId });
  return ports.stores.doNotCall.optOutScope(account.id);
}

/** Entries that are already on a do-not-call list stay there. */
export async function setOptOuts(ports: Ports, { viewer, actor }: Caller, accountId: string, listedFor: OptOutScope): Promise<void> {
  requireAdministrator(viewer, 'change the scope of opt-outs');
  const { id, name, owner } = await findVisible(ports, viewer, { scope: 'account', id: accountId });
  // Someone who sees only one account can't decide for all of the partner's accounts.
  if (scopeFor(viewer).campaigns.kind === 'account')
    throw new Problem('forbidden', "Only users who can see all of the partner's accounts can change the scope of opt-outs.");
  if ((await ports.stores.doNotCall.optOutScope(id)) === listedFor) return;
  const event = auditEvent(ports, actor, 'account.changed', { kind: 'account', id, name }, owner);
  const detail = listedFor === 'partner' ? "opt-outs apply to all of the partner's accounts" : 'opt-outs apply only to this account';
  await ports.stores.doNotCall.setOptOutScope(id, listedFor, { ...event, detail });
}

/** Applies the same rules as placing a call. */
export async function checkNumber(ports: Ports, viewer: Viewer, input: CheckNumber) {
  const access = requireAccess(scopeFor(viewer).campaigns);
  const campaign = await ports.stores.rules.findScope(access, 'campaign', input.campaignId);
  if (!campaign || campaign.owner.accountId === null) throw notFound('ID');
  const { accountId, partnerId } = campaign.owner;
  const read = readPhone(input.phone, { country: undefined, accept: 'valid' });
  if ('reason' in read) throw invalidField('phone', read.reason);
  const { phone } = read;
  const now = ports.clock.now();
  const rules = (await ports.stores.rules.campaignRules(campaign.id)) ?? defaultRules;
  const blocking = await ports.stores.doNotCall.findBlocking({ accountId, partnerId }, phone, now);
  const entries = access.kind === 'account' ? blocking.map(withoutOthersNotes) : blocking;
  const call = { phone, timeZone: input.timeZone ?? null, notBefore: null, notAfter: null };
  const anyNumber = { ...rules, kinds: [...anyKind(phone)], countries: [] };
  const hours = judge(anyNumber, call, now, now);
  const times = rules.contactLimits ? await ports.stores.dialing.contactTimes(rules.contactLimits, phone, now) : [];
  const allowedAt = rules.contactLimits ? firstAllowed(rules.contactLimits.limits, times, now) : now;
  const opening = allowedAt > now ? judge(anyNumber, { ...call, notBefore: allowedAt }, now, now) : hours;
  const objection = findNumberObjection(rules, phone);
  const reasons: (CheckReason | null)[] = [
    entries.length > 0 ? 'do-not-call' : null,
    objection ? (objection.kind === 'country' ? 'country' : 'number-kind') : null,
    hours.kind === 'unknown-time-zone' ? hours.kind : null,
    hours.kind === 'held' || hours.kind === 'outside-calling-hours' ? 'outside-calling-hours' : null,
    allowedAt > now ? 'contact-limit' : null,
  ];
  return {
    ...{ phone, entries, kind: getNumberKind(phone), country: getCountry(phone), zones: getCallZones(call) },
    reasons: reasons.filter((reason) => reason !== null),
    rules: [...selectRules(rules.hours, phone)],
    rulesFrom: await findRulesScope(ports, campaign, rules.hoursFrom),
    limitsFrom: await findRulesScope(ports, campaign, rules.contactLimits?.scopeId ?? null),
    // A partner's limits count the calls of accounts that this viewer may not see.
    lastCalledAt: access.kind === 'account' && rules.contactLimits?.counts.accountId === null ? null : (times[0] ?? null),
    opensAt: opensAt(opening, allowedAt > now ? allowedAt : null),
  };
}

/** @param ifOpen the moment if calling hours are open then */
function opensAt(opening: Judgement, ifOpen: Millis | null): Millis | null {
  if (opening.kind === 'open') return ifOpen;
  return opening.kind === 'held' ? opening.until : opening.kind === 'outside-calling-hours' ? opening.opensAt : null;
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

async function findRulesScope(ports: Ports, { id, owner }: RuleScope, scopeId: string | null): Promise<Ruled | null> {
  if (scopeId === null) return null;
  const kind: ProtectionScope = scopeId === id ? 'campaign' : scopeId === owner.accountId ? 'account' : 'partner';
  const scope = await ports.stores.rules.findScope({ kind: 'all' }, kind, scopeId);
  return scope && toRuled(scope);
}
