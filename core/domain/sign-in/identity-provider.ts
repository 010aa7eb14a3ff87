import { hash } from 'node:crypto';
import { Duration } from 'luxon';
import { emailSchema } from '#contract/text/text.ts';
import { userEvent } from '../audit/audit.ts';
import { clockSkew } from '../deadlines.ts';
import { plus } from '../instant.ts';
import type { Digest, LinkProof, User } from '../model.ts';
import type { FlowSecrets, Identity, Ports, SignInCode } from '../ports.ts';
import { unauthorized } from '../problem.ts';

/**
 * The identity provider couldn't say who's signing in. `unreachable`: it didn't respond as it should; `cancelled`: the user refused;
 * `refused`: its response isn't valid; `expired`: it wasn't asked, because the sign-in is over or began in another browser.
 */
export class IdentityProviderError extends Error {
  override name = 'IdentityProviderError';
  readonly reason: 'unreachable' | 'cancelled' | 'refused' | 'expired';

  constructor(reason: IdentityProviderError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export const refusalReasons = ['unknown', 'disabled', 'unverified', 'other-person'] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** The user doesn't learn the reason, but the audit log records it. */
export class SignInRefused extends Error {
  override name = 'SignInRefused';
  readonly reason: RefusalReason;
  /** The user, or the email address if no user has it. */
  readonly who: User | string;

  constructor(reason: RefusalReason, who: User | string) {
    super(`Sign-in refused: ${reason}`);
    this.reason = reason;
    this.who = who;
  }
}

/** How long a user may take to sign in at the identity provider. */
export const flowLife = Duration.fromObject({ minutes: 10 });

/** How long a user may take to confirm a sign-in to the app. */
export const confirmationLife = Duration.fromObject({ minutes: 2 });

/** How long the app may take to use its code. */
const codeLife = Duration.fromObject({ seconds: 60 });

export function makeFlowSecrets(ports: Ports): FlowSecrets {
  return { state: randomText(ports), nonce: randomText(ports), verifier: randomText(ports) };
}

export function randomText({ randomness }: Ports): string {
  return Buffer.from(randomness.bytes(32)).toString('base64url');
}

/** At the first sign-in, finds the user by email address and links them. @param from.deviceUser from `findDeviceUser` @throws SignInRefused */
export async function findUserByIdentity(
  ports: Ports,
  identity: Identity,
  from: { address: string; deviceUser: string | null },
): Promise<LinkProof> {
  const { issuer, subject } = identity;
  const linked = await ports.stores.links.find({ issuer, subject });
  if (!linked) return linkByEmail(ports, identity, from);
  if (linked.disabledAt !== null) throw new SignInRefused('disabled', linked.user);
  return { issuer, subject, user: linked.user, signInVersion: linked.signInVersion };
}

async function linkByEmail(
  ports: Ports,
  { issuer, subject, email, isEmailVerified }: Identity,
  { address, deviceUser }: { address: string; deviceUser: string | null },
): Promise<LinkProof> {
  const read = email === null || hasLookalikes(email) ? null : (emailSchema.safeParse(email).data ?? null);
  const match = read === null ? null : await ports.stores.users.findByEmail(read);
  // If addresses didn't have to be verified, anyone with an identity at the identity provider could take over a user.
  if (read === null || !isEmailVerified) throw new SignInRefused('unverified', match?.user ?? read ?? '');
  if (!match) throw new SignInRefused('unknown', read);
  const { user, disabledAt, passwordExpiresAt } = match;
  if (disabledAt !== null) throw new SignInRefused('disabled', user);
  const event = userEvent(ports, { who: user, address }, 'user.linked', user);
  // The person who handed the password out could have changed it, too. But in a browser in which it was entered, the person knows it.
  const keepsPassword = deviceUser === user.id && passwordExpiresAt === null;
  await ports.stores.links.create({ id: user.id, signInVersion: match.signInVersion }, { issuer, subject }, keepsPassword, event);
  // If this didn't link the user, the same person may have signed in twice at the same time.
  const linked = await ports.stores.links.find({ issuer, subject });
  if (linked?.user.id !== user.id) throw new SignInRefused('other-person', user);
  return { issuer, subject, user, signInVersion: linked.signInVersion };
}

/**
 * Whether normalizing would turn a non-ASCII letter into an ASCII one, such as the Kelvin sign into a k. Two addresses that a mail server
 * delivers to different people would then belong to the same user.
 */
function hasLookalikes(email: string): boolean {
  return [...email].some((letter) => letter > '\u007f' && /[ -~]/.test(letter.normalize('NFC').toLowerCase()));
}

export async function createSignInCode(ports: Ports, code: string, signIn: Omit<SignInCode, 'digest' | 'expiresAt'>): Promise<void> {
  const expiresAt = plus(ports.clock.now(), codeLife.toMillis());
  await ports.stores.links.createCode({ ...signIn, digest: toCodeDigest(code), expiresAt });
}

/** A code works only once, whether the verifier is right or not. @throws Problem `unauthorized` */
export async function takeSignInCode(ports: Ports, { code, verifier }: { code: string; verifier: string }): Promise<LinkProof> {
  const { stores, clock, identityProvider } = ports;
  const taken = await stores.links.takeCode(toCodeDigest(code));
  const isRight = taken !== null && taken.expiresAt >= clock.now() && taken.challenge === hash('sha256', verifier, 'base64url');
  // Refuse a code that expires too late, because setting the clock back must not extend a code's life. Allow for clock skew, because the
  // clock of the core that generated the code may be ahead of this one.
  const isFresh = taken !== null && taken.expiresAt <= plus(clock.now(), codeLife.plus(clockSkew).toMillis());
  const user =
    isRight && isFresh && taken.issuer === identityProvider?.issuer ? await stores.users.find({ kind: 'all' }, taken.userId) : null;
  if (!user || !taken) throw unauthorized();
  return { user, issuer: taken.issuer, subject: taken.subject, signInVersion: taken.signInVersion };
}

function toCodeDigest(code: string): Digest {
  return hash('sha256', code);
}
