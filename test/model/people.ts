/**
 * Who exists, and who sees, uses and changes what: users, their sessions and second factors, keys, accounts and campaigns. The model of calls
 * (model.ts) extends it.
 *
 * All times are in milliseconds.
 */
import type { UserType } from '#contract/console/common.ts';

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** How far the clocks of the cores may differ. */
export const skew = 5 * minute;
/** How often an authenticator app shows a new code. */
export const codeEvery = 30 * second;
/** How long a session lasts without requests, and at most. A request counts as use if the previous one was more than a minute earlier. */
const session = { idle: day, absolute: 7 * day, touch: minute };

export type Id = string;
/** An account with its partner, or a whole partner. */
export type Scope = { account: Id | null; partner: Id };
export type User = Readonly<{
  id: Id;
  email: string;
  type: UserType;
  account: Id | null;
  partner: Id | null;
  isDisabled: boolean;
  session: { startedAt: number; seenAt: number } | null;
  /** The time step of the last code from the user's app that was used; null for a user without a second factor. */
  lastCode: number | null;
}>;
/** A signed-in user. Staff act for an account or a partner. */
export type Viewer = { user: Id; tenancy: Scope | null };
export type Key = Readonly<{
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
  placed: ReadonlyMap<number, number>;
  /** Set once it's revoked. `cancels` says whether its calls are cancelled as well. */
  revoked: { at: number; cancels: boolean } | null;
}>;

/** What the model expects of a response. Omitted fields may have any value. */
export type Expected = {
  status: number;
  code?: string;
  text?: string;
  replayed?: boolean;
  json?: Readonly<Record<string, unknown>>;
  /** How many calls the key can still place today, from the header `RateLimit`. Null if the response doesn't have it. */
  quota?: string | null;
};
/** A response, from which the model learns the identifiers and key values that the core chose. */
export type Answer = { status: number; text: string; json: Readonly<Record<string, unknown>> };

export const unauthorized: Expected = { status: 401, code: 'unauthorized' };
export const forbidden: Expected = { status: 403, code: 'forbidden' };
export const notFound: Expected = { status: 404, code: 'not-found' };
const conflict: Expected = { status: 409, code: 'conflict' };
export const invalid: Expected = { status: 422, code: 'invalid' };

export abstract class People {
  now = 0;
  users = new Map<Id, User>();
  keys = new Map<Id, Key>();
  accounts = new Map<Id, { partner: Id; name: string }>();
  campaigns = new Map<Id, { account: Id; name: string }>();

  /** Cancels the waiting calls of a key. */
  protected abstract cancelCalls(key: Id): void;

  // Sessions

  /** A session ends after a day without requests, after a week, when its user is disabled or deleted, or if it's from the future. */
  isSignedIn({ user }: Viewer): boolean {
    const { startedAt = 0, seenAt = 0 } = this.users.get(user)?.session ?? {};
    const isIn = (at: number, most: number) => at >= this.now - most && at <= this.now + skew;
    return isIn(startedAt, session.absolute) && isIn(seenAt, session.idle);
  }

  /** @param code the time step of a code, if the user has a second factor */
  signIn({ user }: Viewer, code: number | null): void {
    this.changeUser(user, { session: { startedAt: this.now, seenAt: this.now }, lastCode: code });
  }

  /** Every request in a session counts as use. */
  use({ user }: Viewer): void {
    const found = this.users.get(user)?.session;
    if (found && Math.abs(this.now - found.seenAt) > session.touch) this.changeUser(user, { session: { ...found, seenAt: this.now } });
  }

  signOut({ user }: Viewer): Expected {
    this.changeUser(user, { session: null });
    return { status: 204 };
  }

  /**
   * Returns the time step of the next code that the user could enter; null if it's too early for a new one, because each code works once.
   */
  findNextCode({ user }: Viewer): number | null {
    const current = Math.floor(this.now / codeEvery);
    const next = Math.max(current, (this.getUser(user).lastCode ?? 0) + 1);
    return next > current + 1 ? null : next;
  }

  /** @param code the time step of the first code of a new second factor; null to remove it */
  setFactor({ user }: Viewer, code: number | null): Expected {
    const { lastCode } = this.getUser(user);
    if (code === null && lastCode === null) return notFound;
    if (code !== null && lastCode !== null) return conflict;
    this.changeUser(user, { lastCode: code });
    return { status: code === null ? 204 : 200 };
  }

