/**
 * What Callkey promises, as a program without a database, a network or a dialer. The walk (walk.ts) sends the same random commands to this
 * model and to real cores, and compares. It imports nothing of the core but the contract, so that it can't repeat the core's mistakes.
 *
 * All times are in milliseconds. The days of all keys are those of UTC.
 */
import type { CallState } from '#contract/calls/calls.ts';
import type { OutcomeState } from '#contract/calls/dialer.ts';
import type { UserType } from '#contract/console/common.ts';
import type { NumberRules } from '#contract/protection/numbers.ts';

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** How long a dialer may take for a hand-off before another one takes over. */
const lease = 30 * second;
/** How long a call that the provider doesn't accept is retried, unless it has a `notAfter`. */
const tries = hour;
/** How long an outcome may take. */
const wait = 4 * hour;
/** How long after its time a call without `notAfter` may be dialed. */
const life = 30 * day;
export const retentionDays = 10;
/** How far the clocks of the cores may differ. */
const skew = 5 * minute;
export const codeEvery = 30 * second;
const session = { idle: day, absolute: 7 * day, touch: minute };

type Id = string;
export type User = {
  id: Id;
  email: string;
  type: UserType;
  account: Id | null;
  partner: Id | null;
  isDisabled: boolean;
  session: { startedAt: number; seenAt: number } | null;
  /** The 30 seconds of the last code from the user's app that was used; null for a user without a second factor. */
  lastCode: number | null;
};
/** A signed-in user. Staff act for an account or a partner. */
export type Viewer = { user: Id; tenancy: Scope | null };
/** An account with its partner, or a whole partner. */
export type Scope = { account: Id | null; partner: Id };

export type Key = {
  id: Id;
  value: string;
  creator: Id;
  scope: Scope;
  createdAt: number;
  expiresAt: number | null;
  callsPerDay: number | null;
  /** Whether the key is limited to addresses other than the walk's. */
  isElsewhere: boolean;
  /** How many calls it has placed on a day, by the number of the day. */
  placed: Map<number, number>;
  /** Set once it's revoked. `cancels` says whether its calls are cancelled as well. */
  revoked: { at: number; cancels: boolean } | null;
};

/**
 * A call that's being dialed is with the dialer (`open`), will be tried again (`retry`: the provider certainly hasn't accepted it), or is
 * with the provider (`taken`). Otherwise, its stage is its state.
 */
export type Stage = Exclude<CallState, 'dialing'> | 'open' | 'retry' | 'taken';
export type Call = {
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
  endedAt: number | null;
  isErased: boolean;
  /** How often the provider has been asked. */
  handoffs: number;
};
export type Body = { phone: string; zone: Zone; notBefore: number | null; notAfter: number | null; note: string };

/** Zones without daylight saving time. */
export const zones = { UTC: 0, 'Asia/Kolkata': 5.5 * hour, 'Asia/Tokyo': 9 * hour, 'America/Phoenix': -7 * hour } as const;
export type Zone = keyof typeof zones;
/** Calling hours, the same every day, in minutes of the person's day. */
export type Hours = { from: number; to: number };

export const premiumRate = '+49900';

/** What the provider does with a call. The last digit of the number decides, so that a test needs no memory. */
const behaviors = ['takes', 'takes', 'takes', 'refuses', 'not-now', 'loses', 'is silent', 'tells at once'] as const;
export function chooseBehavior(phone: string): (typeof behaviors)[number] {
  return behaviors[Number(phone.at(-1))] ?? 'takes';
}

/** What the model expects of a response. Everything that's omitted may be anything. */
export type Expected = { status: number; code?: string; text?: string; replayed?: boolean; json?: Readonly<Record<string, unknown>> };
/** A response, from which the model learns the identifiers and key values that the core chose. */
export type Answer = { status: number; text: string; json: Readonly<Record<string, unknown>> };

const unauthorized: Expected = { status: 401, code: 'unauthorized' };
const notFound: Expected = { status: 404, code: 'not-found' };
const forbidden: Expected = { status: 403, code: 'forbidden' };

