import { createHmac, timingSafeEqual } from 'node:crypto';
import { userEvent } from '../audit/audit.ts';
import { readableEmail } from '../directory/readable-email.ts';
import type { Actor, AuditEvent, Digest, Proof, SignedInCaller, User } from '../model.ts';
import type { Attempt, CheckedCode, Ports } from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { checkPassword, countCode, forgetWrongCodes, ownSessions, requirePasswordSignIn } from './throttle.ts';

const recoveryCodes = 10;
/** Each has 5 bits, so that a code has 50. */
const recoveryLetters = 10;

/** Generates a secret for the user's app. It takes effect once {@link confirmSecondFactor} has received a code. */
export async function enrollSecondFactor(ports: Ports, { viewer: user, actor }: SignedInCaller, currentPassword: string, host: string) {
  const { stores, randomness, secretBox } = ports;
  requirePasswordSignIn(ports);
  if (await hasSecondFactor(ports, user)) throw alreadyEnabled();
  const credentials = await checkPassword(ports, ownAttempt(actor, user), user.email, currentPassword);
  if (!credentials) throw invalidField('currentPassword', 'Incorrect current password.');
  const bytes = randomness.bytes(totp.secretBytes);
  const target = { id: user.id, signInVersion: credentials.signInVersion };
  if (!(await stores.secondFactors.enroll(target, secretBox.seal(user.id, bytes), actor.session))) throw alreadyEnabled();
  const secret = toBase32(bytes);
  return { secret, uri: otpauthUri(secret, user.email, host) };
}

/** @returns the recovery codes, which aren't stored */
export async function confirmSecondFactor(ports: Ports, { viewer: user, actor }: SignedInCaller, code: string): Promise<string[]> {
  const { stores, clock, secretBox } = ports;
  const waiting = await stores.secondFactors.find(user.id);
  if (waiting?.isConfirmed) throw alreadyEnabled();
  const secret = waiting && readable(() => secretBox.open(user.id, waiting.secret));
  if (!secret) throw new Problem('conflict', 'Set up the second factor first.');
  const codes = makeRecoveryCodes(ports);
  const event = userEvent(ports, actor, 'second-factor.enabled', user);
  // Don't count wrong six-digit codes for the user: guessing gains nothing, because the secret was just shown, and a blocked user would
  // have no recovery code to enter instead.
  const attempt = { ...ownAttempt(actor, user), sixDigitUserId: null, followsPassword: false };
  await countCode(ports, attempt, async () => {
    const step = matchingStep(secret, plain(code), clock.now());
    if (step === null) return false;
    const recoveryDigests = hashRecoveryCodes(secret, codes);
    return stores.secondFactors.confirm(user.id, { secret: waiting.secret, step, recoveryDigests, at: event.at }, event);
  });
  await forgetWrongCodes(ports, user.id);
  return codes;
}

export async function removeSecondFactor(ports: Ports, { viewer: user, actor }: SignedInCaller, code: string): Promise<void> {
  const event = userEvent(ports, actor, 'second-factor.removed', user);
  const use = (checked: CheckedCode) => ports.stores.secondFactors.remove(user.id, checked, event);
  if (!(await useCode(ports, ownAttempt(actor, user), user, code, use))) throw noFactor();
}

/** @returns the new codes, which aren't stored */
export async function renewRecoveryCodes(ports: Ports, { viewer: user, actor }: SignedInCaller, code: string): Promise<string[]> {
  const codes = makeRecoveryCodes(ports);
  const event = userEvent(ports, actor, 'recovery-codes.renewed', user);
  const use = (checked: CheckedCode, secret: Uint8Array) =>
    ports.stores.secondFactors.renew(user.id, checked, hashRecoveryCodes(secret, codes), event);
  if (!(await useCode(ports, ownAttempt(actor, user), user, code, use))) throw noFactor();
  return codes;
}

export async function countRecoveryCodes(ports: Ports, user: User): Promise<number> {
  if (!(await hasSecondFactor(ports, user))) throw noFactor();
  return ports.stores.secondFactors.countRecoveryCodes(user.id);
}

/** @throws Problem `forbidden` if the user has a second factor and there's no code, `unauthorized` if it's wrong */
export async function requireCode(ports: Ports, actor: Actor, user: User, code?: string): Promise<void> {
  if (code === undefined) return requireNoFactor(ports, user);
  const use = (checked: CheckedCode) => ports.stores.secondFactors.use(user.id, checked, recoveryEvents(ports, actor, user, checked));
  await useCode(ports, ownAttempt(actor, user), user, code, use);
}

async function hasSecondFactor({ stores }: Ports, { id }: User): Promise<boolean> {
  return (await stores.secondFactors.find(id))?.isConfirmed ?? false;
}

