/**
 * A model of what Callkey promises, without a database, a network or a dialer: people.ts defines who can do what, and this file defines
 * what happens to calls. The walk (walk.ts) sends the same random commands to this model and to real cores, and compares. The model imports
 * only the contract from the core, so that it can't repeat the core's mistakes.
 */
import { isDeepStrictEqual } from 'node:util';
import type { CallState } from '#contract/calls/calls.ts';
import type { AnsweredBy, OutcomeState } from '#contract/calls/dialer.ts';
import { userTypes } from '#contract/console/common.ts';
import type { Answer } from '../support/http.ts';
import { day, type Expected, hour, minute, refuse, second, Table } from './basics.ts';
import { type Id, type Key, type Node, People, readId, type Stop, skew, type Viewer } from './people.ts';

/** How long a dialer may take for a hand-off before another dialer takes over the call. */
const lease = 30 * second;
/** How long a call that the provider doesn't accept is retried, unless it has a `notAfter`. */
const tries = hour;
/** How long an outcome may take. After that, the call becomes `unknown`. */
const wait = 4 * hour;
/** How long after it was due a call without `notAfter` may still be dialed. */
const life = 30 * day;
export const retentionDays = 10;

/**
 * A call that's being dialed is with the dialer (`open`), will be tried again (`retry`: the provider certainly hasn't accepted it), or is
 * with the provider (`taken`). Otherwise, its stage is its state.
 */
export type Stage = Exclude<CallState, 'dialing'> | 'open' | 'retry' | 'taken';
export type Call = Readonly<{
  id: Id;
  requestId: string;
  campaign: Id;
  key: Id;
  body: Body;
  /** The response to the first request. Repeats get it again. */
  response: string;
  stage: Stage;
  placedAt: number;
  dueAt: number;
  /** Whether it waits for calling hours, its turn or a stop. */
  isHeld: boolean;
  triedAt: number | null;
  /** When a dialer last claimed it. */
  claimedAt: number | null;
  /** When the provider accepted it. */
  dialedAt: number | null;
  endedAt: number | null;
  answeredBy: AnsweredBy | null;
  isErased: boolean;
  /** How many times the provider has been asked. */
  handoffs: number;
}>;
/** `notBefore` is 0 and `notAfter` is `Infinity` if the request doesn't have them. */
export type Body = { phone: string; zone: Zone; notBefore: number; notAfter: number; note: string };

/**
 * How much earlier than the clock says a call may leave. It may be claimed that long before its moment if claims take long, as on a busy
 * machine, and the walk's clock stands still until then.
 */
const ahead = 1_300;

/** Zones without daylight saving time. */
export const zones = { UTC: 0, 'Asia/Kolkata': 5.5 * hour, 'Asia/Tokyo': 9 * hour, 'America/Phoenix': -7 * hour } as const;
export type Zone = keyof typeof zones;

export const premiumRate = '+49900';

/** What the provider does with a call. The last digit of the number decides, so the model and the walk's provider always agree. */
const behaviors = ['takes', 'takes', 'takes', 'refuses', 'not-now', 'loses', 'is silent', 'reports immediately'] as const;
export function chooseBehavior(phone: string): (typeof behaviors)[number] {
  return behaviors[Number(phone.at(-1))] ?? 'takes';
}

export class Model extends People {
  calls = new Table<Call>();
  stops = new Table<Stop>();
  isProviderUp = true;
  /** False while the clock is so far ahead that an administrator has to confirm it. Until then, nothing is dialed, ended or erased. */
  isClockTrusted = true;
  /** The latest time before the clock was set back. */
  latest = 0;
  /** How many outcomes were recorded. */
  outcomes = 0;

  clone(): Model {
    const copies = Object.entries(this).map(([name, value]) => [name, value instanceof Table ? new Table(value) : value]);
    return Object.assign(new Model(), Object.fromEntries(copies));
  }

  // Calls

