import type { PasswordChange } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { auditEvent, cancelledCalls, describeChange, joinDetail, toOwningScope, userEvent } from '../audit/audit.ts';
import { type Millis, oneDay, plus } from '../instant.ts';
import type { Account, Actor, Caller, Session, User, Viewer } from '../model.ts';
import { type Page, readPage, type TimePosition, timeCursors, toPage } from '../paging.ts';
import type {
  CancelQueuedCalls,
  ListedUser,
  ListFilter,
  NewPassword,
  Ports,
  TargetUser,
  ToKeyEvent,
  UserChange,
  UserInput,
} from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { requireGoodPassword } from '../sign-in/new-password.ts';
import { generateOneTimePassword, ownAttempt, requireCode, requireNoFactor } from '../sign-in/second-factor.ts';
import { checkPassword, countTaken, requirePasswordSignIn, requireUntaken } from '../sign-in/throttle.ts';
import { notInScope } from './directory.ts';
import { readableEmail } from './readable-email.ts';
import { scopeFor, type UserVisibility } from './scope.ts';

const oneTimePasswordLife = 7 * oneDay;
export const oneTimePasswordNote = 'This password is shown only once. It works for seven days, or until the user chooses a new one.';

/** Removing someone who has left the company at the identity provider doesn't revoke their keys, so the console marks who's away. */
export function awaySince(now: Millis): Millis {
  return plus(now, -limits.awayDays * oneDay);
}

type UserFilter = ListFilter & { away: boolean };

export async function listUsers(ports: Ports, viewer: Viewer, { search, cursor, away }: UserFilter): Promise<Page<ListedUser>> {
  const filter = { search, awaySince: away ? awaySince(ports.clock.now()) : null };
  const visibility = toVisibility(viewer);
  const page = { cursor, size: limits.directoryPage };
  return readPage(userCursors, page, (after, rows) => ports.stores.users.list(visibility, filter, after, rows), toPosition);
}

const userCursors = timeCursors('users');

function toPosition({ createdAt, id }: { createdAt: Millis; id: string }): TimePosition {
  return { at: createdAt, id };
}

/** `accountId` and `partnerId` default to those of the caller's scope. */
type NewUserInput = Omit<UserInput, 'accountId' | 'partnerId'> & {
  accountId?: string | null | undefined;
  partnerId?: string | null | undefined;
};

/** Creates a user within the caller's scope. Without a password, generates and returns a one-time password. */
export async function createUser(
  ports: Ports,
  { viewer, actor }: Caller,
  { email, name, userType, ...place }: NewUserInput,
  password: string | null = null,
): Promise<{ user: ListedUser; password: string | null }> {
  const input = { email, name, userType, ...(await membershipWithin(ports, viewer, { userType, ...place })) };
  const create = async () => {
    const membership = await readMembership(ports, input);
    const { stored, password: made } = await createPassword(ports, input, password);
    const user: User = { id: ports.randomness.id(), email, name, userType, ...membership };
    const event = userEvent(ports, actor, 'user.added', user);
    const partnerId = membership.partner?.id ?? membership.account?.partnerId ?? null;
    await ports.stores.users.create({ ...input, id: user.id, partnerId, password: stored, createdAt: event.at }, event);
    const unused = { lastSignInAt: null, disabledAt: null, apiKeys: 0, link: null, hasSecondFactor: false, signInVersion: '' };
    const listed = { ...user, partnerName: user.partner?.name ?? null, createdAt: event.at, ...unused };
    // Without passwords, the user signs in with the identity provider, and no one learns this password.
    return { user: listed, password: ports.passwordSignIn ? made : null };
  };
  return viewer.userType === 'staff' || viewer.userType === 'operator' ? create() : withoutTelling(ports, viewer, create);
}

/**
 * Creates a user for someone who can't see all users. If the address is taken, the response doesn't say where, and not many are tried: a
 * person has only one user here, so the response can't be the same as for a free address.
 */
async function withoutTelling<Created>(ports: Ports, viewer: Viewer, create: () => Promise<Created>): Promise<Created> {
  await requireUntaken(ports, viewer.id);
  return create().catch(async (error: unknown) => {
    if (!(error instanceof Problem) || error.code !== 'conflict') throw error;
    await countTaken(ports, viewer.id);
    throw new Problem(
      'conflict',
      "This email address can't be used for a new user. If the person isn't in the list, ask the service's staff.",
    );
  });
}