/** For routes with `confirm`. @throws Problem `forbidden` if the user has a second factor and there's no valid code */
export async function confirmRequest(ports: Ports, { viewer, actor }: SignedInCaller, code?: string): Promise<void> {
  await requireCode(ports, actor, viewer, code).catch((error: unknown) => {
    throw error instanceof Problem && error.code === 'unauthorized' ? codeNeeded(wrongCode) : error;
  });
}

const wrongCode = "This code isn't valid or has already been used. Enter the current code from your app, or another recovery code.";

/** @throws Problem `forbidden` if the user has a second factor */
export async function requireNoFactor(ports: Ports, user: User): Promise<void> {
  if (await hasSecondFactor(ports, user)) throw codeNeeded('Enter a code from your authenticator app, or a recovery code.');
}

function codeNeeded(message: string): Problem {
  return new Problem('forbidden', message, { errors: [{ path: 'code', message }] });
}

/** Replaces a half-open session with a new one. @returns false if the user has no second factor */
export async function finishSignIn(
  ports: Ports,
  id: Digest,
  { halfOpen, code, vouched }: Extract<Proof, { halfOpen: object }>,
  address: string,
): Promise<boolean> {
  const { user } = halfOpen.data;
  const attempt = { email: user.email, address, vouched };
  const actor = { who: user, address };
  const started = userEvent(ports, actor, 'session.started', user, 'session');
  const session = { id, userId: user.id, at: started.at, halfOpenUntil: null };
  const use = (checked: CheckedCode) =>
    ports.stores.sessions.finish(halfOpen.id, session, checked, [started, ...recoveryEvents(ports, actor, user, checked)]);
  return useCode(ports, attempt, user, code, use, true);
}

/**
 * Counts the attempt, then checks the code.
 *
 * @param use uses up the code (`useUp` in storage/users/second-factors.ts), if possible in the transaction of the change that it allows.
 *   Returns false if it was already used
 * @param followsPassword whether the code finishes a sign-in
 * @returns false if the user has no second factor
 * @throws Problem `unauthorized` or `too-many-requests`
 */
async function useCode(
  ports: Ports,
  attempt: Attempt,
  user: User,
  code: string,
  use: (checked: CheckedCode, secret: Uint8Array) => Promise<boolean>,
  followsPassword = false,
): Promise<boolean> {
  const factor = await ports.stores.secondFactors.find(user.id);
  if (!factor?.isConfirmed) return false;
  const secret = openSecret(ports, user, factor.secret);
  const counted = { ...attempt, sixDigitUserId: isRecoveryCode(plain(code)) ? null : user.id, followsPassword };
  await countCode(ports, counted, async () => {
    const checked = checkCode(secret, plain(code), ports.clock.now());
    return checked !== null && use(checked, secret);
  });
  return true;
}

/** @throws Problem `unavailable`, whose cause tells the operator what to do */
function openSecret({ secretBox }: Ports, { id }: User, sealed: string): Uint8Array {
  try {
    return secretBox.open(id, sealed);
  } catch (cause) {
    const detail = "This server can't read your second factor. Ask an administrator to reset it, or the operator to check the log.";
    // Retrying helps only after the operator has changed the configuration.
    throw new Problem('unavailable', detail, { cause, retryAfter: 60 });
  }
}

function isRecoveryCode(code: string): boolean {
  return code.length === recoveryLetters;
}

function checkCode(secret: Uint8Array, code: string, now: number): CheckedCode | null {
  if (isRecoveryCode(code)) return { kind: 'recovery', digest: recoveryDigest(secret, code) };
  const step = matchingStep(secret, code, now);
  return step === null ? null : { kind: 'step', step };
}

/**
 * Removes everything but letters and digits, because people type spaces and any kind of dash. Accepts the digits of all scripts, because
 * some keyboards have no others. Corrects letters that look like digits (Crockford's base32).
 */
function plain(code: string): string {
  const characters = code
    .normalize('NFKC')
    .replace(/[^\p{L}\p{Nd}]/gu, '')
    .replace(/\p{Nd}/gu, toAsciiDigit);
  return characters.toLowerCase().replaceAll('o', '0').replace(/[il]/g, '1');
}

/** In Unicode, each script's digits follow each other from zero to nine. */
function toAsciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String((code - zero) % 10);
}

/** Hashes a recovery code with the user's secret as the key. Without a key, the 50 bits could be guessed from a copy of the database. */
function recoveryDigest(secret: Uint8Array, code: string): Digest {
  return createHmac('sha256', secret).update(plain(code)).digest('hex');
}

function hashRecoveryCodes(secret: Uint8Array, codes: readonly string[]): Digest[] {
  return codes.map((code) => recoveryDigest(secret, code));
}

function makeRecoveryCodes(ports: Ports): string[] {
  return Array.from({ length: recoveryCodes }, () => randomLetters(ports, recoveryLetters, 5));
}

