import type { ChangedUserView, CreatedUserView, DeletionView, ResetPasswordView, UsersView } from '#contract/console.ts';
import * as domain from '../../domain/directory/managed-users.ts';
import { deletionView, userView } from '../views.ts';
import type { Request } from './request.ts';

export async function listUsers({ ports, viewer, query }: Request<'listUsers'>): Promise<UsersView> {
  const { items, nextCursor } = await domain.listManagedUsers(ports, viewer, query);
  return { users: items.map(userView), nextCursor };
}

export async function createUser({ ports, viewer, actor, body }: Request<'createUser'>): Promise<CreatedUserView> {
  const { user, password } = await domain.createManagedUser(ports, viewer, actor, body);
  return { user: userView(user), password };
}

export async function changeUser({ ports, viewer, actor, params, body }: Request<'changeUser'>): Promise<ChangedUserView> {
  return { user: userView(await domain.changeManagedUser(ports, viewer, actor, params.id, body)) };
}

export async function previewDeletion({ ports, viewer, params, query }: Request<'previewDeletion'>): Promise<DeletionView> {
  return deletionView(await domain.previewDeletion(ports, viewer, params.id, query.cursor));
}

export async function deleteUser({ ports, viewer, actor, params, query }: Request<'deleteUser'>): Promise<void> {
  await domain.deleteManagedUser(ports, viewer, actor, params.id, query.cancelQueuedCalls);
}

export async function resetPassword({ ports, viewer, actor, params }: Request<'resetPassword'>): Promise<ResetPasswordView> {
  return { password: await domain.resetManagedUserPassword(ports, viewer, actor, params.id) };
}