  #requireAccess(keyId: Id, campaign: Id): Key {
    const key = this.keys.get(keyId);
    if (!key || !this.isActive(key)) refuse('unauthorized');
    return this.hasAccess(key, campaign) ? key : refuse('campaign-refused');
  }

  place(keyId: Id, campaign: Id, requestId: string, body: Body, answer: Answer): Expected {
    const key = this.#requireAccess(keyId, campaign);
    const earlier = this.findCall(campaign, requestId);
    if (earlier) {
      if (earlier.isErased || !isDeepStrictEqual(earlier.body, body)) refuse('request-id-conflict');
      return { status: 202, text: earlier.response, replayed: true, quota: this.#quota(key) };
    }
    if (body.notAfter < this.now) refuse('invalid');
    if (this.isListed(campaign, body.phone)) refuse('do-not-call');
    if (!this.#mayCall(campaign, body.phone)) refuse('invalid');
    const from = Math.max(this.now, body.notBefore);
    const dueAt = this.#opens(campaign, body.zone, from);
    const isHeld = dueAt > from;
    if (isHeld && dueAt >= body.notAfter) refuse('outside-calling-hours');
    const today = Math.floor(this.now / day);
    const placed = key.placed.get(today) ?? 0;
    if (key.callsPerDay !== null && placed >= key.callsPerDay) refuse('too-many-calls', this.#quota(key));
    const counted = this.keys.change(keyId, { placed: new Map([...key.placed, [today, placed + 1]]) });
    const id = String(answer.json['contactId']);
    const never = { triedAt: null, claimedAt: null, dialedAt: null, endedAt: null, answeredBy: null, isErased: false, handoffs: 0 };
    const call = { id, requestId, campaign, key: keyId, body, response: answer.text, placedAt: this.now, dueAt, isHeld, ...never };
    this.calls.set(id, { ...call, stage: 'queued' });
    const held = isHeld ? { heldUntil: new Date(dueAt).toISOString() } : {};
    const json = { requestId, contactId: id, campaignId: campaign, state: 'queued', placedAt: new Date(this.now).toISOString(), ...held };
    return { status: 202, replayed: false, json, quota: this.#quota(counted) };
  }

  /**
   * Returns what the header `RateLimit` should say about the key's calls per day. Repeated requests don't count, and a key's day ends at
   * midnight in UTC.
   */
  #quota({ callsPerDay, placed }: Key): string | null {
    const today = Math.floor(this.now / day);
    const left = Math.max(0, (callsPerDay ?? 0) - (placed.get(today) ?? 0));
    return callsPerDay === null ? null : `"day";r=${left};t=${Math.ceil(((today + 1) * day - this.now) / second)}`;
  }

  /** A call can be cancelled until the provider may have it. Cancelling it again gets the same response. */
  cancel(keyId: Id, campaign: Id, found: Call | undefined): Expected {
    this.#requireAccess(keyId, campaign);
    if (found?.campaign !== campaign) refuse('call-not-found');
    const call = isWaiting(found) ? this.#end(found, 'cancelled', this.now) : found;
    if (call.stage !== 'cancelled') refuse('already-dialed');
    const { id: contactId, requestId, endedAt } = call;
    const json = { requestId, contactId, campaignId: campaign, state: 'cancelled', cancelledAt: new Date(endedAt ?? 0).toISOString() };
    return { status: 200, json };
  }

  protected revoke(key: Id, cancels: boolean): void {
    this.keys.change(key, { revoked: { at: this.now, cancels } });
    for (const call of this.calls.values()) if (cancels && call.key === key && isWaiting(call)) this.#end(call, 'cancelled', this.now);
  }

  findCall(campaign: Id, requestId: string): Call | undefined {
    return this.calls.values().find((call) => call.campaign === campaign && call.requestId === requestId);
  }

  /** Only the first outcome counts, even for a call in the state `unknown`, and none counts after the call's data was erased. */
  reportOutcome(id: Id, state: OutcomeState, optsOut: boolean, isSigned: boolean, answeredBy: AnsweredBy | null = null): Expected {
    if (!isSigned) refuse('unauthorized');
    const call = this.calls.get(id);
    if (!call || call.claimedAt === null || (optsOut && call.isErased)) refuse('not-found');
    if ((isDialing(call.stage) || call.stage === 'unknown') && !call.isErased) {
      this.calls.change(id, { dialedAt: call.dialedAt ?? call.triedAt, answeredBy });
      this.#end(call, state, this.now);
      this.outcomes++;
    }
    const [, account, partner] = this.pathOf(call.campaign);
    const scope = account?.optsOutForPartner ? partner : account;
    if (optsOut && scope) this.#list(scope.id, call.body.phone);
    return { status: 204 };
  }

  // Protection

  isListed(campaign: Id, phone: string): boolean {
    return this.pathOf(campaign).some(({ listed }) => listed.has(phone));
  }

  listNumber(viewer: Viewer, phone: string): Expected {
    const isNew = this.#list(this.findScope(viewer) ?? refuse('forbidden'), phone);
    return { json: { added: isNew ? 1 : 0, known: isNew ? 0 : 1 } };
  }

  /**
   * Adds a number to the do-not-call list of an account or partner, and blocks the waiting calls to it in that scope. While a dialer has a
   * call, only its next attempt can be blocked.
   */
  #list(scope: Id, phone: string): boolean {
    const { listed } = this.directory.require(scope);
    this.directory.change(scope, { listed: new Set([...listed, phone]) });
    for (const call of this.calls.values())
      if (isWaiting(call) && call.body.phone === phone && this.isWithin(call.campaign, scope)) this.#end(call, 'blocked', this.now);
    return !listed.has(phone);
  }

  /** Searches for a number on the list of an account or partner, and removes it if it's found. */
  lift(viewer: Viewer, phone: string, owner: Id): Expected {
    const { listed } = this.directory.require(owner);
    if (!listed.has(phone) || !this.isWithin(owner, this.findScope(viewer))) return { status: 200 };
    this.requireAdministrator(viewer);
    this.directory.change(owner, { listed: new Set([...listed].filter((number) => number !== phone)) });
    return { status: 204 };
  }

  setRules(viewer: Viewer, target: Id, rules: Partial<Node>): undefined {
    this.requireAdministrator(viewer);
    const scope = this.findScope(viewer) ?? refuse('forbidden');
    if (!this.isWithin(target, scope)) refuse('not-found');
    // Only users who act for a partner, not for a single account, can set this. It doesn't change earlier opt-outs.
    if ('optsOutForPartner' in rules && !this.isPartner(scope)) refuse('forbidden');
    this.directory.change(target, rules);
    if ('hours' in rules || 'pace' in rules || 'contactLimits' in rules) this.#judgeAgain(target);
  }

  /** Calls that the previous rules or a stop hold are due now, so that the new rules are applied. */
  #judgeAgain(target: Id): void {
    for (const call of this.calls.values())
      if (isOpen(call) && call.isHeld && call.dueAt > this.now && this.isWithin(call.campaign, target)) this.#makeDue(call);
  }

  /** An account's setting overrides its partner's. Without either, numbers in all countries can be called, but no restricted kinds. */
  #mayCall(campaign: Id, phone: string): boolean {
    const numbers = this.pathOf(campaign).map((node) => node.numbers);
    const countries = numbers.find((rules) => rules.countries)?.countries ?? [];
    const kinds = numbers.find((rules) => rules.kinds)?.kinds ?? [];
    const isAllowedKind = !phone.startsWith(premiumRate) || kinds.includes('premium-rate');
    return isAllowedKind && (countries.length === 0 || countries.includes(phone.startsWith('+1') ? 'US' : 'DE'));
  }

  /** Returns the earliest time at which the campaign may call someone. A window's last minute counts as closed. */
  #opens(campaign: Id, zone: Zone, from: number): number {
    const { hours } = this.pathOf(campaign).find((node) => node.hours) ?? {};
    if (!hours) return from;
    const local = from + zones[zone];
    const midnight = Math.floor(local / day) * day;
    const opensAt = midnight + hours.from * minute;
    const isOpen = local >= opensAt && local < midnight + (hours.to - 1) * minute;
    if (isOpen) return from;
    return (local < opensAt ? opensAt : opensAt + day) - zones[zone];
  }

  // Stops

  /** Stops dialing for a partner, account or campaign, or for the server (null). */
  stop(viewer: Viewer, target: Id | null, cancels: boolean, answer: Answer): Expected {
    const isStaff = this.users.require(viewer.user).type === 'staff';
    if (target === null ? !isStaff : this.findScope(viewer) === null) refuse('forbidden');
    if (target !== null && !this.isWithin(target, this.findScope(viewer))) refuse('not-found');
    const known = this.stops.values().find((stop) => stop.target === target);
    const rank = userTypes.indexOf(this.users.require(viewer.user).type);
    const { id, by } = known ?? { id: readId(answer, 'stop'), by: viewer.user };
    const stop = { id, target, by, rank: Math.max(rank, known?.rank ?? 0) };
    this.stops.set(id, stop);
    for (const call of this.calls.values())
      if (cancels && isWaiting(call) && call.placedAt <= this.now + skew && this.#applies(stop, call.campaign))
        this.#end(call, 'cancelled', this.now);
    return { status: known ? 200 : 201, json: { stop: { id: stop.id } } };
  }

  resume(viewer: Viewer, id: Id): undefined {
    const stop = this.stops.get(id);
    if (!stop || !this.seesStop(viewer, stop)) refuse('not-found');
    if (!this.mayResume(viewer, stop)) refuse('forbidden');
    this.stops.delete(id);
    if (stop.target !== null && this.directory.require(stop.target).kind === 'campaign') this.#judgeAgain(stop.target);
  }

  /** Everyone sees what stops them, and staff without an account or partner see all stops. */
  seesStop(viewer: Viewer, { target }: Stop): boolean {
    const scope = this.findScope(viewer);
    return scope === null || target === null || this.isWithin(target, scope) || target === this.partnerOf(scope);
  }

  /** Account users resume what they alone stopped, partner users what's theirs, except if staff stopped it, and staff everything. */
  mayResume({ user }: Viewer, { target, by, rank }: Stop): boolean {
    const { type, home } = this.users.require(user);
    if (userTypes.indexOf(type) < rank) return false;
    if (type === 'account') return by === user;
    return type === 'staff' || (target !== null && this.isWithin(target, home));
  }

  #applies({ target }: Stop, campaign: Id): boolean {
    return target === null || this.isWithin(campaign, target);
  }

  // Dialing

  /** Does what the dialers and the provider do until nothing more is due. */
  dial(): void {
    if (!this.isClockTrusted) return;
    for (const call of this.calls.values()) {
      if (isWaiting(call)) this.#dialOne(call);
      // The provider's response or the outcome is overdue. The provider may already have the call, so the call must not be sent again.
      else if (this.#isOverdue(call) && !this.#isRationed(call.campaign)) this.#end(call, 'unknown', this.now);
    }
  }

  #dialOne(call: Call): void {
    const { campaign, body, placedAt, triedAt } = call;
    const opensAt = this.#opens(campaign, body.zone, this.now);
    const latest = hasEnd(call) ? body.notAfter : Math.max(placedAt, body.notBefore) + life;
    if (body.notAfter < this.now) this.#end(call, 'lapsed', Math.max(body.notAfter, placedAt));
    else if (call.dueAt > this.now || this.#isForgotten(call) || this.#isLeftAlone(call) || this.#isRationed(campaign)) return;
    else if (this.#isStopped(campaign)) {
      // Looked at again each hour, but without `notAfter` only for a month.
      if (!hasEnd(call) && this.now + hour > latest) this.#end(call, 'lapsed', this.now);
      else this.calls.change(call.id, { dueAt: this.now + hour, isHeld: true, triedAt: null });
    } else if (!this.#mayCall(campaign, body.phone)) this.#end(call, 'blocked', this.now);
    else if (opensAt > this.now && opensAt >= latest) this.#end(call, 'lapsed', this.now);
    else if (opensAt > this.now) this.calls.change(call.id, { dueAt: opensAt, isHeld: true, triedAt: null });
    else if (!hasEnd(call) && triedAt !== null && this.now > triedAt + tries) this.#end(call, 'failed', this.now);
    else this.#handOff(call);
  }

  #isStopped(campaign: Id): boolean {
    return this.stops.values().some((stop) => this.#applies(stop, campaign));
  }

  /**
   * While an account, a partner or the server is stopped, nothing happens to its calls, except that calls that the provider has accepted end
   * as usual. While only a campaign is stopped, its waiting calls are looked at, so that they don't stand in front of others.
   */
  #isLeftAlone({ campaign, stage }: Call): boolean {
    const isWhole = this.stops.values().some((stop) => stop.target !== campaign && this.#applies(stop, campaign));
    return stage !== 'taken' && (isWhole || (stage === 'open' && this.#isStopped(campaign)));
  }

  /** Whether the provider's response or the outcome is overdue. */
  #isOverdue(call: Call): boolean {
    return !isWaiting(call) && isDialing(call.stage) && call.dueAt <= this.now && !this.#isLeftAlone(call);
  }

  /** Whether a pace or contact limits decide how many calls of the campaign leave. */
  #isRationed(campaign: Id): boolean {
    return this.pathOf(campaign).some(({ pace, contactLimits }) => pace ?? contactLimits);
  }

  get isRationing(): boolean {
    return this.directory.values().some(({ pace, contactLimits }) => pace ?? contactLimits);
  }

  /**
   * Paces and contact limits say how many calls leave, but not which. So the cores choose, and this only checks what they chose: never too
   * many and, once a call is due, never too few.
   *
   * @param stages the stage of each call, and when it's due or when it ended @param handoffs how many times the provider was asked for it
   * @returns the first rule that the cores broke
   */
  follow(stages: ReadonlyMap<Id, string>, handoffs: ReadonlyMap<Id, number>): string | null {
    if (!this.isClockTrusted) return null;
    const see = ({ id }: Call) => /^(\w+) at (\d+)/.exec(stages.get(id) ?? '')?.slice(1) ?? [];
    // The cores look at an account's calls only when its next one may leave, so these may end later.
    const overdue = () => [...this.calls.values()].filter((call) => this.#isOverdue(call) && this.#isRationed(call.campaign));
    for (const call of overdue()) {
      if (see(call)[0] !== 'unknown') continue;
      // Only the dialer knows that the provider mustn't be asked again, so the call has taken its turn, unless it couldn't leave anyway.
      if (call.stage === 'open' && this.#findObjection(call) === null) this.#takeTurn(call.campaign);
      this.#end(call, 'unknown', this.now);
    }
    const mayLeave = (call: Call) => isWaiting(call) && !this.#isForgotten(call) && this.#isRationed(call.campaign);
    const rationed = [...this.calls.values()].filter(mayLeave);
    const hasLeft = ({ id, handoffs: known }: Call) => (handoffs.get(id) ?? 0) > known;
    // If the provider refused some of them, they left before the ones that it has.
    const left = rationed.filter(hasLeft).sort((one, other) => Number(this.#isKept(one)) - Number(this.#isKept(other)));
    for (const call of left) {
      const broken = this.#findBroken(call);
      if (broken !== null) return `${call.requestId} (${call.id}) left, but ${broken}`;
      this.#handOff(call);
    }
    for (const call of overdue()) if (this.#findBrokenPace(call.campaign, true) === null) this.#end(call, 'unknown', this.now);
    const stay = rationed.filter((each) => !hasLeft(each));
    for (const call of stay) {
      const [stage, at = ''] = see(call);
      const isHeld = stage === call.stage && Number(at) > this.now;
      if (isHeld && Number(at) !== call.dueAt) this.calls.change(call.id, { dueAt: Number(at), isHeld: true, triedAt: null });
      else if ((stage === 'lapsed' || stage === 'failed' || stage === 'blocked') && Number(at) === this.now) {
        // A call whose hour for retries is over takes its turn, too.
        if (stage === 'failed') this.#takeTurn(call.campaign);
        this.#end(call, stage, this.now);
      }
    }
    const late = stay.find(({ id }) => {
      const call = this.calls.require(id);
      return isWaiting(call) && call.dueAt <= this.now && this.#findBroken(call, true) === null;
    });
    return late ? `${late.requestId} (${late.id}) should have left, but is ${stages.get(late.id)}` : null;
  }

  #takeTurn(campaign: Id): void {
    for (const node of this.pathOf(campaign)) if (node.pace) this.directory.change(node.id, { leftAt: this.now });
  }

  /** Whether the provider will have the call, if it's asked. */
  #isKept({ body }: Call): boolean {
    return this.isProviderUp && ['takes', 'is silent'].includes(chooseBehavior(body.phone));
  }

  /** Says which rule a call breaks if it leaves now; null if it breaks none. @param isOverdue whether it should have left long ago */
  #findBroken({ campaign, body }: Call, isOverdue = false): string | null {
    if (this.#isStopped(campaign)) return 'dialing is stopped';
    const broken = this.#findObjection({ campaign, body }) ?? this.#findBrokenPace(campaign, isOverdue);
    if (broken !== null) return broken;
    const limited = this.pathOf(campaign).find(({ contactLimits }) => contactLimits);
    if (!limited?.contactLimits) return null;
    const { calls, days, minutesBetween } = limited.contactLimits;
    // An account's or campaign's limits count all calls of the account.
    const counted = limited.kind === 'campaign' ? limited.parent : limited.id;
    const times = [...this.calls.values()]
      .filter((call) => call.body.phone === body.phone && this.isWithin(call.campaign, counted) && wasHandedOff(call))
      .map((call) => call.dialedAt ?? call.endedAt ?? this.now);
    const since = (ms: number) => times.filter((at) => at > this.now - ms).length;
    if (since(days * day) >= calls) return `its number was called ${calls} times in ${days} days`;
    return since(minutesBetween * minute) > 0 ? `its number was called less than ${minutesBetween} minutes ago` : null;
  }

  #findObjection({ campaign, body }: Pick<Call, 'campaign' | 'body'>): string | null {
    if (!this.#mayCall(campaign, body.phone)) return "its number can't be called";
    return this.#opens(campaign, body.zone, this.now) > this.now ? 'calling hours have ended' : null;
  }

  #findBrokenPace(campaign: Id, isOverdue: boolean): string | null {
    for (const { id, name, pace, leftAt, leftBefore } of this.pathOf(campaign)) {
      const live = [...this.calls.values()].filter((call) => isLive(call) && this.isWithin(call.campaign, id)).length;
      if (live >= (pace?.liveCalls ?? Number.POSITIVE_INFINITY)) return `${name} has ${live} live calls`;
      const interval = second / (pace?.perSecond ?? Number.POSITIVE_INFINITY);
      const from = isOverdue ? Math.max(leftAt, pace?.since ?? 0) + 3 * interval + 2 * second : leftAt + interval - ahead;
      if (interval > 0 && this.now < from) return `the last call of ${name} left at ${new Date(leftAt).toISOString()}`;
      // When the clock shows that time again, a core that hasn't looked since then waits for the turn after it.
      const isUnclear = leftBefore.some((at) => Math.abs(this.now - at) < 3 * interval + 15 * second);
      if (interval > 0 && isOverdue && isUnclear) return `the clock of ${name} has been set back`;
    }
    return null;
  }

  #handOff({ id, campaign, body, handoffs, triedAt }: Call): void {
    this.#takeTurn(campaign);
    const claim = { handoffs: handoffs + 1, claimedAt: this.now, isHeld: false, triedAt: triedAt ?? this.now };
    const call = this.calls.change(id, claim);
    const behavior = this.isProviderUp ? chooseBehavior(body.phone) : 'not-now';
    if (behavior === 'takes' || behavior === 'not-now') this.#settle(call, behavior === 'takes');
    else if (behavior === 'refuses') this.#end(call, 'failed', this.now);
    else if (behavior === 'loses') this.#end(call, 'unknown', this.now);
    else this.calls.change(id, { stage: 'open', dueAt: this.now + lease });
    if (behavior === 'reports immediately') this.reportOutcome(id, 'completed', false, true);
  }

  /** A killed core may or may not have handed off a call that it had just claimed. No one knows, so the call isn't handed off again. */
  lose({ id, claimedAt, handoffs: planned }: Call, handoffs: number): void {
    if (claimedAt !== this.now || handoffs > planned || handoffs < planned - 1) return;
    this.calls.change(id, { stage: 'open', dueAt: this.now + lease, endedAt: null, handoffs });
  }

  /**
   * Ends a hand-off. If the provider hasn't accepted the call, the next attempt follows after the shortest delay, because the walk's random
   * numbers always choose that. If the provider's response came after the lease, only the next attempt checks whether the hour for retries
   * is over.
   */
  #settle(open: Call, isTaken: boolean): void {
    if (isTaken) return void this.calls.change(open.id, { stage: 'taken', dueAt: this.now + wait, dialedAt: this.now });
    const { at, cancels } = this.keys.get(open.key)?.revoked ?? { at: 0, cancels: false };
    const isInLease = open.stage !== 'open' || this.now < open.dueAt;
    const call = this.calls.change(open.id, { stage: 'retry', dueAt: Math.min(this.now + second / 10, open.body.notAfter + 1) });
    if (isInLease && !hasEnd(call) && call.dueAt > (call.triedAt ?? 0) + tries) this.#end(call, 'failed', this.now);
    else if (cancels) this.#end(call, 'cancelled', at);
    else if (this.isListed(call.campaign, call.body.phone)) this.#end(call, 'blocked', this.now);
  }

  /** The silent provider responds to everything it has. This changes nothing for a dialer that has stopped waiting. */
  respond(takes: boolean): Expected {
    for (const call of this.calls.values()) if (call.stage === 'open') this.#settle(call, takes);
    return { status: 200 };
  }

  #end(call: Call, stage: Stage, at: number): Call {
    return this.calls.change(call.id, { stage, endedAt: at });
  }

  /** A call without `notAfter` isn't dialed more than a month late. */
  #isForgotten(call: Call): boolean {
    return !hasEnd(call) && call.dueAt + life < this.now;
  }

  /** Does what the cores do every hour: end calls, and erase the contact data of calls that ended long ago. */
  keepHouse(): void {
    if (!this.isClockTrusted) return;
    this.#recover(this.latest > this.now + skew);
    for (const call of this.calls.values()) {
      const isForgotten = isWaiting(call) ? this.#isForgotten(call) : isDialing(call.stage) && call.dueAt + life < this.now;
      const kept = isForgotten ? this.#end(call, isWaiting(call) ? 'lapsed' : 'unknown', call.dueAt + life) : call;
      const since = kept.endedAt === null ? this.now : Math.max(kept.endedAt, kept.dialedAt ?? 0);
      if (since < this.now - retentionDays * day && !kept.isErased) this.calls.change(kept.id, { isErased: true });
    }
    for (const { id: user } of this.users.values()) if (!this.isSignedIn(user)) this.signOut(user);
    this.dial();
  }

  setBack(now: number): void {
    // A step of up to `skew` doesn't count, because the clocks of cores may differ by as much.
    const before = this.now;
    const isStep = before - now > skew;
    if (this.isClockTrusted) this.latest = this.now;
    this.now = now;
    // No one knows anymore when the last call left, or was looked at because too many were live, so the next one may wait for a turn.
    for (const { id, leftAt, leftBefore, pace } of this.directory.values()) {
      const then = { leftBefore: [...leftBefore, leftAt, before], pace: pace && { ...pace, since: now } };
      this.directory.change(id, { leftAt: Math.min(leftAt, now), ...then });
    }
    this.isClockTrusted = true;
    if (isStep) this.#recover(true);
  }

  /** Makes calls due if they wait for longer than would be possible if the clock had always been right. */
  #recover(hasStepped: boolean): void {
    for (const call of this.calls.values()) {
      if (!isOpen(call) || call.dueAt <= this.now + skew + this.#findLongestWait(call, hasStepped)) continue;
      if (isWaiting(call)) this.#makeDue(call);
      // The provider still has it, so it waits as long again.
      else this.calls.change(call.id, { dueAt: this.now + (call.stage === 'taken' ? call.dueAt - (call.dialedAt ?? call.dueAt) : 0) });
    }
  }

  /** Makes a waiting call due. The hour for retries starts again, because no one knows when it began. */
  #makeDue({ id, body }: Call): void {
    this.calls.change(id, { dueAt: Math.max(this.now, body.notBefore), isHeld: false, triedAt: null });
  }

  /**
   * Returns the longest time that a call could still have to wait if the clock had always been right. If the clock was set back, even in
   * several small steps since the call was placed, a call that waits for calling hours is due now, so that the hours are applied again.
   */
  #findLongestWait(call: Call, hasStepped: boolean): number {
    if (call.isHeld) return hasStepped || call.placedAt > this.now + skew ? 0 : Number.POSITIVE_INFINITY;
    if (call.stage === 'queued') return call.dueAt <= call.body.notBefore ? Number.POSITIVE_INFINITY : 0;
    if (call.stage === 'open') return lease;
    if (call.stage === 'taken') return wait;
    // A provider may ask for any delay, but only a call with `notAfter` is retried for longer than an hour.
    if (!hasEnd(call)) return tries;
    return hasStepped ? wait : Number.POSITIVE_INFINITY;
  }
}

/** Whether the request says until when the call may be dialed. */
const hasEnd = ({ body }: Call) => body.notAfter < Number.POSITIVE_INFINITY;

/** Whether a call waits for a dialer, and can be cancelled, lapse or be blocked. */
const isWaiting = ({ stage }: Call) => stage === 'queued' || stage === 'retry';

/** Whether a call is being dialed: by the dialer, between two attempts, or by the provider. */
const isDialing = (stage: Stage) => stage === 'open' || stage === 'retry' || stage === 'taken';

/** Whether a provider has or may have a call, which has no outcome. */
const isLive = ({ stage }: Call) => stage === 'open' || stage === 'taken';

/** Whether contact limits count a call. Erased ones aren't known anymore. */
const wasHandedOff = (call: Call) => !call.isErased && (call.dialedAt !== null || isLive(call) || call.stage === 'unknown');

export const isOpen = ({ endedAt }: Call) => endedAt === null;

export const getState = ({ stage }: Call): CallState => (isDialing(stage) ? 'dialing' : stage);