/** Returns the account and partner of a new user, which must be in the viewer's scope. */
async function membershipWithin(
  ports: Ports,
  viewer: Caller['viewer'],
  { userType, accountId, partnerId }: Pick<NewUserInput, 'userType' | 'accountId' | 'partnerId'>,
): Promise<Pick<UserInput, 'accountId' | 'partnerId'>> {
  const visibility = toVisibility(viewer);
  if (visibility.kind === 'all') return { accountId: accountId ?? null, partnerId: partnerId ?? null };
  if (visibility.kind === 'nothing' || (visibility.kind === 'staff') !== (userType === 'staff')) {
    if (viewer.userType !== 'staff') throw new Problem('forbidden', "You can't create users of this type.");
    const isStaff = userType === 'staff';
    throw new Problem(
      'forbidden',
      isStaff
        ? 'To create a staff user, clear the selected account or partner first.'
        : 'Select an account or partner for the new user first.',
    );
  }
  if (visibility.kind === 'staff') return { accountId: accountId ?? null, partnerId: partnerId ?? null };
  if (partnerId != null && partnerId !== visibility.partnerId) throw notInScope('partnerId', 'partner');
  if (visibility.kind === 'account' && accountId != null && accountId !== visibility.accountId) throw notInScope('accountId', 'account');
  const account = accountId == null ? null : await findAccount(ports, accountId);
  if (accountId != null && account?.partnerId !== visibility.partnerId) throw notInScope('accountId', 'account');
  return {
    accountId: accountId ?? (visibility.kind === 'account' ? visibility.accountId : null),
    partnerId: userType === 'partner' ? visibility.partnerId : (partnerId ?? null),
  };
}

/** Returns the account and partner, if they're those of a {@link User} of this type. */
async function readMembership(ports: Ports, { userType, accountId, partnerId }: Omit<UserChange, 'name'>) {
  if (userType === 'account' && partnerId !== null)
    throw invalidField('partnerId', "An account user needs an account and can't have a partner.");
  if (userType === 'account' && accountId === null) throw invalidField('accountId', 'An account user needs an account.');
  if (userType === 'partner' && partnerId === null) throw invalidField('partnerId', 'A partner user needs a partner.');
  if (userType === 'staff' && (accountId !== null || partnerId !== null)) {
    throw invalidField(accountId === null ? 'partnerId' : 'accountId', "A staff user can't have an account or a partner.");
  }
  const account = accountId === null ? null : await findAccount(ports, accountId);
  if (accountId !== null && !account) throw invalidField('accountId', `The account ${accountId} doesn't exist.`);
  const partner = partnerId === null ? null : await ports.stores.directory.findTenancy({ kind: 'partner', id: partnerId });
  if (partnerId !== null && !partner) throw invalidField('partnerId', `The partner ${partnerId} doesn't exist.`);
  if (account && partner && account.partnerId !== partner.id)
    throw invalidField('accountId', "This account doesn't belong to that partner.");
  return { account, partner: partner && { id: partner.id, name: partner.name } };
}

async function findAccount({ stores }: Ports, id: string): Promise<Account | null> {
  const found = await stores.directory.findTenancy({ kind: 'account', id });
  return found && { id, name: found.name, partnerId: found.partnerId };
}

/** What to change about a user. What's missing stays as it is. */
type Change = { [Field in keyof UserChange]?: UserChange[Field] | undefined } & { disabled?: boolean | undefined };

