import { Duration } from 'luxon';
import type { UserType } from '#contract/console.ts';
import { auditEvent } from './audit.ts';
import type { Account, Actor, Digest, NewPassword, User } from './model.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { owningScopeOf } from './sessions.ts';
import { checkPassword } from './throttle.ts';

/** How long a user has to change a password that someone else chose. */
const oneTimePasswordLife = Duration.fromObject({ days: 7 });

export type UserInput = { email: string; name: string; userType: UserType; accountId: string | null; partnerId: string | null };

/** Creates a user. Without a password, makes a one-time password and returns it. */
export async function createUser(
  ports: Ports,
  actor: Actor,
  input: UserInput,
  password: string | null,
): Promise<{ user: User; password: string | null }> {
  const place = await placeOf(ports, input);
  const { stored, made } = await passwordOf(ports, password);
  const user: User = { id: ports.randomness.id(), email: input.email, name: input.name, userType: input.userType, ...place };
  const event = auditEvent(ports, actor, 'user.added', { kind: 'user', id: user.id, name: user.name }, owningScopeOf(user));
  await ports.stores.users.create(
    {
      ...input,
      id: user.id,
      partnerId: place.partner?.id ?? place.account?.partnerId ?? null,
      password: stored,
      createdAt: event.at,
    },
    event,
  );
  return { user, password: made };
}

/** Account users have an account; partner users a partner and perhaps one account of it; staff neither. */
async function placeOf(ports: Ports, { userType, accountId, partnerId }: UserInput) {
  const problem = (path: string, message: string) => new Problem('invalid', message, { errors: [{ path, message }] });
  if (userType === 'account' && partnerId !== null) throw problem('partnerId', 'An account user has an account and no partner.');
  if (userType === 'account' && accountId === null) throw problem('accountId', 'An account user needs an account.');
  if (userType === 'partner' && partnerId === null) throw problem('partnerId', 'A partner user needs a partner.');
  if (userType === 'staff' && (accountId !== null || partnerId !== null)) {
    throw problem(accountId === null ? 'partnerId' : 'accountId', 'A staff user has neither account nor partner.');
  }
  const account: Account | null = accountId === null ? null : await ports.stores.tenancies.findAccount(accountId);
  if (accountId !== null && !account) throw problem('accountId', `There is no account ${accountId}.`);
  const partner = partnerId === null ? null : await ports.stores.tenancies.findPartner(partnerId);
  if (partnerId !== null && !partner) throw problem('partnerId', `There is no partner ${partnerId}.`);
  if (account && partner && account.partnerId !== partner.id) throw problem('accountId', 'This account is not beneath that partner.');
  return { account, partner };
}

/** Deletes a user, with keys and sessions, in one transaction. */
export async function deleteUser(
  ports: Ports,
  actor: Actor,
  user: User,
  cancelQueuedCalls: boolean,
): Promise<{ apiKeys: number; sessions: number }> {
  const event = auditEvent(ports, actor, 'user.deleted', { kind: 'user', id: user.id, name: user.name }, owningScopeOf(user));
  const gone = await ports.stores.users.delete(user.id, { cancelQueuedCalls, at: ports.clock.now() }, event);
  if (!gone) throw new Problem('not-found', 'There is no such user.');
  return gone;
}

/** A user changes their own password; their other sessions end. */
export async function changePassword(
  ports: Ports,
  actor: Actor,
  user: User,
  input: { currentPassword: string; newPassword: string },
  keep: Digest,
): Promise<void> {
  // Counts apart from sign-ins: someone who has taken a session over must neither guess on nor lock its user out.
  const attempt = { email: `change ${user.email}`, address: actor.address, trusted: false };
  const credentials = await checkPassword(ports, attempt, user.email, input.currentPassword);
  if (!credentials) throw wrongCurrentPassword();
  if (input.newPassword === input.currentPassword) {
    const message = 'Choose another password than the current one.';
    throw new Problem('invalid', message, { errors: [{ path: 'newPassword', message }] });
  }
  const event = auditEvent(ports, actor, 'password.changed', { kind: 'user', id: user.id, name: user.name }, owningScopeOf(user));
  const stored = { hash: await ports.passwords.hash(input.newPassword), expiresAt: null };
  const changed = await ports.stores.users.setPassword(user.id, stored, credentials.passwordHash, keep, event);
  if (!changed) throw wrongCurrentPassword();
}

function wrongCurrentPassword(): Problem {
  const message = 'This is not your current password.';
  return new Problem('invalid', message, { errors: [{ path: 'currentPassword', message }] });
}

/** Gives a user a new password, and all their sessions end. Without a password, makes a one-time password. */
export async function resetPassword(ports: Ports, actor: Actor, user: User, password: string | null): Promise<{ password: string | null }> {
  const { stored, made } = await passwordOf(ports, password);
  const event = auditEvent(ports, actor, 'password.reset', { kind: 'user', id: user.id, name: user.name }, owningScopeOf(user));
  const changed = await ports.stores.users.setPassword(user.id, stored, null, null, event);
  if (!changed) throw new Problem('not-found', 'There is no such user.');
  return { password: made };
}

async function passwordOf(ports: Ports, given: string | null): Promise<{ stored: NewPassword; made: string | null }> {
  if (given !== null) return { stored: { hash: await ports.passwords.hash(given), expiresAt: null }, made: null };
  const { password, stored } = await makeOneTimePassword(ports);
  return { stored, made: password };
}

/** A password that someone else hands to the user, who must change it soon. */
export async function makeOneTimePassword(ports: Ports): Promise<{ password: string; stored: NewPassword }> {
  const password = makePassword(ports);
  const expiresAt = ports.clock.now().plus(oneTimePasswordLife);
  return { password, stored: { hash: await ports.passwords.hash(password), expiresAt } };
}

/** 120 bits in groups of four characters that people do not mix up (Crockford's base32). */
function makePassword(ports: Ports): string {
  const letters = Array.from(ports.randomness.bytes(24), (byte) => '0123456789abcdefghjkmnpqrstvwxyz'.charAt(byte % 32));
  return (letters.join('').match(/.{4}/g) ?? []).join('-');
}
