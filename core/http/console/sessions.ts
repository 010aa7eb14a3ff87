import type { z } from 'zod';
import { type SessionView, sessionRoutes } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import * as users from '../../domain/directory/users.ts';
import type { Session } from '../../domain/model.ts';
import { Problem } from '../../domain/problem.ts';
import { findVoucher, type KnownUser } from '../../domain/sign-in/devices.ts';
import * as secondFactor from '../../domain/sign-in/second-factor.ts';
import * as domain from '../../domain/sign-in/sessions.ts';
import { readBody } from '../middleware/body.ts';
import type { CodeResult, Context, Handler, HttpDeps } from '../middleware/context.ts';
import {
  signOut as endSession,
  getHalfOpenSession,
  getSession,
  readVouchers,
  rememberChangedDevice,
  rememberDevice,
  startNewSession,
} from '../middleware/session.ts';
import { tenancyView, viewerView } from './people.ts';

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

export async function enterCode(ctx: Context, deps: HttpDeps): Promise<void> {
  const halfOpen = getHalfOpenSession(ctx);
  const { code } = await readBody(ctx, sessionRoutes.enterCode.body, limits.strangerBodyBytes);
  const { ports } = deps;
  const { user } = halfOpen.data;
  const address = deps.getClientAddress(ctx);
  const vouched = await findVoucher(ports, user.email, readVouchers(ctx));
  const session = await startNewSession(ctx, { halfOpen, code, vouched }).catch((error: unknown) => {
    const result = toResult(error);
    deps.onCode(result);
    if (result === 'refused') deps.refusals.onCodeRefused(user, address);
    if (result === 'throttled') deps.refusals.onSignInThrottled(address);
    throw error;
  });
  deps.onCode('accepted');
  answerSession(ctx, deps, session, halfOpen.data);
}

function toResult(error: unknown): CodeResult {
  const code = error instanceof Problem ? error.code : undefined;
  if (code === 'unauthorized') return 'refused';
  return code === 'too-many-requests' ? 'throttled' : 'undecided';
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

export const enrollSecondFactor: Handler<'enrollSecondFactor'> = async ({ ports, deps, caller, ctx, body }) => {
  const host = URL.parse(deps.publicUrl || `http://${ctx.get('Host')}`)?.host ?? '';
  return secondFactor.enrollSecondFactor(ports, caller, body.currentPassword, host);
};

export const confirmSecondFactor: Handler<'confirmSecondFactor'> = async ({ ports, caller, ctx, body }) => {
  const recoveryCodes = await secondFactor.confirmSecondFactor(ports, caller, body.code);
  await rememberChangedDevice(ctx, ports);
  return { recoveryCodes };
};

export const showSecondFactor: Handler<'showSecondFactor'> = async ({ ports, viewer }) => ({
  recoveryCodesLeft: await secondFactor.countRecoveryCodes(ports, viewer),
});

export const renewRecoveryCodes: Handler<'renewRecoveryCodes'> = async ({ ports, caller, body }) => ({
  recoveryCodes: await secondFactor.renewRecoveryCodes(ports, caller, body.code),
});

export const removeSecondFactor: Handler<'removeSecondFactor'> = async ({ ports, caller, ctx, body }) => {
  await secondFactor.removeSecondFactor(ports, caller, body.code);
  await rememberChangedDevice(ctx, ports);
};

function sessionView(session: Session, { dialer, hasReference, ports, version }: HttpDeps): SessionView {
  const { user, tenancy } = session;
  return {
    viewer: viewerView(user),
    tenancy: tenancy && tenancyView(tenancy),
    ...(session.passwordChangeDue ? { passwordChangeDue: true } : {}),
    secondFactor: session.hasSecondFactor,
    ...(domain.isSecondFactorDue(ports, session) ? { secondFactorDue: true } : {}),
    dialer,
    reference: hasReference,
    version,
    ...(session.issuer !== null && ports.identityProvider ? { signedInWith: ports.identityProvider.name } : {}),
    ...(session.beganWithLink ? { justLinked: true } : {}),
  };
}
