import type { z } from 'zod';
import { type SessionView, sessionRoutes } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import * as users from '../../domain/directory/users.ts';
import type { Session } from '../../domain/model.ts';
import { Problem } from '../../domain/problem.ts';
import type { KnownUser } from '../../domain/sign-in/devices.ts';
import * as domain from '../../domain/sign-in/sessions.ts';
import { isSecondFactorDue } from '../../domain/sign-in/sessions.ts';
import { readBody } from '../middleware/body.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';
import {
  signOut as endSession,
  getSession,
  readVouchers,
  rememberChangedDevice,
  rememberDevice,
  startNewSession,
} from '../middleware/session.ts';
import { tenancyView, viewerView } from './people.ts';
import type { Handler } from './request.ts';

const { signIn: route } = sessionRoutes;

export async function signIn(ctx: Context, deps: HttpDeps): Promise<void> {
  const { email, password } = await readBody(ctx, route.body, limits.strangerBodyBytes);
  const address = deps.getClientAddress(ctx);
  const attempt = { email, password, address, vouchers: readVouchers(ctx) };
  const credentials = await domain.authenticate(deps.ports, attempt).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'unauthorized') deps.refusals.onSignInRefused(email, address);
    if (error instanceof Problem && error.code === 'too-many-requests') deps.refusals.onSignInThrottled(address);
    throw error;
  });
  const session = await startNewSession(ctx, credentials);
  if (!credentials.hasSecondFactor) return answerSession(ctx, deps, session, credentials);
  ctx.status = 202;
  ctx.body = { secondFactor: true } satisfies z.infer<typeof route.pending>;
}

/** @param knownUser as in {@link rememberDevice} */
export function answerSession(ctx: Context, deps: HttpDeps, session: Session, knownUser?: KnownUser): void {
  if (knownUser) rememberDevice(ctx, deps.ports, knownUser);
  ctx.status = route.status;
  ctx.body = sessionView(session, deps);
}

export const showSession: Handler<'showSession'> = async ({ ctx, deps }) => sessionView(getSession(ctx).data, deps);

export const signOut: Handler<'signOut'> = ({ ctx }) => endSession(ctx);

export const changePassword: Handler<'changePassword'> = async ({ ctx, ports, caller, body }) => {
  await users.changePassword(ports, caller.actor, getSession(ctx).data, body);
  await rememberChangedDevice(ctx, ports);
};

export const selectTenancy: Handler<'selectTenancy'> = async ({ ctx, deps, ports, viewer, body }) => {
  const { id, data } = getSession(ctx);
  const { tenancy } = await domain.selectTenancy(ports, id, viewer, body.kind === null ? null : body);
  return sessionView({ ...data, tenancy }, deps);
};

function sessionView(session: Session, { dialer, hasReference, ports, version }: HttpDeps): SessionView {
  const { user, tenancy } = session;
  return {
    viewer: viewerView(user),
    tenancy: tenancy && tenancyView(tenancy),
    ...(session.passwordChangeDue ? { passwordChangeDue: true } : {}),
    secondFactor: session.hasSecondFactor,
    ...(isSecondFactorDue(ports, session) ? { secondFactorDue: true } : {}),
    dialer,
    reference: hasReference,
    version,
    ...(session.issuer !== null && ports.identityProvider ? { signedInWith: ports.identityProvider.name } : {}),
    ...(session.beganWithLink ? { justLinked: true } : {}),
  };
}
