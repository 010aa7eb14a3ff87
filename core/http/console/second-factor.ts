import type { EnrolledSecondFactorView, RecoveryCodesView, SecondFactorView } from '#contract/console/session.ts';
import { sessionRoutes } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { Problem } from '../../domain/problem.ts';
import { findVoucher } from '../../domain/sign-in/devices.ts';
import * as domain from '../../domain/sign-in/second-factor.ts';
import { readBody } from '../middleware/body.ts';
import type { CodeResult, Context, HttpDeps } from '../middleware/context.ts';
import {
  getHalfOpenSession,
  getSession,
  readVouchers,
  rememberChangedDevice,
  rememberDevice,
  startNewSession,
} from '../middleware/session.ts';
import type { Request } from './request.ts';
import { sessionView } from './sessions.ts';

const { enterCode: route } = sessionRoutes;

/** Finishes a sign-in that waits for a code. */
export async function enterCode(ctx: Context, deps: HttpDeps): Promise<void> {
  const halfOpen = getHalfOpenSession(ctx);
  const { code } = await readBody(ctx, route.body, limits.strangerBodyBytes);
  const { ports } = deps;
  const { user } = halfOpen.data;
  const address = deps.getClientAddress(ctx);
  const vouched = await findVoucher(ports, user.email, readVouchers(ctx));
  const session = await startNewSession(ctx, deps, { halfOpen, code, vouched }).catch((error: unknown) => {
    const result = toResult(error);
    deps.onCode(result);
    if (result === 'refused') deps.refusals.onCodeRefused(user, address);
    if (result === 'throttled') deps.refusals.onSignInThrottled(address);
    throw error;
  });
  deps.onCode('accepted');
  rememberDevice(ctx, ports, halfOpen.data);
  ctx.status = route.status;
  ctx.body = sessionView(session, deps);
}

function toResult(error: unknown): CodeResult {
  const code = error instanceof Problem ? error.code : undefined;
  if (code === 'unauthorized') return 'refused';
  return code === 'too-many-requests' ? 'throttled' : 'undecided';
}

export async function enrollSecondFactor({
  ports,
  deps,
  caller,
  ctx,
  body,
}: Request<'enrollSecondFactor'>): Promise<EnrolledSecondFactorView> {
  const host = URL.parse(deps.publicUrl || `http://${ctx.get('Host')}`)?.host ?? '';
  return domain.enrollSecondFactor(ports, caller.actor, getSession(ctx).data.user, body.currentPassword, host);
}

export async function confirmSecondFactor({ ports, caller, ctx, body }: Request<'confirmSecondFactor'>): Promise<RecoveryCodesView> {
  const recoveryCodes = await domain.confirmSecondFactor(ports, caller.actor, getSession(ctx).data.user, body.code);
  await rememberChangedDevice(ctx, ports);
  return { recoveryCodes };
}

export async function showSecondFactor({ ports, ctx }: Request<'showSecondFactor'>): Promise<SecondFactorView> {
  return { recoveryCodesLeft: await domain.countRecoveryCodes(ports, getSession(ctx).data.user) };
}

export async function renewRecoveryCodes({ ports, caller, ctx, body }: Request<'renewRecoveryCodes'>): Promise<RecoveryCodesView> {
  return { recoveryCodes: await domain.renewRecoveryCodes(ports, caller.actor, getSession(ctx).data.user, body.code) };
}

export async function removeSecondFactor({ ports, caller, ctx, body }: Request<'removeSecondFactor'>): Promise<void> {
  await domain.removeSecondFactor(ports, caller.actor, getSession(ctx).data.user, body.code);
  await rememberChangedDevice(ctx, ports);
}
