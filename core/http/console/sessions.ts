import { changePasswordSchema, selectTenancySchema, signInSchema } from '#contract/console.ts';
import { authenticate, selectTenancy } from '../../domain/sessions.ts';
import { changePassword } from '../../domain/users.ts';
import { readBody } from '../body.ts';
import { actorOf, type Context, type HttpDeps, sessionOf, viewerOf } from '../context.ts';
import { readBodyInSession, signInto, signOut } from '../sessions.ts';
import { sessionView } from '../views.ts';

export async function signIn(ctx: Context, deps: HttpDeps): Promise<void> {
  const { email, password } = await readBody(ctx, signInSchema);
  const current = ctx.state.session?.data ?? null;
  const credentials = await authenticate(deps.ports, { email, password, address: deps.addressOf(ctx), current });
  await signInto(ctx, credentials);
  ctx.status = 201;
  ctx.body = sessionView(sessionOf(ctx).data);
}

export async function showSession(ctx: Context): Promise<void> {
  ctx.body = sessionView(sessionOf(ctx).data);
}

export async function endSession(ctx: Context): Promise<void> {
  await signOut(ctx);
  ctx.status = 204;
}

export async function setPassword(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, changePasswordSchema);
  await changePassword(deps.ports, actorOf(deps, ctx), viewerOf(ctx), input, sessionOf(ctx).id);
  ctx.status = 204;
}

export async function setTenancy(ctx: Context, deps: HttpDeps): Promise<void> {
  const choice = await readBodyInSession(ctx, deps, selectTenancySchema);
  const { id, data } = sessionOf(ctx);
  const viewer = viewerOf(ctx);
  const { tenancy } = await selectTenancy(deps.ports, id, actorOf(deps, ctx), viewer, choice.kind === null ? null : choice);
  ctx.body = sessionView({ ...data, tenancy });
}
