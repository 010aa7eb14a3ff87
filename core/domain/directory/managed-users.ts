import type { ChangeUser, CreateUser } from '#contract/console/users.ts';
import { limits } from '#contract/limits.ts';
import { type Millis, oneDay, plus } from '../instant.ts';
import type { EndangeredKey, ListedUser, ListFilter, SignedInCaller, UserInput, Viewer } from '../model.ts';
import { type Page, rowsForDirectoryPage, timeCursor, timePosition, toDirectoryPage } from '../paging.ts';
import type { Ports } from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { requirePasswordSignIn } from '../sign-in/passwords-off.ts';
import { resetSecondFactor } from '../sign-in/second-factor.ts';
import { countTaken, requireUntaken } from '../sign-in/throttle.ts';
import { scopeFor, type UserVisibility } from './scope.ts';
import { changeUser, createUser, deleteUser, explainUnchanged, resetPassword, setDisabled, unlinkUser } from './users.ts';

/**
 * Returns the start of the last `awayDays` days. Users who haven't signed in since then may have left the company, and removing them at the
 * provider doesn't revoke their keys.
 */
export function awaySince(now: Millis): Millis {
  return plus(now, -limits.awayDays * oneDay);
}

type UserFilter = ListFilter & { away: boolean };

export async function listManagedUsers(ports: Ports, viewer: Viewer, { search, cursor, away }: UserFilter): Promise<Page<ListedUser>> {
  const after = timePosition(cursor);
  const filter = { search, awaySince: away ? awaySince(ports.clock.now()) : null };
  return toDirectoryPage(await ports.stores.users.list(toVisibility(viewer), filter, after, rowsForDirectoryPage), timeCursor);
}