export class Model {
  now = 0;
  accounts = new Map<Id, { partner: Id; name: string }>();
  campaigns = new Map<Id, { account: Id; name: string }>();
  users = new Map<Id, User>();
  keys = new Map<Id, Key>();
  calls = new Map<Id, Call>();
  /** Numbers that must not be called, by account or partner. */
  listed = new Map<Id, Set<string>>();
  /** Calling hours of partners, accounts and campaigns. */
  hours = new Map<Id, Hours>();
  /** Countries and kinds of numbers that partners and accounts may call. */
  numbers = new Map<Id, NumberRules>();
  isProviderUp = true;
  /** Nothing is dialed, ended or erased while the clock is so far ahead that an administrator has to confirm it. */
  isClockTrusted = true;
  /** The latest time before the clock was set back. */
  latest = 0;
  /** How many outcomes were recorded. */
  outcomes = 0;

  clone(): Model {
    return Object.assign(new Model(), structuredClone({ ...this }));
  }

  // Who

  /** A session ends after a day without requests, after a week, when its user is disabled or deleted, or if it's from the future. */
  isSignedIn({ user }: Viewer): boolean {
    const found = this.users.get(user)?.session;
    if (!found) return false;
    const { startedAt, seenAt } = found;
    const isIn = (at: number, most: number) => at >= this.now - most && at <= this.now + skew;
    return isIn(startedAt, session.absolute) && isIn(seenAt, session.idle);
  }

