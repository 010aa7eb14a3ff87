import type { PasswordChange } from '#contract/console/session.ts';
import { auditEvent, toOwningScope, userSubject } from '../audit/audit.ts';
import { oneDay, plus } from '../instant.ts';
import type { Account, Actor, NewPassword, Session, TargetUser, User, UserChange, UserInput } from '../model.ts';
import type { Ports } from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { requirePasswordSignIn } from '../sign-in/passwords-off.ts';
import { ownAttempt, requireCode, requireNoFactor } from '../sign-in/second-factor.ts';
import { checkPassword } from '../sign-in/throttle.ts';

/** How long a user has to change a password that someone else chose. */
const oneTimePasswordLife = 7 * oneDay;
export const oneTimePasswordNote = 'This password is shown only once. It works for seven days, or until the user chooses a new one.';

/** Creates a user. Without a password, generates and returns a one-time password. */
export async function createUser(
  ports: Ports,
  actor: Actor,
  input: UserInput,
  password: string | null,
): Promise<{ user: User; password: string | null }> {
  const membership = await readMembership(ports, input);
  const { stored, made } = await createPassword(ports, password);
  const user: User = { id: ports.randomness.id(), email: input.email, name: input.name, userType: input.userType, ...membership };
  const event = auditEvent(ports, actor, 'user.added', userSubject(user), toOwningScope(user));
  await ports.stores.users.create(
    {
      ...input,
      id: user.id,
      partnerId: membership.partner?.id ?? membership.account?.partnerId ?? null,
      password: stored,
      createdAt: event.at,
    },
    event,
  );
  return { user, password: made };
}

/**
 * Returns a user's account and partner. Account users have an account; partner users have a partner and possibly one of its accounts; staff
 * have neither.
 */
async function readMembership(ports: Ports, { userType, accountId, partnerId }: Omit<UserChange, 'name'>) {
  if (userType === 'account' && partnerId !== null)
    throw invalidField('partnerId', "An account user needs an account and can't have a partner.");
  if (userType === 'account' && accountId === null) throw invalidField('accountId', 'An account user needs an account.');
  if (userType === 'partner' && partnerId === null) throw invalidField('partnerId', 'A partner user needs a partner.');
  if (userType === 'staff' && (accountId !== null || partnerId !== null)) {
    throw invalidField(accountId === null ? 'partnerId' : 'accountId', "A staff user can't have an account or a partner.");
  }
  const account: Account | null = accountId === null ? null : await ports.stores.tenancies.findAccount(accountId);
  if (accountId !== null && !account) throw invalidField('accountId', `The account ${accountId} doesn't exist.`);
  const partner = partnerId === null ? null : await ports.stores.tenancies.findPartner(partnerId);
  if (partnerId !== null && !partner) throw invalidField('partnerId', `The partner ${partnerId} doesn't exist.`);
  if (account && partner && account.partnerId !== partner.id)
    throw invalidField('accountId', "This account doesn't belong to that partner.");
  return { account, partner };
}

/** Changes a user's name, type, account or partner. This applies to their keys from the next request. */
export async function changeUser(ports: Ports, actor: Actor, user: User, change: UserChange): Promise<User> {
  const { name, userType, accountId } = change;
  const membership = await readMembership(ports, change);
  const changed: User = { ...user, name, userType, ...membership };
  const event = auditEvent(ports, actor, 'user.changed', userSubject(changed), toOwningScope(changed));
  const requested = { name, userType, accountId, partnerId: membership.partner?.id ?? membership.account?.partnerId ?? null };
  const { users } = ports.stores;
  if (!(await users.change(user.id, toChange(user), requested, event))) throw await explainUnchanged(ports, user);
  return changed;
}

/** Returns the current values of everything about a user that can be changed. */
function toChange(user: User): UserChange {
  const { accountId, partnerId } = toOwningScope(user) ?? { accountId: null, partnerId: null };
  return { name: user.name, userType: user.userType, accountId, partnerId };
}

export async function explainUnchanged({ stores }: Ports, { id }: User): Promise<Problem> {
  if (!(await stores.users.find({ kind: 'all' }, id))) return noSuchUser();
  return new Problem(
    'conflict',
    "Someone else changed this user in the meantime. Check the user's current name and account, then try again.",
  );
}

/**
 * Disables a user and ends their sessions. From the next request on, the user and their keys are refused. @returns the number of sessions
 */
export async function disableUser(ports: Ports, actor: Actor, user: User & TargetUser): Promise<number> {
  const sessions = await setDisabled(ports, actor, user, true);
  if (sessions === null) throw new Problem('conflict', `${user.email} is already disabled.`);
  return sessions;
}

/** Re-enables a disabled user and their keys. */
export async function enableUser(ports: Ports, actor: Actor, user: User): Promise<void> {
  if ((await setDisabled(ports, actor, user, false)) === null) throw new Problem('conflict', `${user.email} isn't disabled.`);
}

/** @returns the number of sessions that this ended, or null if it changed nothing */
export function setDisabled(ports: Ports, actor: Actor, user: User & TargetUser, isDisabled: boolean): Promise<number | null> {
  const event = auditEvent(ports, actor, isDisabled ? 'user.disabled' : 'user.enabled', userSubject(user), toOwningScope(user));
  return ports.stores.users.setDisabled(user, isDisabled ? event.at : null, event);
}