  // Who sees what

  /** Returns the scope in which a viewer acts, and creates keys; null for staff who have chosen none. */
  findScope({ user, tenancy }: Viewer): Scope | null {
    const { type, account, partner } = this.getUser(user);
    if (type === 'staff') return tenancy;
    return { account, partner: partner ?? this.findPartner(account) };
  }

  /**
   * Account users see their own keys. Others see the keys of their scope. Partner users who are limited to one account also see their own.
   */
  seesKey(viewer: Viewer, { creator, scope }: Key): boolean {
    const { type, id } = this.getUser(viewer.user);
    const own = this.findScope(viewer);
    if (!own) return false;
    if (type === 'account') return creator === id;
    if (type === 'staff') return isWithin(scope, own);
    if (own.account !== null) return scope.account === own.account || creator === id;
    const by = this.users.get(creator);
    return (by?.type === 'staff' ? scope.partner : by && (by.partner ?? this.findPartner(by.account))) === own.partner;
  }

  seesCampaign(viewer: Viewer, campaign: Id): boolean {
    const scope = this.findScope(viewer);
    return scope !== null && isWithin(this.scopeOf(campaign), scope);
  }

  seesUser(viewer: Viewer, { type, account, partner }: User): boolean {
    if (this.getUser(viewer.user).type === 'account') return false;
    const scope = this.findScope(viewer);
    if (!scope || type === 'staff') return !scope && type === 'staff';
    return isWithin({ account, partner: partner ?? this.findPartner(account) }, scope);
  }

  // Keys

  /** A key does what its creator may do now, and works until it's revoked, its last day ends, or its creator is disabled. */
  isActive({ creator, expiresAt, revoked, isElsewhere }: Key): boolean {
    const user = this.users.get(creator);
    const hasEnded = revoked !== null || (expiresAt !== null && this.now > expiresAt);
    return user !== undefined && !user.isDisabled && !hasEnded && !isElsewhere;
  }

  /** A partner user's key has access to all of the partner's campaigns, even if the user is limited to one account. */
  hasAccess({ creator, scope }: Key, campaign: Id): boolean {
    const { type, account, partner } = this.getUser(creator);
    const target = this.scopeOf(campaign);
    if (type === 'account') return target.account === account;
    return type === 'partner' ? target.partner === partner : isWithin(target, scope);
  }

  /** @param days until the key expires, counted in UTC; null if it doesn't expire */
  createKey(viewer: Viewer, days: number | null, answer: Answer): Expected {
    const scope = this.findScope(viewer);
    if (!scope) return forbidden;
    const id = readId(answer, 'apiKey');
    const expiresAt = days === null ? null : (Math.floor(this.now / day) + days + 1) * day - 1;
    const value = String(answer.json['keyValue']);
    const unlimited = { callsPerDay: null, isElsewhere: false, placed: new Map(), revoked: null };
    this.keys.set(id, { id, value, creator: viewer.user, scope, createdAt: this.now, expiresAt, ...unlimited });
    return { status: 201, json: { apiKey: { expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString() } } };
  }

  limitKey(viewer: Viewer, id: Id, limits: Partial<Pick<Key, 'callsPerDay' | 'isElsewhere'>>): Expected {
    const key = this.#findKey(viewer, id);
    if (!key) return notFound;
    // A new limit counts the calls since the day began, but not those that were placed while the clock was ahead.
    const today = Math.floor(this.now / day);
    const isNew = key.callsPerDay === null && limits.callsPerDay !== undefined;
    const placed = isNew ? new Map([[today, key.placed.get(today) ?? 0]]) : key.placed;
    const limited = { ...key, ...limits, placed };
    this.keys.set(id, limited);
    return { status: 200, json: { apiKey: { callsPerDay: limited.callsPerDay } } };
  }

  revokeKey(viewer: Viewer, id: Id, cancels: boolean): Expected {
    const key = this.#findKey(viewer, id);
    if (!key) return notFound;
    this.#revoke(key, cancels);
    return { status: 204 };
  }