/** Creates a user within the viewer's own scope. */
export async function createManagedUser(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  { email, name, userType, ...place }: CreateUser,
): Promise<{ user: ListedUser; password: string | null }> {
  const membership = await membershipWithin(ports, viewer, { userType, ...place });
  const input = { email, name, userType, ...membership };
  const create = () => createUser(ports, actor, input, null);
  const { user, password } = await (viewer.userType === 'staff' ? create() : withoutTelling(ports, viewer, create));
  const unused = { lastSignInAt: null, disabledAt: null, apiKeys: 0, link: null, hasSecondFactor: false, signInVersion: '' };
  const listed = { ...user, partnerName: user.partner?.name ?? null, createdAt: ports.clock.now(), ...unused };
  // Without passwords, the user signs in with the provider, and no one learns this password.
  return { user: listed, password: ports.passwordSignIn ? password : null };
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

/** Renames, moves, disables or enables a user. Skips changes that wouldn't change anything. */
export async function changeManagedUser(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  id: string,
  change: ChangeUser,
): Promise<ListedUser> {
  const isOnlyRename = change.disabled === undefined && change.accountId === undefined;
  const ifSelf = isOnlyRename ? null : "You can't disable or move yourself. Ask another administrator to do it.";
  const user = await findManagedUser(ports, viewer, id, ifSelf);
  const accountId = change.accountId === undefined ? (user.account?.id ?? null) : change.accountId;
  const name = change.name ?? user.name;
  if (accountId !== (user.account?.id ?? null)) await requireInScope(ports, toVisibility(viewer), accountId);
  const isUnchanged = name === user.name && accountId === (user.account?.id ?? null);
  const requested = { name, userType: user.userType, accountId, partnerId: user.partner?.id ?? null };
  if (!isUnchanged) await changeUser(ports, actor, user, requested);
  const changed = isUnchanged ? user : await findManagedUser(ports, viewer, id);
  const { disabled = changed.disabledAt !== null } = change;
  if (disabled === (changed.disabledAt !== null)) return changed;
  await setDisabled(ports, actor, changed, disabled);
  // If the user has left the viewer's scope in the meantime, nothing was changed, and this lookup fails.
  const found = await findManagedUser(ports, viewer, id);
  if (disabled !== (found.disabledAt !== null)) throw await explainUnchanged(ports, found);
  return found;
}

/** Requires the new account to be in the viewer's scope, which also means that the user stays with the same partner. */
async function requireInScope(ports: Ports, visibility: UserVisibility, accountId: string | null): Promise<void> {
  const account = accountId === null ? null : await ports.stores.tenancies.findAccount(accountId);
  const isInScope = visibility.kind === 'partner' && (accountId === null || account?.partnerId === visibility.partnerId);
  if (!isInScope) throw outOfScope('accountId', 'account');
}

export type DeletionPreview = { user: ListedUser; sessions: number; apiKeys: Page<EndangeredKey> };

/** Shows what deleting the user would also delete: a page of the user's keys, newest first. `user.apiKeys` is their number. */
export async function previewDeletion(ports: Ports, viewer: Viewer, id: string, cursor: string | null): Promise<DeletionPreview> {
  const after = timePosition(cursor);
  const user = await findManagedUser(ports, viewer, id);
  const { apiKeys, sessions } = await ports.stores.users.deletionImpact(id, after, rowsForDirectoryPage);
  return { user, sessions, apiKeys: toDirectoryPage(apiKeys, timeCursor) };
}

export async function deleteManagedUser(
  ports: Ports,
  { viewer, actor }: SignedInCaller,
  id: string,
  cancelQueuedCalls: boolean,
): Promise<void> {
  const user = await findManagedUser(ports, viewer, id, "You can't delete yourself. Ask another administrator to do it.");
  await deleteUser(ports, actor, user, cancelQueuedCalls);
}

/** Gives a user a new one-time password, and ends the user's sessions. */
export async function resetManagedUserPassword(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<string> {
  requirePasswordSignIn(ports);
  // Changing your own password requires the current one, so that someone who has taken over a session can't lock out its user.
  const user = await findManagedUser(
    ports,
    viewer,
    id,
    "You can't reset your own password. Change it instead, which requires your current password.",
  );
  const { password } = await resetPassword(ports, actor, user, null);
  if (password === null) throw new Error('The password was reset, but no one-time password was returned.');
  return password;
}

/** Unlinks a user from their identity at the provider. Their next sign-in links them again, by email address. */
export async function unlinkManagedUser(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<void> {
  const user = await findManagedUser(ports, viewer, id, "You can't unlink yourself. Ask another administrator to do it.");
  await unlinkUser(ports, actor, user);
}

/** Removes the second factor of a user who has lost it. */
export async function resetManagedUserSecondFactor(ports: Ports, { viewer, actor }: SignedInCaller, id: string): Promise<void> {
  const user = await findManagedUser(
    ports,
    viewer,
    id,
    "You can't reset your own second factor. Turn it off instead, which requires a code.",
  );
  if (!user.hasSecondFactor) throw new Problem('conflict', `${user.name} has no second factor.`);
  await resetSecondFactor(ports, actor, user);
}

function toVisibility(viewer: Viewer): UserVisibility {
  if (viewer.userType === 'account') throw new Problem('forbidden', "Account users can't manage users.");
  return scopeFor(viewer).users;
}

/**
 * @param ifSelf the error message if the ID is the viewer's own. This is checked first, because staff who have selected a tenancy can't
 * find themselves in it
 */
async function findManagedUser(ports: Ports, viewer: Viewer, id: string, ifSelf: string | null = null): Promise<ListedUser> {
  const visibility = toVisibility(viewer);
  if (ifSelf !== null && id === viewer.id) throw new Problem('conflict', ifSelf);
  const user = await ports.stores.users.find(visibility, id);
  if (!user) throw new Problem('not-found', "This user doesn't exist, or you don't have access to them.");
  return user;
}

/**
 * Returns the account and partner of a new user. If the request specifies them, they must be in the viewer's scope. Otherwise, they're
 * those of the viewer's scope.
 */
async function membershipWithin(
  ports: Ports,
  viewer: Viewer,
  { userType, accountId, partnerId }: Pick<CreateUser, 'userType' | 'accountId' | 'partnerId'>,
): Promise<Pick<UserInput, 'accountId' | 'partnerId'>> {
  const visibility = toVisibility(viewer);
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
  if (partnerId !== undefined && partnerId !== visibility.partnerId) throw outOfScope('partnerId', 'partner');
  if (visibility.kind === 'account' && accountId !== undefined && accountId !== visibility.accountId)
    throw outOfScope('accountId', 'account');
  const account = accountId === undefined ? null : await ports.stores.tenancies.findAccount(accountId);
  if (accountId !== undefined && account?.partnerId !== visibility.partnerId) throw outOfScope('accountId', 'account');
  return {
    accountId: accountId ?? (visibility.kind === 'account' ? visibility.accountId : null),
    partnerId: userType === 'partner' ? visibility.partnerId : (partnerId ?? null),
  };
}

function outOfScope(path: string, kind: string): Problem {
  return invalidField(path, `This ${kind} doesn't exist, or you don't have access to it.`);
}
