/**
 * Models who exists and who can do what: partners with their accounts and campaigns, users with their sessions and second factors, and
 * keys. The model of calls (model.ts) extends this one. All times are in milliseconds.
 */
import type { UserType } from '#contract/console/common.ts';
import type { ProblemCode } from '#contract/problems.ts';
import type { ContactLimits, Pace } from '#contract/protection/dialing.ts';
import type { NumberRules } from '#contract/protection/numbers.ts';
import type { Answer } from '../support/http.ts';
import { day, type Expected, minute, refuse, second, Table } from './basics.ts';

/** How far the clocks of the cores may differ. */
export const skew = 5 * minute;
/** How often an authenticator app shows a new code. */
const codeEvery = 30 * second;
/** How long a session lasts without requests, and at most. A request counts as use if the previous one was more than a minute earlier. */
const session = { idle: day, absolute: 7 * day, touch: minute };

export type Id = string;
/** A partner, an account of a partner, or a campaign of an account. */
export type Node = Readonly<{
  id: Id;
  kind: 'partner' | 'account' | 'campaign';
  parent: Id | null;
  name: string;
  /** Numbers that must not be called. Campaigns have none. */
  listed: ReadonlySet<string>;
  /** Whether an account's opt-outs apply to all of its partner's accounts. */
  optsOutForPartner: boolean;
  /** Calling hours, the same every day, in minutes of the person's day. */
  hours: Readonly<{ from: number; to: number }> | null;
  numbers: NumberRules;
  /** How fast an account's or campaign's calls may leave; null for any pace. */
  pace: (Pace & { since: number }) | null;
  contactLimits: ContactLimits | null;
  /** When the last call left that counts for the pace. */
  leftAt: number;
  /** The same, by clocks that have been set back since then. */
  leftBefore: readonly number[];
}>;
/**
 * Dialing is stopped for a partner, account or campaign, or for the server.
 *
 * @property by who stopped it first @property rank the highest type of user who has stopped it, as an index in `userTypes`
 */
export type Stop = Readonly<{ id: Id; target: Id | null; by: Id; rank: number }>;
export type User = Readonly<{
  id: Id;
  email: string;
  type: UserType;
  /** The account or partner; null for staff. A partner user can be limited to one account. */
  home: Id | null;
  isDisabled: boolean;
  session: Readonly<{ startedAt: number; seenAt: number }> | null;
  /** The time step of the last code from the user's app that was used; null for a user without a second factor. */
  lastCode: number | null;
}>;
/** A user, signed in or not, and the account or partner that a staff user has selected, if any. */
export type Viewer = { user: Id; tenancy: Node | null };
export type Key = Readonly<{
  id: Id;
  value: string;
  creator: Id;
  scope: Id;
  createdAt: number;
  /** `Infinity` if it doesn't expire. */
  expiresAt: number;
  callsPerDay: number | null;
  /** Whether the key is limited to addresses other than the walk's. */
  isElsewhere: boolean;
  /** How many calls it has placed on a day, by the number of the day. */
  placed: ReadonlyMap<number, number>;
  /** Set once it's revoked. `cancels` says whether its calls are cancelled as well. */
  revoked: { at: number; cancels: boolean } | null;
}>;

export abstract class People {
  now = 0;
  directory = new Table<Node>();
  users = new Table<User>();
  keys = new Table<Key>();

  /** @param cancels whether the key's waiting calls are cancelled as well */
  protected abstract revoke(key: Id, cancels: boolean): void;

  // Sessions

  /**
   * A session ends after a day without requests, after a week, or when its user is disabled, moved or deleted. A session from the future,
   * as after the clock was set back, has ended as well.
   */
  isSignedIn(user: Id): boolean {
    const { startedAt = 0, seenAt = 0 } = this.users.get(user)?.session ?? {};
    const isIn = (at: number, most: number) => at >= this.now - most && at <= this.now + skew;
    return isIn(startedAt, session.absolute) && isIn(seenAt, session.idle);
  }

  /** @param code the time step of a code, if the user has a second factor */
  signIn(user: Id, code: number | null): void {
    this.users.change(user, { session: { startedAt: this.now, seenAt: this.now }, lastCode: code });
  }