  /** @param code the 30 seconds of a code, if the user has a second factor */
  signIn({ user }: Viewer, code: number | null): void {
    Object.assign(this.#user(user), { session: { startedAt: this.now, seenAt: this.now }, lastCode: code });
  }

  /** Every request of a session counts as use. */
  use({ user }: Viewer): void {
    const found = this.users.get(user)?.session;
    if (found && Math.abs(this.now - found.seenAt) > session.touch) found.seenAt = this.now;
  }

  signOut({ user }: Viewer): Expected {
    this.#user(user).session = null;
    return { status: 204 };
  }

  /** Returns the 30 seconds of the next code that the user could enter; null if it's too early for a new one, because each is used once. */
  findNextCode({ user }: Viewer): number | null {
    const current = Math.floor(this.now / codeEvery);
    const next = Math.max(current, (this.#user(user).lastCode ?? 0) + 1);
    return next > current + 1 ? null : next;
  }

  enroll({ user }: Viewer, code: number): Expected {
    const enrolled = this.#user(user);
    if (enrolled.lastCode !== null) return { status: 409, code: 'conflict' };
    enrolled.lastCode = code;
    return { status: 200 };
  }

  removeFactor({ user }: Viewer): Expected {
    const enrolled = this.#user(user);
    if (enrolled.lastCode === null) return notFound;
    enrolled.lastCode = null;
    return { status: 204 };
  }

  /** Returns the scope in which a viewer acts, and creates keys; null for staff who have chosen none. */
  findScope({ user, tenancy }: Viewer): Scope | null {
    const { type, account, partner } = this.#user(user);
    if (type === 'staff') return tenancy;
    return { account, partner: partner ?? this.#findPartner(account) };
  }

  /** Account users see their own keys. Others see those of their scope, and tied partner users their own as well. */
  seesKey(viewer: Viewer, { creator, scope }: Key): boolean {
    const { type, id } = this.#user(viewer.user);
    const own = this.findScope(viewer);
    if (!own) return false;
    if (type === 'account') return creator === id;
    if (type === 'staff') return own.account === null ? scope.partner === own.partner : scope.account === own.account;
    if (own.account !== null) return scope.account === own.account || creator === id;
    const by = this.users.get(creator);
    return (by?.type === 'staff' ? scope.partner : by && (by.partner ?? this.#findPartner(by.account))) === own.partner;
  }

  seesCampaign(viewer: Viewer, campaign: Id): boolean {
    const scope = this.findScope(viewer);
    return scope !== null && this.#isWithin(this.#scopeOfCampaign(campaign), scope);
  }

  seesUser(viewer: Viewer, { type, account, partner }: User): boolean {
    if (this.#user(viewer.user).type === 'account') return false;
    const scope = this.findScope(viewer);
    if (!scope) return type === 'staff';
    if (type === 'staff') return false;
    return scope.account === null ? (partner ?? this.#findPartner(account)) === scope.partner : account === scope.account;
  }

  /** A key does what its creator may do now, and works until it's revoked, its last day ends, or its creator is disabled. */
  isActive({ creator, expiresAt, revoked, isElsewhere }: Key): boolean {
    const user = this.users.get(creator);
    const hasEnded = revoked !== null || (expiresAt !== null && this.now > expiresAt);
    return user !== undefined && !user.isDisabled && !hasEnded && !isElsewhere;
  }

  /** A partner user's key has access to all of the partner's campaigns, even if the user is tied to an account. */
  hasAccess({ creator, scope }: Key, campaign: Id): boolean {
    const { type, account, partner } = this.#user(creator);
    const target = this.#scopeOfCampaign(campaign);
    if (!target.partner) return false;
    if (type === 'account') return target.account === account;
    return type === 'partner' ? target.partner === partner : this.#isWithin(target, scope);
  }

  // Keys

  createKey(viewer: Viewer, days: number | null, answer: Answer): Expected {
    const scope = this.findScope(viewer);
    if (!scope) return forbidden;
    const apiKey = record(answer.json['apiKey']);
    const id = String(apiKey['id']);
    // The end of the day.
    const expiresAt = days === null ? null : (Math.floor(this.now / day) + days + 1) * day - 1;
    const value = String(answer.json['keyValue']);
    const unlimited = { callsPerDay: null, isElsewhere: false, placed: new Map(), revoked: null };
    this.keys.set(id, { id, value, creator: viewer.user, scope, createdAt: this.now, expiresAt, ...unlimited });
    return { status: 201, json: { apiKey: { expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString() } } };
  }

  limitKey(viewer: Viewer, key: Key, limits: Partial<Pick<Key, 'callsPerDay' | 'isElsewhere'>>): Expected {
    if (key.revoked || !this.seesKey(viewer, key)) return notFound;
    Object.assign(key, limits);
    return { status: 200, json: { apiKey: { callsPerDay: key.callsPerDay } } };
  }

  revokeKey(viewer: Viewer, key: Key, cancels: boolean): Expected {
    if (key.revoked || !this.seesKey(viewer, key)) return notFound;
    this.#revoke(key, cancels);
    return { status: 204 };
  }

  #revoke(key: Key, cancels: boolean): void {
    key.revoked = { at: this.now, cancels };
    if (cancels) for (const call of this.calls.values()) if (call.key === key.id && isWaiting(call)) this.#end(call, 'cancelled', this.now);
  }

  // Users

  /** Partner users and staff disable, move and delete the users of their scope, but not themselves. */
  #denies(viewer: Viewer, user: User): Expected | null {
    if (this.#user(viewer.user).type === 'account') return forbidden;
    if (!this.seesUser(viewer, user)) return notFound;
    return viewer.user === user.id ? { status: 409, code: 'conflict' } : null;
  }

  disableUser(viewer: Viewer, user: User, isDisabled: boolean): Expected {
    const denied = this.#denies(viewer, user);
    if (denied) return denied;
    if (isDisabled && !user.isDisabled) user.session = null;
    user.isDisabled = isDisabled;
    return { status: 200 };
  }

  /** Only users who see a whole partner can move its users. @param account null for all accounts */
  moveUser(viewer: Viewer, user: User, account: Id | null): Expected {
    const denied = this.#denies(viewer, user);
    if (denied) return denied;
    if (account === user.account) return { status: 200 };
    const scope = this.findScope(viewer);
    const isInScope = scope?.account === null && (account === null || this.#findPartner(account) === scope.partner);
    if (!isInScope || (account === null && user.type === 'account')) return { status: 422, code: 'invalid' };
    user.account = account;
    return { status: 200 };
  }

  deleteUser(viewer: Viewer, user: User, cancels: boolean): Expected {
    const denied = this.#denies(viewer, user);
    if (denied) return denied;
    this.users.delete(user.id);
    for (const key of this.keys.values()) if (key.creator === user.id && !key.revoked) this.#revoke(key, cancels);
    return { status: 204 };
  }

  // Directory

  /** Staff manage all accounts and campaigns, and partner users who aren't tied to an account those of their partner. */
  manages(viewer: Viewer, partner: Id): boolean {
    const { type, account, partner: own } = this.#user(viewer.user);
    return type === 'staff' || (type === 'partner' && account === null && own === partner);
  }

  #deniesDirectory(viewer: Viewer, partner: Id, otherwise: Expected): Expected | null {
    if (!this.manages(viewer, this.#user(viewer.user).partner ?? '')) return forbidden;
    return this.manages(viewer, partner) ? null : otherwise;
  }

  createAccount(viewer: Viewer, partner: Id, name: string, answer: Answer): Expected {
    const denied = this.#deniesDirectory(viewer, partner, { status: 422, code: 'invalid' });
    if (!denied) this.accounts.set(String(record(answer.json['account'])['id']), { partner, name });
    return denied ?? { status: 201 };
  }

  createCampaign(viewer: Viewer, account: Id, name: string, answer: Answer): Expected {
    const denied = this.#deniesDirectory(viewer, this.#findPartner(account), { status: 422, code: 'invalid' });
    if (!denied) this.campaigns.set(String(record(answer.json['campaign'])['id']), { account, name });
    return denied ?? { status: 201 };
  }

  /** @param id of an account or campaign */
  rename(viewer: Viewer, id: Id, name: string): Expected {
    const campaign = this.campaigns.get(id);
    const denied = this.#deniesDirectory(viewer, this.#findPartner(campaign?.account ?? id), notFound);
    if (!denied) Object.assign(campaign ?? this.accounts.get(id) ?? {}, { name });
    return denied ?? { status: 200 };
  }

  // Calls

  place(key: Key, campaign: Id, requestId: string, body: Body, answer: Answer): Expected {
    const refused = this.#refuses(key, campaign);
    if (refused) return refused;
    const earlier = this.findCall(campaign, requestId);
    if (earlier) {
      const isSame = JSON.stringify(earlier.body) === JSON.stringify(body) && !earlier.isErased;
      return isSame ? { status: 202, text: earlier.response, replayed: true } : { status: 409, code: 'request-id-conflict' };
    }
    if (body.notAfter !== null && body.notAfter < this.now) return { status: 422, code: 'invalid' };
    if (this.isListed(campaign, body.phone)) return { status: 403, code: 'do-not-call' };
    if (!this.#mayCall(campaign, body.phone)) return { status: 422, code: 'invalid' };
    const from = Math.max(this.now, body.notBefore ?? 0);
    const dueAt = this.#opens(campaign, body.zone, from);
    if (dueAt > from && dueAt >= (body.notAfter ?? Number.POSITIVE_INFINITY)) return { status: 422, code: 'outside-calling-hours' };
    const today = Math.floor(this.now / day);
    const placed = key.placed.get(today) ?? 0;
    if (key.callsPerDay !== null && placed >= key.callsPerDay) return { status: 429, code: 'too-many-calls' };
    key.placed.set(today, placed + 1);
    const id = String(answer.json['contactId']);
    const none = { triedAt: null, claimedAt: null, endedAt: null, isErased: false, handoffs: 0 };
    const call = {
      id,
      requestId,
      campaign,
      key: key.id,
      body,
      response: answer.text,
      placedAt: this.now,
      dueAt,
      isHeld: dueAt > from,
      ...none,
    };
    this.calls.set(id, { ...call, stage: 'queued' });
    const held = dueAt > from ? { heldUntil: new Date(dueAt).toISOString() } : {};
    const json = { requestId, contactId: id, campaignId: campaign, state: 'queued', placedAt: new Date(this.now).toISOString(), ...held };
    return { status: 202, replayed: false, json };
  }

  /** A call can be cancelled until the provider may have it. Cancelling it again gets the same response. */
  cancel(key: Key, campaign: Id, call: Call | undefined): Expected {
    const refused = this.#refuses(key, campaign);
    if (refused) return refused;
    if (call?.campaign !== campaign) return { status: 404, code: 'call-not-found' };
    if (isWaiting(call)) this.#end(call, 'cancelled', this.now);
    if (call.stage !== 'cancelled') return { status: 409, code: 'already-dialed' };
    const { id: contactId, requestId, endedAt } = call;
    const json = { requestId, contactId, campaignId: campaign, state: 'cancelled', cancelledAt: new Date(endedAt ?? 0).toISOString() };
    return { status: 200, json };
  }

  #refuses(key: Key, campaign: Id): Expected | null {
    if (!this.isActive(key)) return unauthorized;
    return this.hasAccess(key, campaign) ? null : { status: 403, code: 'campaign-refused' };
  }

  findCall(campaign: Id, requestId: string): Call | undefined {
    return this.calls.values().find((call) => call.campaign === campaign && call.requestId === requestId);
  }

  /** The first outcome is final until the call's data is erased, even if the call is unknown. */
  reportOutcome(id: Id, state: OutcomeState, optsOut: boolean, isSigned: boolean): Expected {
    if (!isSigned) return unauthorized;
    const call = this.calls.get(id);
    if (!call || call.claimedAt === null || (optsOut && call.isErased)) return notFound;
    if ((isDialing(call) || call.stage === 'unknown') && !call.isErased) {
      this.#end(call, state, this.now);
      this.outcomes++;
    }
    if (optsOut) this.#list(this.#scopeOfCampaign(call.campaign).account ?? '', call.body.phone);
    return { status: 204 };
  }

  // Protection

  isListed(campaign: Id, phone: string): boolean {
    const { account, partner } = this.#scopeOfCampaign(campaign);
    return [account, partner].some((scope) => this.listed.get(scope ?? '')?.has(phone));
  }

  listNumber(viewer: Viewer, phone: string): Expected {
    const scope = this.findScope(viewer);
    if (!scope) return forbidden;
    const isNew = this.#list(scope.account ?? scope.partner, phone);
    return { status: 201, json: { added: isNew ? 1 : 0, known: isNew ? 0 : 1 } };
  }

  /** Also blocks waiting calls. */
  #list(scope: Id, phone: string): boolean {
    const numbers = this.listed.get(scope) ?? new Set();
    this.listed.set(scope, numbers);
    const isNew = !numbers.has(phone);
    numbers.add(phone);
    this.#blockListed();
    return isNew;
  }

  /** A number may have been listed while the dialer had the call. */
  #blockListed(): void {
    for (const call of this.calls.values())
      if (isWaiting(call) && this.isListed(call.campaign, call.body.phone)) this.#end(call, 'blocked', this.now);
  }

  /**
   * Users who see a whole partner can remove its entries and those of its accounts. @param scope whose entry it was; null if they found
   * none
   */
  lift(viewer: Viewer, phone: string, scope: Id | null): Expected {
    const own = this.findScope(viewer)?.partner ?? '';
    const found = [own, ...this.accounts.keys()].filter(
      (id) => this.listed.get(id)?.has(phone) && (this.accounts.get(id)?.partner ?? id) === own,
    );
    if (found.length === 0) return { status: 200 };
    this.listed.get(found.find((id) => id === scope) ?? '')?.delete(phone);
    return { status: 204 };
  }

  setHours(viewer: Viewer, target: Id, hours: Hours | null): Expected {
    const denied = this.#deniesRules(viewer, target);
    if (denied) return denied;
    if (hours) this.hours.set(target, hours);
    else this.hours.delete(target);
    return { status: 200 };
  }

  setNumbers(viewer: Viewer, target: Id, rules: NumberRules): Expected {
    const denied = this.#deniesRules(viewer, target);
    if (denied) return denied;
    this.numbers.set(target, rules);
    return { status: 200 };
  }

  /** Only partner users and staff set rules, and only within their scope. */
  #deniesRules(viewer: Viewer, target: Id): Expected | null {
    if (this.#user(viewer.user).type === 'account') return forbidden;
    const scope = this.findScope(viewer);
    if (!scope) return forbidden;
    const account = this.campaigns.get(target)?.account ?? (this.accounts.has(target) ? target : null);
    const isWithin = this.#isWithin({ account, partner: account === null ? target : this.#findPartner(account) }, scope);
    return isWithin ? null : notFound;
  }

  /** An account's setting counts more than its partner's. Without any, restricted kinds of numbers can't be called, in no country. */
  #mayCall(campaign: Id, phone: string): boolean {
    const { account, partner } = this.#scopeOfCampaign(campaign);
    const own = [this.numbers.get(account ?? ''), this.numbers.get(partner)];
    const countries = own.find((rules) => rules?.countries)?.countries ?? [];
    const kinds = own.find((rules) => rules?.kinds)?.kinds ?? [];
    const isAllowedKind = !phone.startsWith(premiumRate) || kinds.includes('premium-rate');
    return isAllowedKind && (countries.length === 0 || countries.includes(phone.startsWith('+1') ? 'US' : 'DE'));
  }

  /** Returns the earliest time at which the campaign may call someone. A window's last minute counts as closed. */
  #opens(campaign: Id, zone: Zone, from: number): number {
    const { account, partner } = this.#scopeOfCampaign(campaign);
    const hours = [campaign, account ?? '', partner].map((scope) => this.hours.get(scope)).find((found) => found !== undefined);
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
      // The provider's response or the outcome is overdue. The provider may have the call, and no one is called twice.
      else if (isDialing(call) && call.dueAt <= this.now) this.#end(call, 'unknown', this.now);
    }
  }

  #dialOne(call: Call): void {
    const { campaign, body, placedAt, triedAt } = call;
    const opensAt = this.#opens(campaign, body.zone, this.now);
    const latest = body.notAfter ?? Math.max(placedAt, body.notBefore ?? 0) + life;
    if (body.notAfter !== null && body.notAfter < this.now) this.#end(call, 'lapsed', Math.max(body.notAfter, placedAt));
    else if (call.dueAt > this.now || this.#isForgotten(call)) return;
    else if (!this.#mayCall(campaign, body.phone)) this.#end(call, 'blocked', this.now);
    else if (opensAt > this.now && opensAt >= latest) this.#end(call, 'lapsed', this.now);
    else if (opensAt > this.now) Object.assign(call, { dueAt: opensAt, isHeld: true, triedAt: null });
    // The number was listed while the dialer had the call.
    else if (this.isListed(campaign, body.phone)) this.#end(call, 'blocked', this.now);
    else if (body.notAfter === null && triedAt !== null && this.now > triedAt + tries) this.#end(call, 'failed', this.now);
    else this.#handOff(call);
  }

  #handOff(call: Call): void {
    call.handoffs++;
    call.claimedAt = this.now;
    call.isHeld = false;
    call.triedAt ??= this.now;
    const behavior = this.isProviderUp ? chooseBehavior(call.body.phone) : 'not-now';
    if (behavior === 'takes') this.#take(call);
    else if (behavior === 'not-now') this.#retry(call);
    else if (behavior === 'refuses') this.#end(call, 'failed', this.now);
    else if (behavior === 'loses') this.#end(call, 'unknown', this.now);
    else {
      this.#open(call);
      if (behavior === 'tells at once') this.reportOutcome(call.id, 'completed', false, true);
    }
  }

  /**
   * When a core is killed, the provider may or may not have a call that the core has just claimed. No one knows, so the call isn't handed
   * off again.
   *
   * @returns false if that can't be, because no core has just claimed it
   */
  lose(call: Call, handoffs: number): boolean {
    if (call.claimedAt !== this.now || handoffs > call.handoffs || handoffs < call.handoffs - 1) return false;
    call.handoffs = handoffs;
    call.endedAt = null;
    this.#open(call);
    return true;
  }

  #open(call: Call): void {
    call.stage = 'open';
    call.dueAt = this.now + lease;
  }

  #take(call: Call): void {
    call.stage = 'taken';
    call.dueAt = this.now + wait;
  }

  /** The walk's random numbers always choose the shortest delay. */
  #retry(call: Call): void {
    const { at, cancels } = this.keys.get(call.key)?.revoked ?? { at: 0, cancels: false };
    call.stage = 'retry';
    call.dueAt = this.now + second / 10;
    if (call.body.notAfter === null && call.dueAt > (call.triedAt ?? 0) + tries) this.#end(call, 'failed', this.now);
    else if (cancels) this.#end(call, 'cancelled', at);
  }

  /** The silent provider responds to everything it has. This changes nothing for a dialer that has stopped waiting. */
  respond(takes: boolean): Expected {
    for (const call of this.calls.values()) {
      if (call.stage !== 'open') continue;
      if (takes) this.#take(call);
      else this.#retry(call);
    }
    return { status: 200 };
  }

  #end(call: Call, stage: Stage, at: number): void {
    call.stage = stage;
    call.endedAt = at;
  }

