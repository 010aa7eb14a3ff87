import { sessionRoutes } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { Problem } from '../../domain/problem.ts';
import { findVoucher } from '../../domain/sign-in/devices.ts';
import * as domain from '../../domain/sign-in/second-factor.ts';
import { readBody } from '../middleware/body.ts';
import type { CodeResult, Context, HttpDeps } from '../middleware/context.ts';
import { getHalfOpenSession, readVouchers, rememberChangedDevice, startNewSession } from '../middleware/session.ts';
import type { Handler } from './request.ts';
import { answerSession } from './sessions.ts';

const { enterCode: route } = sessionRoutes;

export async function enterCode(ctx: Context, deps: HttpDeps): Promise<void> {
  const halfOpen = getHalfOpenSession(ctx);
  const { code } = await readBody(ctx, route.body, limits.strangerBodyBytes);
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

export const enrollSecondFactor: Handler<'enrollSecondFactor'> = async ({ ports, deps, caller, ctx, body }) => {
  const host = URL.parse(deps.publicUrl || `http://${ctx.get('Host')}`)?.host ?? '';
  return domain.enrollSecondFactor(ports, caller, body.currentPassword, host);
};

export const confirmSecondFactor: Handler<'confirmSecondFactor'> = async ({ ports, caller, ctx, body }) => {
  const recoveryCodes = await domain.confirmSecondFactor(ports, caller, body.code);
  await rememberChangedDevice(ctx, ports);
  return { recoveryCodes };
};

export const showSecondFactor: Handler<'showSecondFactor'> = async ({ ports, viewer }) => ({
  recoveryCodesLeft: await domain.countRecoveryCodes(ports, viewer),
});

export const renewRecoveryCodes: Handler<'renewRecoveryCodes'> = async ({ ports, caller, body }) => ({
  recoveryCodes: await domain.renewRecoveryCodes(ports, caller, body.code),
});

export const removeSecondFactor: Handler<'removeSecondFactor'> = async ({ ports, caller, ctx, body }) => {
  await domain.removeSecondFactor(ports, caller, body.code);
  await rememberChangedDevice(ctx, ports);
};
