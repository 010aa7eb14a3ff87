import type { Ports } from '../../domain/ports.ts';
import { type Company, deviceLife, deviceToken } from '../../domain/sign-in/devices.ts';
import type { Context } from './context.ts';
import { isSignedIn, sessionOf } from './session.ts';

/** Signed with the session secrets, and over https with the same prefix: see `session.ts`. */
const cookieName = 'callkey_device';

/** From now on, wrong passwords from elsewhere don't lock the user out of this browser. */
export function rememberDevice(ctx: Context, ports: Ports, passwordHash: string): void {
  const options = { maxAge: deviceLife.toMillis(), sameSite: 'strict', httpOnly: true, signed: true } as const;
  ctx.cookies.set(cookieName, deviceToken(ports, passwordHash), options);
}

/** @returns no device if the cookie's signature isn't valid */
export function companyOf(ctx: Context): Company {
  return { session: isSignedIn(ctx) ? sessionOf(ctx) : null, device: ctx.cookies.get(cookieName, { signed: true }) };
}