  /** Every request in a session counts as use. */
  use(user: Id): void {
    const found = this.users.get(user)?.session;
    if (found && Math.abs(this.now - found.seenAt) > session.touch) this.users.change(user, { session: { ...found, seenAt: this.now } });
  }

  signOut(user: Id): undefined {
    this.users.change(user, { session: null });
  }

  /** Returns the time step of the next code that the user can enter; null if it's too early, because each code works once. */
  findNextCode(user: Id): number | null {
    const current = Math.floor(this.now / codeEvery);
    const next = Math.max(current, (this.users.require(user).lastCode ?? 0) + 1);
    return next > current + 1 ? null : next;
  }

  /** The walk sends no code with requests that need one from a user who has a second factor. */
  #confirm({ user }: Viewer): void {
    if (this.users.require(user).lastCode !== null) refuse('forbidden');
  }

  // Who sees what

  /** Returns a campaign, account or partner, followed by what it belongs to. */
  pathOf(id: Id | null): Node[] {
    const node = id === null ? null : this.directory.require(id);
    return node ? [node, ...this.pathOf(node.parent)] : [];
  }

  isWithin(id: Id | null, scope: Id | null): boolean {
    return this.pathOf(id).some((node) => node.id === scope);
  }

  partnerOf(id: Id | null): Id | null {
    return this.pathOf(id).at(-1)?.id ?? null;
  }

  isPartner(id: Id | null): boolean {
    return id !== null && this.directory.require(id).kind === 'partner';
  }

  /** Returns the account or partner that a viewer acts and creates keys for; null for staff who haven't selected one. */
  findScope({ user, tenancy }: Viewer): Id | null {
    const { type, home } = this.users.require(user);
    return type === 'staff' ? (tenancy?.id ?? null) : home;
  }

  /**
   * Account users see only their own keys. Partner users see their own keys and those of their scope. Staff see only the keys of their
   * scope.
   */
  seesKey(viewer: Viewer, { creator, scope }: Key): boolean {
    const { type, id } = this.users.require(viewer.user);
    return (type !== 'staff' && creator === id) || (type !== 'account' && this.isWithin(scope, this.findScope(viewer)));
  }

  /** Partner users and staff change what's in their scope. Account users only create and change their own keys, and list numbers. */
  protected requireAdministrator({ user }: Viewer): void {
    if (this.users.require(user).type === 'account') refuse('forbidden');
  }

  /** Staff who haven't selected an account or partner see each other. */
  seesUser(viewer: Viewer, { home }: User): boolean {
    if (this.users.require(viewer.user).type === 'account') return false;
    const scope = this.findScope(viewer);
    return home === null ? scope === null : this.isWithin(home, scope);
  }

  // Keys

  /**
   * A key works until it's revoked, its last day ends, or its creator is disabled or deleted. It's refused while it's limited to other
   * addresses.
   */
  isActive({ creator, expiresAt, revoked, isElsewhere }: Key): boolean {
    const user = this.users.get(creator);
    return user !== undefined && !user.isDisabled && !revoked && this.now <= expiresAt && !isElsewhere;
  }

  /**
   * A key can do what its creator can do now. A partner user's key even has access to all of the partner's campaigns if the user is limited
   * to one account, and a staff user's key only to the scope in which it was created.
   */
  hasAccess({ creator, scope }: Key, campaign: Id): boolean {
    const { type, home } = this.users.require(creator);
    const reach = { account: home, partner: this.partnerOf(home), staff: scope };
    return this.isWithin(campaign, reach[type]);
  }

  /** @param days until the key expires, counted in UTC, or `Infinity` */
  createKey(viewer: Viewer, days: number, answer: Answer): Expected {
    const scope = this.findScope(viewer) ?? refuse('forbidden');
    const [id, value] = [readId(answer, 'apiKey'), String(answer.json['keyValue'])];
    const expiresAt = (Math.floor(this.now / day) + days + 1) * day - 1;
    const unlimited = { callsPerDay: null, isElsewhere: false, placed: new Map(), revoked: null };
    this.keys.set(id, { id, value, creator: viewer.user, scope, createdAt: this.now, expiresAt, ...unlimited });
    return { json: { apiKey: { expiresAt: days === Number.POSITIVE_INFINITY ? null : new Date(expiresAt).toISOString() } } };
  }

  limitKey(viewer: Viewer, id: Id, limits: Partial<Pick<Key, 'callsPerDay' | 'isElsewhere'>>): Expected {
    const { callsPerDay, placed } = this.#requireKey(viewer, id);
    // A new limit counts from when it's set.
    const isNew = callsPerDay === null && limits.callsPerDay !== undefined;
    const limited = this.keys.change(id, { ...limits, placed: isNew ? new Map() : placed });
    return { json: { apiKey: { callsPerDay: limited.callsPerDay } } };
  }

  revokeKey(viewer: Viewer, id: Id, cancels: boolean): undefined {
    this.revoke(this.#requireKey(viewer, id).id, cancels);
  }

  #requireKey(viewer: Viewer, id: Id): Key {
    const key = this.keys.get(id);
    return key && !key.revoked && this.seesKey(viewer, key) ? key : refuse('not-found');
  }

  // Users

  addUser(user: Pick<User, 'id' | 'email' | 'type' | 'home'>): void {
    this.users.set(user.id, { ...user, isDisabled: false, session: null, lastCode: null });
  }

  /** No one can disable, move or delete themselves. */
  #requireUser(viewer: Viewer, id: Id): User {
    const user = this.users.get(id);
    this.requireAdministrator(viewer);
    if (viewer.user === id) refuse('conflict');
    return user && this.seesUser(viewer, user) ? user : refuse('not-found');
  }

  disableUser(viewer: Viewer, id: Id, isDisabled: boolean): undefined {
    if (!isDisabled) this.#confirm(viewer);
    const { session } = this.#requireUser(viewer, id);
    this.users.change(id, { isDisabled, session: isDisabled ? null : session });
  }

  /** Only users who act for a partner, not for a single account, can move its users. @param account null for all accounts */
  moveUser(viewer: Viewer, id: Id, account: Id | null): undefined {
    this.#confirm(viewer);
    const { type, home, session } = this.#requireUser(viewer, id);
    const [scope, to] = [this.findScope(viewer), account ?? this.partnerOf(home)];
    const isPossible = this.isPartner(scope) && this.isWithin(to, scope) && (account !== null || type !== 'account');
    if (to !== home && !isPossible) refuse('invalid');
    this.users.change(id, { home: to, session: to === home ? session : null });
  }

  deleteUser(viewer: Viewer, id: Id, cancels: boolean): undefined {
    this.#requireUser(viewer, id);
    this.users.delete(id);
    for (const key of this.keys.values()) if (key.creator === id && !key.revoked) this.revoke(key.id, cancels);
  }

  // Directory

  /** Staff manage all accounts and campaigns. Partner users who aren't limited to one account manage those of their partner. */
  manages(viewer: Viewer, id: Id): boolean {
    const { type, home } = this.users.require(viewer.user);
    return type === 'staff' || home === this.partnerOf(id);
  }

  /** @param otherwise the response to users who manage another partner */
  #requireManager(viewer: Viewer, id: Id, otherwise: ProblemCode): void {
    if (!this.manages(viewer, id)) refuse(this.isPartner(this.users.require(viewer.user).home) ? otherwise : 'forbidden');
  }

  /** Creates an account of a partner, or a campaign of an account. */
  create(viewer: Viewer, parent: Id, name: string, answer: Answer): undefined {
    this.#requireManager(viewer, parent, 'invalid');
    const kind = this.isPartner(parent) ? 'account' : 'campaign';
    this.add({ id: readId(answer, kind), kind, parent, name });
  }

  add(node: Pick<Node, 'id' | 'kind' | 'parent' | 'name'>): void {
    const numbers = { countries: null, kinds: null };
    this.directory.set(node.id, { ...node, listed: new Set(), optsOutForPartner: false, hours: null, numbers, ...unrationed });
  }

  rename(viewer: Viewer, id: Id, name: string): undefined {
    this.#requireManager(viewer, id, 'not-found');
    this.directory.change(id, { name });
  }
}

const unrationed = { pace: null, contactLimits: null, leftAt: 0, leftBefore: [] };

export function readId({ json }: Answer, name: string): Id {
  const created = json[name];
  return typeof created === 'object' && created !== null && 'id' in created ? String(created.id) : '';
}