/** Generates letters and digits of 5 bits each, in groups, and only those that are hard to confuse (Crockford's base32). */
function randomLetters({ randomness }: Ports, count: number, group: number): string {
  const letters = Array.from(randomness.bytes(count), (byte) => '0123456789abcdefghjkmnpqrstvwxyz'.charAt(byte % 32));
  return (letters.join('').match(new RegExp(`.{${group}}`, 'g')) ?? []).join('-');
}

const oneTimeLetters = { count: 24, group: 4 };
const oneTimeForm = /^[0-9a-z]{4}(?:-[0-9a-z]{4}){5}$/;

/** Generates 120 bits. */
export function generateOneTimePassword(ports: Ports): string {
  return randomLetters(ports, oneTimeLetters.count, oneTimeLetters.group);
}

/** Writes a one-time password as it was generated, if it was entered in capitals or with spaces around it. */
export function toOneTimePassword(entered: string): string {
  const password = entered.trim().toLowerCase();
  return oneTimeForm.test(password) ? password : entered;
}

function recoveryEvents(ports: Ports, actor: Actor, user: User, { kind }: CheckedCode): AuditEvent[] {
  return kind === 'recovery' ? [userEvent(ports, actor, 'recovery-code.used', user)] : [];
}

/**
 * Returns an attempt that's counted separately from sign-ins, so that someone who has taken over a session can't keep guessing or lock out
 * its user.
 */
export function ownAttempt({ address }: Actor, { id, email }: User): Attempt {
  return { email, address, vouched: ownSessions(id) };
}

function noFactor(): Problem {
  return new Problem('not-found', "You don't have a second factor.");
}

function alreadyEnabled(): Problem {
  return new Problem('conflict', 'You already have a second factor. Turn it off first.');
}

const resealBatchSize = 100;

/** Encrypts all secrets with the newest key, so that the operator can remove older session secrets. */
export async function resealSecrets(ports: Ports): Promise<{ resealed: number; unreadable: number }> {
  const { stores, secretBox } = ports;
  const { secondFactors } = stores;
  const counts = { resealed: 0, unreadable: 0 };
  for await (const { userId, secret } of listSealedOtherwise(ports)) {
    const opened = readable(() => secretBox.open(userId, secret));
    if (opened) await secondFactors.reseal(userId, secret, secretBox.seal(userId, opened));
    counts[opened ? 'resealed' : 'unreadable'] += 1;
  }
  return counts;
}

/** Counts the secrets whose key the core no longer has. */
export async function countUnreadable(ports: Pick<Ports, 'stores' | 'secretBox'>): Promise<number> {
  let count = 0;
  for await (const { userId, secret } of listSealedOtherwise(ports)) if (!readable(() => ports.secretBox.open(userId, secret))) count++;
  return count;
}

async function* listSealedOtherwise({ stores: { secondFactors }, secretBox }: Pick<Ports, 'stores' | 'secretBox'>) {
  const next = (after: string) => secondFactors.listSealedOtherwise(secretBox.newest, after, resealBatchSize);
  for (let batch = await next(''); batch.length > 0; batch = await next(batch.at(-1)?.userId ?? '')) yield* batch;
}

function readable(open: () => Uint8Array): Uint8Array | null {
  try {
    return open();
  } catch {
    return null;
  }
}

/** RFC 6238 with its defaults, because many apps support nothing else: SHA-1, six digits, 30 seconds. RFC 4226 §4 recommends 160 bits. */
export const totp = { secretBytes: 20, digits: 6, stepMs: 30_000 };

/** How many steps the phone's clock may differ, or a code may take to arrive (RFC 6238 §5.2). */
const tolerance = 1;

/** RFC 4226 §5.3. */
export function codeAt(secret: Uint8Array, step: number, digits = totp.digits): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  const offset = digest.readUInt8(digest.length - 1) & 0xf;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0');
}

/** @param now in ms. @returns the time step that the code belongs to; null if it's neither the current one nor next to it */
export function matchingStep(secret: Uint8Array, code: string, now: number): number | null {
  const current = Math.floor(now / totp.stepMs);
  const entered = Buffer.from(code);
  let match: number | null = null;
  for (let step = current - tolerance; step <= current + tolerance; step++) {
    const expected = Buffer.from(codeAt(secret, step));
    if (entered.length === expected.length && timingSafeEqual(entered, expected)) match = step;
  }
  return match;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Encodes bytes as base32 (RFC 4648 §6), as authenticator apps expect. The number of bytes must be a multiple of five. */
export function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet.charAt(Number.parseInt(five, 2))).join('');
}

/** Returns the address that an app reads from a QR code. @param host tells the servers apart that a person uses */
export function otpauthUri(secret: string, email: string, host: string): string {
  // A colon would separate the issuer from the address.
  const issuer = encodeURIComponent(`Callkey ${host.replaceAll(':', ' ')}`.trim());
  return `otpauth://totp/${issuer}:${encodeURIComponent(readableEmail(email))}?secret=${secret}&issuer=${issuer}`;
}