/** Applies to the user's keys from the next request. Skips changes that wouldn't change anything. */
export async function changeUser(
  ports: Ports,
  { viewer, actor }: Caller,
  { id }: Pick<User, 'id'>,
  { disabled, ...change }: Change,
): Promise<ListedUser> {
  const isOnlyRename = disabled === undefined && change.accountId === undefined;
  const ifSelf = isOnlyRename ? null : "You can't disable or move yourself. Ask another administrator to do it.";
  const user = await findUser(ports, viewer, { id }, ifSelf);
  const { name = user.name, userType = user.userType } = change;
  const { accountId = user.account?.id ?? null, partnerId = user.partner?.id ?? null } = change;
  if (accountId !== (user.account?.id ?? null)) await requireInScope(ports, toVisibility(viewer), accountId);
  const isUnchanged = accountId === (user.account?.id ?? null) && partnerId === (user.partner?.id ?? null);
  const changed =
    isUnchanged && name === user.name && userType === user.userType
      ? user
      : await applyChange(ports, { viewer, actor }, user, { name, userType, accountId, partnerId });
  if (disabled === undefined || disabled === (changed.disabledAt !== null)) return changed;
  await setDisabled(ports, actor, changed, disabled);
  // If the user has left the caller's scope in the meantime, nothing was changed, and this lookup fails.
  const found = await findUser(ports, viewer, { id });
  if (disabled !== (found.disabledAt !== null)) throw await explainUnchanged(ports, found);
  return found;
}

async function applyChange(ports: Ports, { viewer, actor }: Caller, user: ListedUser, change: UserChange): Promise<ListedUser> {
  const { name, userType, accountId } = change;
  const membership = await readMembership(ports, change);
  const changed: User = { ...user, name, userType, ...membership };
  // Doesn't name what the user has left, because the users of the new account or partner may not know it.
  const move = (from: { id: string } | null, to: User['partner']) =>
    from?.id === to?.id ? (['', ''] as const) : ([from ? 'another' : 'none', to?.name ?? 'none'] as const);
  const detail = describeChange({
    name: [user.name, name],
    type: [user.userType, userType],
    account: move(user.account, changed.account),
    partner: move(user.partner, changed.partner),
  });
  const event = { ...userEvent(ports, actor, 'user.changed', changed), detail };
  const requested = { name, userType, accountId, partnerId: membership.partner?.id ?? membership.account?.partnerId ?? null };
  if (!(await ports.stores.users.change(user.id, toChange(user), requested, event))) throw await explainUnchanged(ports, user);
  return findUser(ports, viewer, user);
}

function toChange(user: User): UserChange {
  const { accountId, partnerId } = toOwningScope(user) ?? { accountId: null, partnerId: null };
  return { name: user.name, userType: user.userType, accountId, partnerId };
}

/** Requires the new account to be in the viewer's scope, which also means that the user stays with the same partner. */
async function requireInScope(ports: Ports, visibility: UserVisibility, accountId: string | null): Promise<void> {
  if (visibility.kind === 'all') return;
  const account = accountId === null ? null : await findAccount(ports, accountId);
  const isInScope = visibility.kind === 'partner' && (accountId === null || account?.partnerId === visibility.partnerId);
  if (!isInScope) throw notInScope('accountId', 'account');
}

async function explainUnchanged({ stores }: Ports, { id }: Pick<User, 'id'>): Promise<Problem> {
  if (!(await stores.users.find({ kind: 'all' }, id))) return new Problem('not-found', "This user doesn't exist.");
  return new Problem(
    'conflict',
    "Someone else changed this user in the meantime. Check the user's current name and account, then try again.",
  );
}

/** Refuses the user and their keys from the next request on. Only for the operator. @returns the number of sessions that this ended */
export async function disableUser(ports: Ports, { actor }: Caller, user: User): Promise<number> {
  const sessions = await setDisabled(ports, actor, user, true, { id: user.id });
  if (sessions === null) throw new Problem('conflict', `${readableEmail(user.email)} is already disabled.`);
  return sessions;
}

/** Re-enables a disabled user and their keys. Only for the operator. */
export async function enableUser(ports: Ports, { actor }: Caller, user: User): Promise<void> {
  const ended = await setDisabled(ports, actor, user, false, { id: user.id });
  if (ended === null) throw new Problem('conflict', `${readableEmail(user.email)} isn't disabled.`);
}

function setDisabled(ports: Ports, actor: Actor, user: User, isDisabled: boolean, target: TargetUser = user): Promise<number | null> {
  const event = userEvent(ports, actor, isDisabled ? 'user.disabled' : 'user.enabled', user);
  return ports.stores.users.setDisabled(target, isDisabled ? event.at : null, event);
}