  /** A call without `notAfter` isn't dialed more than a month late. */
  #isForgotten({ body, dueAt }: Call): boolean {
    return body.notAfter === null && dueAt + life < this.now;
  }

  /** Does what the cores do every hour: block and end calls, and erase the contact data of calls that ended long ago. */
  keepHouse(): void {
    this.#blockListed();
    if (!this.isClockTrusted) return;
    this.#recover(this.latest > this.now + skew);
    for (const call of this.calls.values()) {
      if (isWaiting(call) && this.#isForgotten(call)) this.#end(call, 'lapsed', call.dueAt + life);
      if (call.endedAt !== null && call.endedAt < this.now - retentionDays * day) call.isErased = true;
    }
    for (const user of this.users.values()) if (!this.isSignedIn({ user: user.id, tenancy: null })) user.session = null;
    this.dial();
  }

  /** Sets the clock back. */
  setBack(now: number): void {
    // The clocks of cores may differ that much.
    const isStep = this.now - now > skew;
    if (this.isClockTrusted) this.latest = this.now;
    this.now = now;
    this.isClockTrusted = true;
    if (isStep) this.#recover(true);
  }

  /**
   * Makes calls due that wait for longer than they could if the clock had always been right.
   *
   * @param hasStepped whether the clock was set back
   */
  #recover(hasStepped: boolean): void {
    for (const call of this.calls.values()) {
      const { stage, dueAt, isHeld, body } = call;
      const notBefore = body.notBefore ?? 0;
      const latest = this.now + skew + (stage === 'open' ? lease : stage === 'queued' ? 0 : wait);
      const isRight = stage === 'queued' ? (isHeld ? !hasStepped : dueAt <= notBefore) : stage === 'retry' && !hasStepped;
      if (!isOpen(call) || dueAt <= latest || isRight) continue;
      Object.assign(call, { dueAt: isWaiting(call) ? Math.max(this.now, notBefore) : this.now, isHeld: false });
    }
  }

  // Everything else is derived from users, accounts and campaigns.

  #user(id: Id): User {
    const user = this.users.get(id);
    if (!user) throw new Error(`The model has no user ${id}.`);
    return user;
  }

  #findPartner(account: Id | null): Id {
    return this.accounts.get(account ?? '')?.partner ?? '';
  }

  #scopeOfCampaign(campaign: Id): Scope {
    const account = this.campaigns.get(campaign)?.account ?? null;
    return { account, partner: this.#findPartner(account) };
  }

  #isWithin(inner: Scope, outer: Scope): boolean {
    return outer.account === null ? inner.partner === outer.partner : inner.account === outer.account;
  }
}

/** Whether a call waits for a dialer, and can be cancelled, lapse or be blocked. */
export function isWaiting({ stage }: Call): boolean {
  return stage === 'queued' || stage === 'retry';
}

/** Whether a call is being dialed: by the dialer, between two attempts, or by the provider. */
function isDialing({ stage }: Call): boolean {
  return stage === 'open' || stage === 'retry' || stage === 'taken';
}

export function isOpen(call: Call): boolean {
  return call.stage === 'queued' || isDialing(call);
}

export function getState(call: Call): CallState {
  return call.stage === 'open' || call.stage === 'retry' || call.stage === 'taken' ? 'dialing' : call.stage;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
