import { changePasswordSchema, selectTenancySchema, signInSchema } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import * as users from '../../domain/directory/users.ts';
import { Problem } from '../../domain/problem.ts';
import * as domain from '../../domain/sign-in/sessions.ts';
import { readBody } from '../middleware/body.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';
import { companyOf, rememberDevice } from '../middleware/known-device.ts';
import { actorOf, signOut as endSession, readBodyInSession, sessionOf, startNewSession, viewerOf } from '../middleware/session.ts';
import { sessionView } from '../views.ts';

export async function signIn(ctx: Context, deps: HttpDeps): Promise<void> {
  const { email, password } = await readBody(ctx, signInSchema, limits.strangerBodyBytes);
  const address = deps.addressOf(ctx);
  const attempt = { email, password, address, company: companyOf(ctx) };
  const credentials = await domain.authenticate(deps.ports, attempt).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'unauthorized') deps.refusals.onSignInRefused(email, address);
    if (error instanceof Problem && error.code === 'too-many-requests') deps.refusals.onSignInThrottled(address);
    throw error;
  });
  await startNewSession(ctx, credentials);
  rememberDevice(ctx, deps.ports, credentials.passwordHash);
  ctx.status = 201;
  ctx.body = sessionView({ user: credentials.user, tenancy: null, passwordChangeDue: credentials.passwordExpiresAt !== null }, deps);
}

export async function show(ctx: Context, deps: HttpDeps): Promise<void> {
  ctx.body = sessionView(sessionOf(ctx).data, deps);
}

export async function signOut(ctx: Context): Promise<void> {
  await endSession(ctx);
  ctx.status = 204;
}

export async function changePassword(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, changePasswordSchema);
  const { id, data } = sessionOf(ctx);
  rememberDevice(ctx, deps.ports, await users.changePassword(deps.ports, actorOf(deps, ctx), data, input, id));
  ctx.status = 204;
}

export async function selectTenancy(ctx: Context, deps: HttpDeps): Promise<void> {
  const choice = await readBodyInSession(ctx, deps, selectTenancySchema);
  const { id, data } = sessionOf(ctx);
  const viewer = viewerOf(ctx);
  const { tenancy } = await domain.selectTenancy(deps.ports, id, actorOf(deps, ctx), viewer, choice.kind === null ? null : choice);
  ctx.body = sessionView({ ...data, tenancy }, deps);
}
