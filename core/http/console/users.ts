import {
  type ChangedUserView,
  type CreatedUserView,
  changeUserSchema,
  createUserSchema,
  type DeletionView,
  deletionQuerySchema,
  type ResetPasswordView,
  revokeQuerySchema,
  type UsersView,
} from '#contract/console.ts';
import * as domain from '../../domain/directory/managed-users.ts';
import { readListFilter, readQuery } from '../middleware/body.ts';
import { type Context, type HttpDeps, idOf } from '../middleware/context.ts';
import { actorOf, readBodyInSession, viewerOf } from '../middleware/session.ts';
import { deletionView, userView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { items, nextCursor } = await domain.listManagedUsers(ports, viewerOf(ctx), readListFilter(ctx));
  const view: UsersView = { users: items.map(userView), nextCursor };
  ctx.body = view;
}

export async function create(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, createUserSchema);
  const { user, password } = await domain.createManagedUser(deps.ports, viewerOf(ctx), actorOf(deps, ctx), input);
  ctx.status = 201;
  const view: CreatedUserView = { user: userView(user), password };
  ctx.body = view;
}

export async function change(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, changeUserSchema);
  const user = await domain.changeManagedUser(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), input);
  const view: ChangedUserView = { user: userView(user) };
  ctx.body = view;
}

export async function previewDeletion(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { cursor = null } = readQuery(ctx, deletionQuerySchema);
  const view: DeletionView = deletionView(await domain.previewDeletion(ports, viewerOf(ctx), idOf(ctx), cursor));
  ctx.body = view;
}

export async function deleteUser(ctx: Context, deps: HttpDeps): Promise<void> {
  const { cancelQueuedCalls } = readQuery(ctx, revokeQuerySchema);
  await domain.deleteManagedUser(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), cancelQueuedCalls);
  ctx.status = 204;
}

export async function resetPassword(ctx: Context, deps: HttpDeps): Promise<void> {
  const view: ResetPasswordView = {
    password: await domain.resetManagedUserPassword(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx)),
  };
  ctx.body = view;
}
