import type { Ports } from '../../domain/ports.ts';
import { deviceLife, type KnownUser, makeDeviceToken, type Vouchers } from '../../domain/sign-in/devices.ts';
import type { Context } from './context.ts';
import { getSession, isSignedIn } from './session.ts';

const cookieName = 'callkey_device';

/** Marks the browser as a known device again, after a change that its session has made to how the user signs in. */
export async function rememberChangedDevice(ctx: Context, ports: Ports): Promise<void> {
  const session = await ports.stores.sessions.find(getSession(ctx).id);
  if (session) rememberDevice(ctx, ports, session);
}

/**
 * Marks the browser as a known device. From now on, wrong passwords from elsewhere don't keep the user from signing in with it.
 *
 * @param user as they signed in here, not as they are now, because they may have set up a second factor in the meantime
 */
export function rememberDevice(ctx: Context, ports: Ports, user: KnownUser): void {
  const options = { maxAge: deviceLife.toMillis(), sameSite: 'strict' } as const;
  ctx.cookies.set(cookieName, makeDeviceToken(ports, user), options);
}

/** Reads the device and session in a request's cookies. @returns no device if its cookie doesn't have a valid signature */
export function readVouchers(ctx: Context): Vouchers {
  return { session: isSignedIn(ctx) ? getSession(ctx) : null, device: ctx.cookies.get(cookieName, { signed: true }) };
}