/** Shows a page of the user's keys, newest first. `user.apiKeys` is the number of all. */
export async function previewDeletion(ports: Ports, viewer: Viewer, id: string, cursor: string | null) {
  const after = keyCursors.read(cursor);
  const user = await findUser(ports, viewer, { id });
  const { apiKeys, sessions } = await ports.stores.users.deletionImpact(id, after, limits.directoryPage + 1);
  return { user, sessions, apiKeys: toPage(keyCursors, limits.directoryPage, apiKeys, toPosition) };
}

const keyCursors = timeCursors('keys');

export async function deleteUser(ports: Ports, { viewer, actor }: Caller, { id }: Pick<User, 'id'>, cancelQueuedCalls: CancelQueuedCalls) {
  const user = await findUser(ports, viewer, { id }, "You can't delete yourself. Ask another administrator to do it.");
  const event = { ...userEvent(ports, actor, 'user.deleted', user), ...(cancelQueuedCalls ? { detail: cancelledCalls } : {}) };
  const options = { cancelQueuedCalls, at: ports.clock.now() };
  const gone = await ports.stores.users.delete(toTarget(viewer, user), options, event, toKeyEvent(ports));
  if (cancelQueuedCalls === 'soon') ports.onCallsLeft();
  if (!gone) throw await explainUnchanged(ports, user);
  return gone;
}

export function finishUserChanges(ports: Ports, signal: AbortSignal): Promise<number> {
  return ports.stores.users.finishChanges(toKeyEvent(ports), signal);
}

function toKeyEvent(ports: Ports): ToKeyEvent {
  return ({ actor, address, subject, detail }, { id, name, eventScope }) => ({
    ...auditEvent(ports, { who: null, address }, 'api-key.revoked', { kind: 'api-key', id, name }, eventScope),
    actor,
    detail: joinDetail(`its user ${subject.name} was deleted`, detail),
  });
}

/** Unlinks a user from their identity, and ends their sessions. Their next sign-in links them again, by email address. */
export async function unlinkUser(ports: Ports, { viewer, actor }: Caller, { id }: Pick<User, 'id'>): Promise<void> {
  const user = await findUser(ports, viewer, { id }, "You can't unlink yourself. Ask another administrator to do it.");
  const event = userEvent(ports, actor, 'user.unlinked', user);
  if (await ports.stores.links.delete(toTarget(viewer, user), event)) return;
  const found = await ports.stores.users.find({ kind: 'all' }, id);
  throw found?.link
    ? await explainUnchanged(ports, user)
    : new Problem('conflict', `${readableEmail(user.email)} isn't linked to an identity at the provider.`);
}

/** Removes the second factor of a user who has lost it, and ends their sessions. @returns the number of sessions */
export async function resetSecondFactor(ports: Ports, { viewer, actor }: Caller, { id }: Pick<User, 'id'>): Promise<number> {
  const refusal = "You can't reset your own second factor. Turn it off instead, which requires a code.";
  const user = await findUser(ports, viewer, { id }, refusal);
  if (viewer.userType !== 'operator' && !user.hasSecondFactor) throw new Problem('conflict', `${user.name} has no second factor.`);
  const event = userEvent(ports, actor, 'second-factor.reset', user);
  const sessions = await ports.stores.secondFactors.reset(toTarget(viewer, user), event);
  if (sessions === null) throw new Problem('not-found', `${readableEmail(user.email)} has no second factor.`);
  return sessions;
}

/** Gives a user a new password, and ends all of their sessions. Without a password, generates and returns a one-time password. */
export async function resetPassword(ports: Ports, { viewer, actor }: Caller, { id }: Pick<User, 'id'>, password: string | null = null) {
  requirePasswordSignIn(ports);
  // Changing your own password requires the current one, so that someone who has taken over a session can't lock out its user.
  const refusal = "You can't reset your own password. Change it instead, which requires your current password.";
  const user = await findUser(ports, viewer, { id }, refusal);
  const { stored, password: made } = await createPassword(ports, user, password);
  const event = userEvent(ports, actor, 'password.reset', user);
  // The user may have been moved out of the administrator's scope while the password waited to be hashed.
  if (!(await ports.stores.users.setPassword(toTarget(viewer, user), stored, event))) throw await explainUnchanged(ports, user);
  return { password: made };
}

