import { type CreateUser, createUserSchema, type DeletionView, revokeQuerySchema } from '#contract/console.ts';
import { createManagedUser, deleteManagedUser, listManagedUsers, previewDeletion } from '../../domain/managed-users.ts';
import { readQuery } from '../body.ts';
import { actorOf, type Context, type HttpDeps, idOf, viewerOf } from '../context.ts';
import { readBodyInSession } from '../sessions.ts';
import { userView, wire } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  ctx.body = { users: (await listManagedUsers(ports, viewerOf(ctx))).map(userView) };
}

export async function add(ctx: Context, deps: HttpDeps): Promise<void> {
  const input: CreateUser = await readBodyInSession(ctx, deps, createUserSchema);
  const { user, password } = await createManagedUser(deps.ports, viewerOf(ctx), actorOf(deps, ctx), input);
  ctx.status = 201;
  ctx.body = { user: userView(user), password };
}

export async function showDeletion(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { user, apiKeys, sessions } = await previewDeletion(ports, viewerOf(ctx), idOf(ctx));
  const view: DeletionView = {
    user: userView(user),
    apiKeys: apiKeys.map((key) => ({ ...key, lastUsedAt: key.lastUsedAt && wire(key.lastUsedAt) })),
    sessions,
  };
  ctx.body = view;
}

export async function remove(ctx: Context, deps: HttpDeps): Promise<void> {
  const { cancelQueuedCalls } = readQuery(ctx, revokeQuerySchema);
  await deleteManagedUser(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), cancelQueuedCalls);
  ctx.status = 204;
}
