import type { UserView } from '#contract/console/users.ts';
import { isExpired } from '#contract/expiry.ts';
import { timestamp } from '#contract/text/text.ts';
import * as domain from '../../domain/directory/users.ts';
import type { ListedUser } from '../../domain/ports.ts';
import type { Handler } from '../middleware/context.ts';
import { viewerView } from './people.ts';

export const listUsers: Handler<'listUsers'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listUsers(ports, viewer, query);
  return { users: items.map(userView), nextCursor };
};

export const createUser: Handler<'createUser'> = async ({ ports, caller, body }) => {
  const { user, password } = await domain.createUser(ports, caller, body);
  return { user: userView(user), password };
};

export const changeUser: Handler<'changeUser'> = async ({ ports, caller, params, body }) => ({
  user: userView(await domain.changeUser(ports, caller, params, body)),
});

export const previewDeletion: Handler<'previewDeletion'> = async ({ ports, viewer, params, query }) => {
  const { user, apiKeys, sessions } = await domain.previewDeletion(ports, viewer, params.id, query.cursor);
  const now = ports.clock.now();
  return {
    user: userView(user),
    apiKeys: apiKeys.items.map(({ id, name, lastUsedAt, expiresAt, queuedCalls }) => ({
      ...{ id, name, queuedCalls, expired: isExpired(expiresAt, now) },
      lastUsedAt: lastUsedAt && timestamp(lastUsedAt),
    })),
    nextCursor: apiKeys.nextCursor,
    sessions,
  };
};

export const deleteUser: Handler<'deleteUser'> = async ({ ports, caller, params, query }) => {
  await domain.deleteUser(ports, caller, params, query.cancelQueuedCalls && 'soon');
};

export const unlinkUser: Handler<'unlinkUser'> = ({ ports, caller, params }) => domain.unlinkUser(ports, caller, params);

export const resetPassword: Handler<'resetPassword'> = async ({ ports, caller, params }) => {
  const { password } = await domain.resetPassword(ports, caller, params);
  if (password === null) throw new Error('The password was reset, but no one-time password was returned.');
  return { password };
};

export const resetSecondFactor: Handler<'resetSecondFactor'> = async ({ ports, caller, params }) => {
  await domain.resetSecondFactor(ports, caller, params);
};

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