  #findKey(viewer: Viewer, id: Id): Key | null {
    const key = this.keys.get(id);
    return key && !key.revoked && this.seesKey(viewer, key) ? key : null;
  }

  #revoke(key: Key, cancels: boolean): void {
    this.keys.set(key.id, { ...key, revoked: { at: this.now, cancels } });
    if (cancels) this.cancelCalls(key.id);
  }

  // Users

  /** Partner users and staff disable, move and delete the users of their scope, but not themselves. @returns the response if it's refused */
  #findUser(viewer: Viewer, id: Id): User | Expected {
    const user = this.users.get(id);
    if (this.getUser(viewer.user).type === 'account') return forbidden;
    if (viewer.user === id) return conflict;
    return user && this.seesUser(viewer, user) ? user : notFound;
  }

  disableUser(viewer: Viewer, id: Id, isDisabled: boolean): Expected {
    const user = this.#findUser(viewer, id);
    if ('status' in user) return user;
    this.changeUser(id, isDisabled && !user.isDisabled ? { isDisabled, session: null } : { isDisabled });
    return { status: 200 };
  }

  /** Only users who see a whole partner can move its users. @param account null for all accounts */
  moveUser(viewer: Viewer, id: Id, account: Id | null): Expected {
    const user = this.#findUser(viewer, id);
    if ('status' in user) return user;
    const scope = this.findScope(viewer);
    const isInScope = scope?.account === null && (account === null || this.findPartner(account) === scope.partner);
    if (account !== user.account && (!isInScope || (account === null && user.type === 'account'))) return invalid;
    this.changeUser(id, { account });
    return { status: 200 };
  }

  deleteUser(viewer: Viewer, id: Id, cancels: boolean): Expected {
    const user = this.#findUser(viewer, id);
    if ('status' in user) return user;
    this.users.delete(id);
    for (const key of this.keys.values()) if (key.creator === id && !key.revoked) this.#revoke(key, cancels);
    return { status: 204 };
  }

  // Directory

  /** Staff manage all accounts and campaigns. Partner users who aren't limited to one account manage those of their partner. */
  manages(viewer: Viewer, partner: Id): boolean {
    const { type, account, partner: own } = this.getUser(viewer.user);
    return type === 'staff' || (type === 'partner' && account === null && own === partner);
  }

  /** @param otherwise the response to users who manage another partner */
  #denies(viewer: Viewer, partner: Id, otherwise: Expected): Expected | null {
    if (!this.manages(viewer, this.getUser(viewer.user).partner ?? '')) return forbidden;
    return this.manages(viewer, partner) ? null : otherwise;
  }

  /** Creates an account of a partner, or a campaign of an account. */
  create(viewer: Viewer, owner: Id, name: string, answer: Answer): Expected {
    const { account, partner } = this.scopeOf(owner);
    const denied = this.#denies(viewer, partner, invalid);
    if (denied) return denied;
    if (account === null) this.accounts.set(readId(answer, 'account'), { partner, name });
    else this.campaigns.set(readId(answer, 'campaign'), { account, name });
    return { status: 201 };
  }

  /** @param id the ID of an account or campaign */
  rename(viewer: Viewer, id: Id, name: string): Expected {
    const denied = this.#denies(viewer, this.scopeOf(id).partner, notFound);
    if (denied) return denied;
    const [campaign, account] = [this.campaigns.get(id), this.accounts.get(id)];
    if (campaign) this.campaigns.set(id, { ...campaign, name });
    if (account) this.accounts.set(id, { ...account, name });
    return { status: 200 };
  }

  // Everything else is derived from users, accounts and campaigns.

  protected getUser(id: Id): User {
    const user = this.users.get(id);
    if (!user) throw new Error(`The model has no user ${id}.`);
    return user;
  }

  changeUser(id: Id, changes: Partial<User>): void {
    this.users.set(id, { ...this.getUser(id), ...changes });
  }

  protected findPartner(account: Id | null): Id {
    return this.accounts.get(account ?? '')?.partner ?? '';
  }

  /** @param id the ID of a campaign, an account or a partner */
  scopeOf(id: Id): Scope {
    const account = this.campaigns.get(id)?.account ?? (this.accounts.has(id) ? id : null);
    return { account, partner: account === null ? id : this.findPartner(account) };
  }
}

export function isWithin(inner: Scope, outer: Scope): boolean {
  return outer.account === null ? inner.partner === outer.partner : inner.account === outer.account;
}

function readId({ json }: Answer, name: string): Id {
  const created = json[name];
  return typeof created === 'object' && created !== null && 'id' in created ? String(created.id) : '';
}
