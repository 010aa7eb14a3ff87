import type { DateTime } from 'luxon';
import type { CreateUser } from '#contract/console.ts';
import type { Actor } from './audit.ts';
import type { ListedUser, Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { scopeOf, type UserVisibility, type Viewer } from './tenancy.ts';
import { createUser, deleteUser, type UserInput } from './users.ts';

/** What deleting a user would take along. */
export type Deletion = {
  user: ListedUser;
  apiKeys: { id: string; name: string; lastUsedAt: DateTime | null; queuedCalls: number }[];
  sessions: number;
};

export async function listManagedUsers(ports: Ports, viewer: Viewer): Promise<ListedUser[]> {
  return ports.stores.users.list(sightOf(viewer));
}

/** Adds a user within the viewer's own scope, never above it. */
export async function createManagedUser(
  ports: Ports,
  viewer: Viewer,
  actor: Actor,
  input: CreateUser,
): Promise<{ user: ListedUser; password: string }> {
  const place = await placeWithin(ports, sightOf(viewer), input);
  const { email, name, userType } = input;
  const { user, password } = await createUser(ports, actor, { email, name, userType, ...place }, null);
  if (password === null) throw new Error('A user without a password was added.');
  return { user: { ...user, createdAt: ports.clock.now(), lastSignInAt: null, apiKeys: 0 }, password };
}

export async function previewDeletion(ports: Ports, viewer: Viewer, id: string): Promise<Deletion> {
  return { user: await findManagedUser(ports, viewer, id), ...(await ports.stores.users.deletionImpact(id)) };
}

export async function deleteManagedUser(ports: Ports, viewer: Viewer, actor: Actor, id: string, cancelQueuedCalls: boolean): Promise<void> {
  const user = await findManagedUser(ports, viewer, id);
  if (user.id === viewer.id) throw new Problem('conflict', 'Nobody deletes themself. Ask somebody else to.');
  await deleteUser(ports, actor, user, cancelQueuedCalls);
}

function sightOf(viewer: Viewer): UserVisibility {
  if (viewer.userType === 'account') throw new Problem('forbidden', 'Account users do not manage users.');
  return scopeOf(viewer).people;
}

async function findManagedUser(ports: Ports, viewer: Viewer, id: string): Promise<ListedUser> {
  const [user] = await ports.stores.users.list(sightOf(viewer), id);
  if (!user) throw new Problem('not-found', 'There is no such user in your scope.');
  return user;
}

/** Where a new user belongs. What is left out comes from the scope; what is named must lie within it. */
async function placeWithin(
  ports: Ports,
  sight: UserVisibility,
  { userType, accountId, partnerId }: CreateUser,
): Promise<Pick<UserInput, 'accountId' | 'partnerId'>> {
  if (sight.kind === 'nothing' || (sight.kind === 'staff') !== (userType === 'staff')) {
    throw new Problem(
      'forbidden',
      sight.kind === 'staff' ? 'Select the account or partner of the new user first.' : 'You cannot add users of this type.',
    );
  }
  if (sight.kind === 'staff') return { accountId: accountId ?? null, partnerId: partnerId ?? null };
  if (partnerId !== undefined && partnerId !== sight.partnerId) throw outOfScope('partnerId', 'partner');
  if (sight.kind === 'account' && accountId !== undefined && accountId !== sight.accountId) throw outOfScope('accountId', 'account');
  const account = accountId === undefined ? null : await ports.stores.tenancies.findAccount(accountId);
  if (accountId !== undefined && account?.partnerId !== sight.partnerId) throw outOfScope('accountId', 'account');
  return {
    accountId: accountId ?? (sight.kind === 'account' ? sight.accountId : null),
    partnerId: userType === 'partner' ? sight.partnerId : (partnerId ?? null),
  };
}

function outOfScope(path: string, what: string): Problem {
  const message = `There is no such ${what} in your scope.`;
  return new Problem('invalid', message, { errors: [{ path, message }] });
}
