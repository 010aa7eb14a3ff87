import type { ChangedUserView, CreatedUserView, DeletionView, ResetPasswordView, UsersView, UserView } from '#contract/console/users.ts';
import { isExpired } from '#contract/expiry.ts';
import { timestamp } from '#contract/text/text.ts';
import type { DeletionPreview } from '../../domain/directory/users.ts';
import * as domain from '../../domain/directory/users.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ListedUser } from '../../domain/model.ts';
import { viewerView } from './people.ts';
import type { Request } from './request.ts';

export async function listUsers({ ports, viewer, query }: Request<'listUsers'>): Promise<UsersView> {
  const { items, nextCursor } = await domain.listUsers(ports, viewer, query);
  return { users: items.map(userView), nextCursor };
}

export async function createUser({ ports, caller, body }: Request<'createUser'>): Promise<CreatedUserView> {
  const { user, password } = await domain.createUser(ports, caller, body);
  return { user: userView(user), password };
}

export async function changeUser({ ports, caller, params, body }: Request<'changeUser'>): Promise<ChangedUserView> {
  return { user: userView(await domain.changeUser(ports, caller, params, body)) };
}

export async function previewDeletion({ ports, viewer, params, query }: Request<'previewDeletion'>): Promise<DeletionView> {
  return deletionView(await domain.previewDeletion(ports, viewer, params.id, query.cursor), ports.clock.now());
}

export async function deleteUser({ ports, caller, params, query }: Request<'deleteUser'>): Promise<void> {
  await domain.deleteUser(ports, caller, params, query.cancelQueuedCalls);
}

export async function unlinkUser({ ports, caller, params }: Request<'unlinkUser'>): Promise<void> {
  await domain.unlinkUser(ports, caller, params);
}

export async function resetPassword({ ports, caller, params }: Request<'resetPassword'>): Promise<ResetPasswordView> {
  const { password } = await domain.resetPassword(ports, caller, params);
  if (password === null) throw new Error('The password was reset, but no one-time password was returned.');
  return { password };
}

export async function resetSecondFactor({ ports, caller, params }: Request<'resetSecondFactor'>): Promise<void> {
  await domain.resetSecondFactor(ports, caller, params);
}

function userView(user: ListedUser): UserView {
  const { account, partnerName } = user;
  return {
    ...viewerView(user),
    account: account && { id: account.id, name: account.name, ...(partnerName === null ? {} : { partnerName }) },
    createdAt: timestamp(user.createdAt),
    lastSignInAt: user.lastSignInAt && timestamp(user.lastSignInAt),
    disabledAt: user.disabledAt && timestamp(user.disabledAt),
    apiKeys: user.apiKeys,
    link: user.link && { ...user.link, linkedAt: timestamp(user.link.linkedAt) },
    secondFactor: user.hasSecondFactor,
  };
}

function deletionView({ user, apiKeys, sessions }: DeletionPreview, now: Millis): DeletionView {
  return {
    user: userView(user),
    apiKeys: apiKeys.items.map(({ id, name, lastUsedAt, expiresAt, queuedCalls }) => ({
      ...{ id, name, queuedCalls, expired: isExpired(expiresAt, now) },
      lastUsedAt: lastUsedAt && timestamp(lastUsedAt),
    })),
    nextCursor: apiKeys.nextCursor,
    sessions,
  };
}