/** Unlinks a user from their identity at the provider, and ends their sessions. */
export async function unlinkUser(ports: Ports, actor: Actor, user: User & TargetUser): Promise<void> {
  const event = auditEvent(ports, actor, 'user.unlinked', userSubject(user), toOwningScope(user));
  if (await ports.stores.links.delete(user, event)) return;
  const found = await ports.stores.users.find({ kind: 'all' }, user.id);
  throw found?.link
    ? await explainUnchanged(ports, user)
    : new Problem('conflict', `${user.email} isn't linked to an identity at the provider.`);
}

/** Deletes a user and their keys and sessions. */
export async function deleteUser(
  ports: Ports,
  actor: Actor,
  user: User & TargetUser,
  cancelQueuedCalls: boolean,
): Promise<{ apiKeys: number; sessions: number }> {
  const event = auditEvent(ports, actor, 'user.deleted', userSubject(user), toOwningScope(user));
  const gone = await ports.stores.users.delete(user, { cancelQueuedCalls, at: ports.clock.now() }, event);
  if (!gone) throw await explainUnchanged(ports, user);
  return gone;
}

/**
 * Changes a user's own password, and ends the user's other sessions. A user who signed in with a one-time password doesn't have to enter it
 * again.
 *
 * @returns the new password's hash
 */
export async function changePassword(
  ports: Ports,
  actor: Actor,
  { user, passwordChangeDue, issuer, signInVersion }: Session,
  { currentPassword, newPassword, code }: PasswordChange,
): Promise<void> {
  requirePasswordSignIn(ports);
  const isForced = currentPassword === undefined && passwordChangeDue;
  if (code === undefined) await requireNoFactor(ports, user);
  if (isForced) await checkOneTime(ports, actor, user, newPassword);
  else await checkCurrent(ports, actor, user, currentPassword, newPassword);
  await requireCode(ports, actor, user, code);
  const event = auditEvent(ports, actor, 'password.changed', userSubject(user), toOwningScope(user));
  // If the provider vouches for the session, no one else chose this password.
  const stored = { hash: await ports.passwords.hash(newPassword), expiresAt: null, ...(issuer === null ? {} : { isHandedOut: false }) };
  const changed = await ports.stores.users.setPassword({ id: user.id, signInVersion }, stored, event);
  if (!changed) throw wrongCurrentPassword();
}

async function checkCurrent(ports: Ports, actor: Actor, user: User, current: string | undefined, chosen: string): Promise<void> {
  if (current === undefined) throw invalidField('currentPassword', 'Enter your current password.');
  if (!(await checkPassword(ports, ownAttempt(actor, user), user.email, current))) throw wrongCurrentPassword();
  if (chosen === current) throw sameAsCurrent();
}

/** Checks that the new password isn't the one-time password. The session already proves that the user knows that. */
async function checkOneTime(ports: Ports, actor: Actor, user: User, chosen: string): Promise<void> {
  const credentials = await ports.stores.users.findByEmail(user.email);
  if (!credentials?.passwordExpiresAt) throw wrongCurrentPassword();
  if (await ports.passwords.verify(async () => credentials, chosen, ownAttempt(actor, user))) throw sameAsCurrent();
}

function sameAsCurrent(): Problem {
  return invalidField('newPassword', "Choose a password that's different from your current one.");
}

function noSuchUser(): Problem {
  return new Problem('not-found', "This user doesn't exist.");
}

function wrongCurrentPassword(): Problem {
  return invalidField('currentPassword', 'Incorrect current password.');
}

/** Gives a user a new password, and ends all of their sessions. Without a password, generates a one-time password. */
export async function resetPassword(
  ports: Ports,
  actor: Actor,
  user: User & TargetUser,
  password: string | null,
): Promise<{ password: string | null }> {
  const { stored, made } = await createPassword(ports, password);
  const event = auditEvent(ports, actor, 'password.reset', userSubject(user), toOwningScope(user));
  // The user may have been moved out of the administrator's scope while the password waited to be hashed.
  if (!(await ports.stores.users.setPassword(user, stored, event))) throw await explainUnchanged(ports, user);
  return { password: made };
}

async function createPassword(ports: Ports, chosen: string | null): Promise<{ stored: NewPassword; made: string | null }> {
  if (chosen !== null) return { stored: { hash: await ports.passwords.hash(chosen), expiresAt: null, isHandedOut: false }, made: null };
  const { password, stored } = await makeOneTimePassword(ports);
  return { stored, made: password };
}

/** Generates a password that the user must change soon. */
export async function makeOneTimePassword(ports: Ports): Promise<{ password: string; stored: NewPassword }> {
  const password = makePassword(ports);
  const expiresAt = plus(ports.clock.now(), oneTimePasswordLife);
  return { password, stored: { hash: await ports.passwords.hash(password), expiresAt, isHandedOut: true } };
}

/** Generates a password of 120 bits, in groups of four characters, with only characters that are hard to confuse (Crockford's base32). */
function makePassword(ports: Ports): string {
  const letters = Array.from(ports.randomness.bytes(24), (byte) => '0123456789abcdefghjkmnpqrstvwxyz'.charAt(byte % 32));
  return (letters.join('').match(/.{4}/g) ?? []).join('-');
}
