import { hash } from 'node:crypto';
import { Duration } from 'luxon';
import { isPrintable } from '#contract/text/text.ts';
import type { Credentials, Digest, Session, SignInVersion } from '../model.ts';
import type { Ports } from '../ports.ts';

/** A device is no longer known after this time without a sign-in. */
export const deviceLife = Duration.fromObject({ days: 90 });

const idBytes = 16;

/**
 * Returns a cookie for a browser in which a user has signed in (OWASP Authentication Cheat Sheet, device cookies). It doesn't sign anyone
 * in, and vouches only for what the user has proved in the browser, so changing the password or setting up a second factor ends it. The
 * caller signs it.
 */
export function makeDeviceToken({ clock, randomness }: Ports, { user, signInVersion }: KnownUser): string {
  const id = Buffer.from(randomness.bytes(idBytes)).toString('base64url');
  return [id, clock.now() + deviceLife.toMillis(), fingerprint(signInVersion), user.id].join('.');
}

export type KnownUser = Pick<Credentials, 'user' | 'signInVersion'>;

/** What may vouch for a sign-in request: an open session, and a device token with a valid signature. */
export type Vouchers = { session: { id: Digest; data: Session } | null; device: string | undefined };

/** Identifies the device or session that vouches for this user, if one does. */
export async function findVoucher(ports: Ports, email: string, { session, device }: Vouchers): Promise<string | null> {
  if (device !== undefined && (await isKnown(ports, email, device))) return `device ${device}`;
  return session?.data.user.email === email ? `session ${session.id}` : null;
}

/**
 * Finds the user whom a device belongs to, for the identity provider, which says only at the end who is signing in.
 *
 * @returns the ID; null if the device isn't known, the user is disabled, or the way in which they sign in has changed since
 */
export async function findDeviceUser(ports: Ports, device: string | undefined): Promise<string | null> {
  const [, , , userId] = device?.split('.') ?? [];
  if (device === undefined || userId === undefined) return null;
  const user = await ports.stores.users.find({ kind: 'all' }, userId);
  return user?.disabledAt === null && (await isKnown(ports, user.email, device)) ? userId : null;
}

async function isKnown({ clock, stores }: Ports, email: string, token: string): Promise<boolean> {
  const [, expiresAt, print, userId] = token.split('.');
  if (!(Number(expiresAt) >= clock.now()) || !isPrintable(email)) return false;
  const credentials = await stores.users.findByEmail(email);
  return credentials !== null && credentials.user.id === userId && fingerprint(credentials.signInVersion) === print;
}

function fingerprint(version: SignInVersion): string {
  return hash('sha256', `device ${version}`, 'base64url');
}
