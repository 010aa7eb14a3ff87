import type { ChangedUserView, CreatedUserView, DeletionView, ResetPasswordView, UsersView } from '#contract/console/users.ts';
import * as domain from '../../domain/directory/users.ts';
import { deletionView, userView } from '../views.ts';
import type { Request } from './request.ts';

export async function listUsers({ ports, viewer, query }: Request<'listUsers'>): Promise<UsersView> {
  const { items, nextCursor } = await domain.listManagedUsers(ports, viewer, query);
  return { users: items.map(userView), nextCursor };
}

export async function createUser({ ports, caller, body }: Request<'createUser'>): Promise<CreatedUserView> {
  const { user, password } = await domain.createManagedUser(ports, caller, body);
  return { user: userView(user), password };
}

export async function changeUser({ ports, caller, params, body }: Request<'changeUser'>): Promise<ChangedUserView> {
  return { user: userView(await domain.changeManagedUser(ports, caller, params.id, body)) };
}

export async function previewDeletion({ ports, viewer, params, query }: Request<'previewDeletion'>): Promise<DeletionView> {
  return deletionView(await domain.previewDeletion(ports, viewer, params.id, query.cursor), ports.clock.now());
}

export async function deleteUser({ ports, caller, params, query }: Request<'deleteUser'>): Promise<void> {
  await domain.deleteManagedUser(ports, caller, params.id, query.cancelQueuedCalls);
}

export async function unlinkUser({ ports, caller, params }: Request<'unlinkUser'>): Promise<void> {
  await domain.unlinkManagedUser(ports, caller, params.id);
}

export async function resetPassword({ ports, caller, params }: Request<'resetPassword'>): Promise<ResetPasswordView> {
  return { password: await domain.resetManagedUserPassword(ports, caller, params.id) };
}

export async function resetSecondFactor({ ports, caller, params }: Request<'resetSecondFactor'>): Promise<void> {
  await domain.resetManagedUserSecondFactor(ports, caller, params.id);
}
