/**
 * A model of what Callkey promises, without a database, a network or a dialer: people.ts defines who can do what, and this file defines
 * what happens to calls. The walk (walk.ts) sends the same random commands to this model and to real cores, and compares. The model imports
 * only the contract from the core, so that it can't repeat the core's mistakes.
 */
import { isDeepStrictEqual } from 'node:util';
import type { CallState } from '#contract/calls/calls.ts';
import type { OutcomeState } from '#contract/calls/dialer.ts';
import { type Answer, day, type Expected, hour, minute, refuse, second, Table } from './basics.ts';
import { type Id, type Key, type Node, People, skew, type Viewer } from './people.ts';

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
  /** Whether it waits for calling hours. */
  isHeld: boolean;
  triedAt: number | null;
  /** When a dialer last claimed it. */
  claimedAt: number | null;
  /** When the provider accepted it. */
  dialedAt: number | null;
  endedAt: number | null;
  isErased: boolean;
  /** How many times the provider has been asked. */
  handoffs: number;
}>;
/** `notBefore` is 0 and `notAfter` is `Infinity` if the request doesn't have them. */
export type Body = { phone: string; zone: Zone; notBefore: number; notAfter: number; note: string };

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
    const never = { triedAt: null, claimedAt: null, dialedAt: null, endedAt: null, isErased: false, handoffs: 0 };
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
  reportOutcome(id: Id, state: OutcomeState, optsOut: boolean, isSigned: boolean): Expected {
    if (!isSigned) refuse('unauthorized');
    const call = this.calls.get(id);
    if (!call || call.claimedAt === null || (optsOut && call.isErased)) refuse('not-found');
    if ((isDialing(call.stage) || call.stage === 'unknown') && !call.isErased) {
      this.calls.change(id, { dialedAt: call.dialedAt ?? call.triedAt });
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

  setRules(viewer: Viewer, target: Id, rules: Partial<Pick<Node, 'hours' | 'numbers' | 'optsOutForPartner'>>): undefined {
    this.requireAdministrator(viewer);
    const scope = this.findScope(viewer) ?? refuse('forbidden');
    if (!this.isWithin(target, scope)) refuse('not-found');
    // Only users who act for a partner, not for a single account, can set this. It doesn't change earlier opt-outs.
    if ('optsOutForPartner' in rules && !this.isPartner(scope)) refuse('forbidden');
    this.directory.change(target, rules);
    if (!('hours' in rules)) return;
    // Calls that the previous hours hold are due now, so that the new ones are applied.
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

  // Dialing

  /** Does what the dialers and the provider do until nothing more is due. */
  dial(): void {
    if (!this.isClockTrusted) return;
    for (const call of this.calls.values()) {
      if (isWaiting(call)) this.#dialOne(call);
      // The provider's response or the outcome is overdue. The provider may already have the call, so the call must not be sent again.
      else if (isDialing(call.stage) && call.dueAt <= this.now) this.#end(call, 'unknown', this.now);
    }
  }

  #dialOne(call: Call): void {
    const { campaign, body, placedAt, triedAt } = call;
    const opensAt = this.#opens(campaign, body.zone, this.now);
    const latest = hasEnd(call) ? body.notAfter : Math.max(placedAt, body.notBefore) + life;
    if (body.notAfter < this.now) this.#end(call, 'lapsed', Math.max(body.notAfter, placedAt));
    else if (call.dueAt > this.now || this.#isForgotten(call)) return;
    else if (!this.#mayCall(campaign, body.phone)) this.#end(call, 'blocked', this.now);
    else if (opensAt > this.now && opensAt >= latest) this.#end(call, 'lapsed', this.now);
    else if (opensAt > this.now) this.calls.change(call.id, { dueAt: opensAt, isHeld: true, triedAt: null });
    else if (!hasEnd(call) && triedAt !== null && this.now > triedAt + tries) this.#end(call, 'failed', this.now);
    else this.#handOff(call);
  }

  #handOff({ id, body, handoffs, triedAt }: Call): void {
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
      const kept = isWaiting(call) && this.#isForgotten(call) ? this.#end(call, 'lapsed', call.dueAt + life) : call;
      const since = kept.endedAt === null ? this.now : Math.max(kept.endedAt, kept.dialedAt ?? 0);
      if (since < this.now - retentionDays * day && !kept.isErased) this.calls.change(kept.id, { isErased: true });
    }
    for (const { id: user } of this.users.values()) if (!this.isSignedIn(user)) this.signOut(user);
    this.dial();
  }

  setBack(now: number): void {
    // A step of up to `skew` doesn't count, because the clocks of cores may differ by as much.
    const isStep = this.now - now > skew;
    if (this.isClockTrusted) this.latest = this.now;
    this.now = now;
    this.isClockTrusted = true;
    if (isStep) this.#recover(true);
  }

  /** Makes calls due if they wait for longer than would be possible if the clock had always been right. */
  #recover(hasStepped: boolean): void {
    for (const call of this.calls.values()) {
      if (!isOpen(call) || call.dueAt <= this.now + skew + this.#findLongestWait(call, hasStepped)) continue;
      if (isWaiting(call)) this.#makeDue(call);
      else this.calls.change(call.id, { dueAt: this.now });
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

export const isOpen = ({ endedAt }: Call) => endedAt === null;

export const getState = ({ stage }: Call): CallState => (isDialing(stage) ? 'dialing' : stage);