/** @returns the password to hand out, if it wasn't chosen */
async function createPassword(ports: Ports, user: Pick<User, 'email'>, chosen: string | null) {
  if (chosen === null) return makeOneTimePassword(ports);
  await requireGoodPassword(ports, user, chosen, 'password');
  return { password: null, stored: { hash: await ports.passwords.hash(chosen), expiresAt: null, isHandedOut: false } };
}

/** Generates a password of 120 bits that the user must change soon. */
export async function makeOneTimePassword(ports: Ports): Promise<{ password: string; stored: NewPassword }> {
  const password = generateOneTimePassword(ports);
  const expiresAt = plus(ports.clock.now(), oneTimePasswordLife);
  return { password, stored: { hash: await ports.passwords.hash(password), expiresAt, isHandedOut: true } };
}

function toVisibility(viewer: Caller['viewer']): UserVisibility {
  if (viewer.userType === 'account') throw new Problem('forbidden', "Account users can't manage users.");
  return scopeFor(viewer).users;
}

/** @param ifSelf refuses the viewer's own ID. This is checked first, because staff who have selected a tenancy can't find themselves in it */
async function findUser(ports: Ports, viewer: Caller['viewer'], { id }: Pick<User, 'id'>, ifSelf: string | null = null) {
  const visibility = toVisibility(viewer);
  if (ifSelf !== null && viewer.userType !== 'operator' && id === viewer.id) throw new Problem('conflict', ifSelf);
  const user = await ports.stores.users.find(visibility, id);
  if (user) return user;
  throw new Problem(
    'not-found',
    visibility.kind === 'all' ? "This user doesn't exist." : "This user doesn't exist, or you don't have access to them.",
  );
}

/** Returns the user as they must still be when the change is made. The operator's change applies even if the user changes in between. */
function toTarget({ userType }: Caller['viewer'], user: ListedUser): TargetUser {
  return userType === 'operator' ? { id: user.id } : user;
}

/** Ends the user's other sessions. A user who signed in with a one-time password doesn't have to enter it again. */
export async function changePassword(
  ports: Ports,
  actor: Actor,
  { user, passwordChangeDue, issuer, signInVersion }: Session,
  { currentPassword, newPassword, code }: PasswordChange,
): Promise<void> {
  requirePasswordSignIn(ports);
  const isForced = currentPassword === undefined && passwordChangeDue;
  if (code === undefined) await requireNoFactor(ports, user);
  await requireGoodPassword(ports, user, newPassword, 'newPassword');
  if (isForced) await checkOneTime(ports, actor, user, newPassword);
  else await checkCurrent(ports, actor, user, currentPassword, newPassword);
  await requireCode(ports, actor, user, code);
  const event = userEvent(ports, actor, 'password.changed', user);
  // If the identity provider vouches for the session, no one else chose this password.
  const stored = { hash: await ports.passwords.hash(newPassword), expiresAt: null, ...(issuer === null ? {} : { isHandedOut: false }) };
  const changed = await ports.stores.users.setPassword({ id: user.id, signInVersion }, stored, event);
  if (!changed) throw wrongCurrentPassword();
}

async function checkCurrent(ports: Ports, actor: Actor, user: User, current: string | undefined, chosen: string): Promise<void> {
  if (current === undefined) throw invalidField('currentPassword', 'Enter your current password.');
  if (!(await checkPassword(ports, ownAttempt(actor, user), user.email, current))) throw wrongCurrentPassword();
  if (chosen === current) throw sameAsCurrent();
}

/** The session already proves that the user knows the one-time password. */
async function checkOneTime(ports: Ports, actor: Actor, user: User, chosen: string): Promise<void> {
  const credentials = await ports.stores.users.findByEmail(user.email);
  if (!credentials?.passwordExpiresAt) throw wrongCurrentPassword();
  if (await ports.passwords.verify(async () => credentials, chosen, ownAttempt(actor, user))) throw sameAsCurrent();
}

function sameAsCurrent(): Problem {
  return invalidField('newPassword', "Choose a password that's different from your current one.");
}

function wrongCurrentPassword(): Problem {
  return invalidField('currentPassword', 'Incorrect current password.');
}
