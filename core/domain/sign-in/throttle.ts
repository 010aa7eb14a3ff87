import { hash } from 'node:crypto';
import { Duration } from 'luxon';
import { toNetworks } from '#contract/text/networks.ts';
import { isPrintable } from '#contract/text/text.ts';
import type { Millis } from '../instant.ts';
import type { Credentials } from '../model.ts';
import type { Attempt, Ports, ThrottleCounter } from '../ports.ts';
import { Problem, unauthorized } from '../problem.ts';
import { flowLife, IdentityProviderError } from './identity-provider.ts';

const quarter = Duration.fromObject({ minutes: 15 });
const hour = Duration.fromObject({ hours: 1 });

/**
 * The number of wrong passwords before a pause, in a window from the first one:
 * - `address`: from one address (IPv6: a /64) for any account, against an attacker who tries many accounts
 * - `network24`, `network56`, `network48`: the same for wider networks, which have many addresses and may have many honest users
 * - `account`: networks (/48 of IPv6, /24 of IPv4) with wrong passwords for one account, against an attacker with many networks. It counts
 *   networks instead of attempts, so that no household or company can lock the user out everywhere. Only the holder of many
 *   networks can, such as a whole /32 of IPv6. `counted` marks a network as counted
 * - `pairs24`, `pairs56`, `pairs48`: for one account from one network
 * - `pair`: for one account from one address, lower than both, so that honest users lock out only themselves
 * - `device`: from one session or known device, for its user
 * - `provider`: failed sign-ins with the identity provider from one address, because each sends it a request and adds an audit event.
 *   Wider networks have separate counters for these, with the same limits as above. Known devices have one for their user instead
 * - `flow`: the times that one sign-in with the identity provider can be finished
 * - `taken`: email addresses of others that one user tries to create users with
 * - `access`: events that one staff session works in one tenancy
 * - `code`: wrong six-digit codes for one user, from one known device, from the user's sessions, or from everywhere else together.
 *   Someone who knows the password needs only about 300,000 attempts to guess a code, so the limits above would be too high
 *   (RFC 4226 §7.3; NIST SP 800-63B §5.2.2 allows 100 failures in a row). Recovery codes can't be guessed, so they don't count
 *   here, and still let the user in
 * - `export` and `tenancy`: exports and switches of tenancy by one user, because each adds a permanent audit event
 * - `codes`: all of these together, because a user may have any number of devices. The other two can't reach it without them, so strangers
 *   can't lock the user out of a device
 */
const throttleLimits = {
  address: { max: 100, window: quarter },
  network24: { max: 1_000, window: quarter },
  network56: { max: 300, window: quarter },
  network48: { max: 1_000, window: quarter },
  account: { max: 20, window: hour },
  counted: { max: 1, window: hour },
  pairs24: { max: 100, window: hour },
  pairs56: { max: 100, window: hour },
  pairs48: { max: 100, window: hour },
  pair: { max: 10, window: quarter },
  device: { max: 10, window: quarter },
  provider: { max: 100, window: quarter },
  flow: { max: 1, window: flowLife },
  taken: { max: 10, window: Duration.fromObject({ hours: 1 }) },
  access: { max: 1, window: Duration.fromObject({ hours: 1 }) },
  code: { max: 20, window: Duration.fromObject({ hours: 24 }) },
  codes: { max: 100, window: Duration.fromObject({ hours: 24 }) },
  export: { max: 60, window: Duration.fromObject({ minutes: 1 }) },
  tenancy: { max: 300, window: Duration.fromObject({ minutes: 1 }) },
};

/** The longest window, in ms. A counter that ends later, even allowing for clock skew, was set by a clock that was ahead. */
export const maxWindow = Math.max(...Object.values(throttleLimits).map(({ window }) => window.toMillis()));

/**
 * Checks a password, and counts a wrong one.
 *
 * @param mayEnter whether a user with the correct password may sign in. Runs before any counter is cleared, because clearing would reveal
 * that the password was right
 * @throws Problem `too-many-requests`
 */
export async function checkPassword(
  ports: Ports,
  attempt: Attempt,
  email: string,
  password: string,
  mayEnter: (credentials: Credentials) => boolean = () => true,
): Promise<Credentials | null> {
  const counters = countersFor(attempt);
  const now = ports.clock.now();
  // Check this before queuing for the password check, so that a flood of blocked attempts doesn't fill the queue or write anything.
  await requireUnblocked(ports, limiting(counters), now);
  const find = async () => {
    // Count only attempts whose turn has come, so that many users signing in at once aren't blocked, and made-up email addresses don't add
    // rows faster than passwords are checked.
    await take(ports, counters, now);
    // Skip impossible addresses, because databases refuse some characters.
    return isPrintable(email) ? ports.stores.users.findByEmail(email) : null;
  };
  const credentials = await ports.passwords.verify(find, password, attempt);
  if (!credentials || !mayEnter(credentials)) return null;
  // With a second factor, the counters are cleared only after the code. Clearing them now would reveal that the password was right, and
  // someone who knows it could try codes without limit.
  if (!credentials.hasSecondFactor) await clearCounters(ports, counters);
  return credentials;
}

/** @property deviceUser from `findDeviceUser`: no one else can lock the user out of their device */
type IdentityProviderAttempt = { address: string; state: string; deviceUser: string | null };

/**
 * Call this right before the identity provider is asked.
 *
 * @returns a function that undoes the count; call it if the sign-in succeeds
 * @throws IdentityProviderError `expired` if this sign-in was already finished, or Problem `too-many-requests`
 */
export async function countIdentityProviderSignIn(ports: Ports, attempt: IdentityProviderAttempt): Promise<() => Promise<void>> {
  const { address, state, deviceUser } = attempt;
  const flow = createCounter('flow', state);
  const counters = deviceUser === null ? createNetworkCounters('provider', address) : [createCounter('provider', deviceUser)];
  const now = ports.clock.now();
  if ((await ports.throttle.blockedUntil([flow], now)) !== null)
    throw new IdentityProviderError('expired', 'This sign-in was already finished.');
  await requireUnblocked(ports, limiting(counters), now);
  await take(ports, [flow, ...counters], now);
  return () => clearCounters(ports, counters);
}

/** Whether this is the first time that a sign-in with the identity provider does something that it may do only once. */
export function takeOnce({ throttle, clock }: Ports, what: string): Promise<boolean> {
  return throttle.take([createCounter('flow', what)], clock.now());
}

/** @property sixDigitUserId set if the code has six digits and doesn't confirm a new app @property followsPassword that was counted, too */
type CodeAttempt = Attempt & { sixDigitUserId: string | null; followsPassword: boolean };

/** @throws Problem `unauthorized` if the code is wrong, or `too-many-requests` */
export async function countCode(ports: Ports, attempt: CodeAttempt, isRight: () => Promise<boolean>): Promise<void> {
  const { sixDigitUserId, followsPassword, vouched } = attempt;
  const usual = countersFor(attempt);
  const digits = sixDigitUserId === null ? [] : [createCounter('code', vouched ?? sixDigitUserId), createCounter('codes', sixDigitUserId)];
  const now = ports.clock.now();
  if (digits.length > 0) await requireUnblocked(ports, digits, now, 'Too many wrong codes. Enter a recovery code instead.');
  await requireUnblocked(ports, limiting(usual), now);
  await take(ports, [...usual, ...digits], now);
  if (!(await isRight())) throw unauthorized();
  await clearCounters(ports, [...usual, ...digits]);
  if (followsPassword) await clearCounters(ports, usual);
}

/** They were for a second factor that the user no longer has. */
export async function forgetWrongCodes({ throttle, clock }: Ports, userId: string): Promise<void> {
  const counters = [createCounter('code', userId), createCounter('code', ownSessions(userId)), createCounter('codes', userId)];
  for (const { key } of counters) await throttle.reset(key, clock.now());
}

/** Identifies the attempts that come from a user's own sessions. */
export function ownSessions(userId: string): string {
  return `change ${userId}`;
}

/** Call this before the attempt is checked, so that parallel guesses count, too. @throws Problem `too-many-requests` */
async function take({ throttle }: Ports, counters: readonly Counter[], now: Millis): Promise<void> {
  const counting = limiting(counters);
  if (!(await throttle.take(counting, now))) throw tooMany(((await throttle.blockedUntil(counting, now)) ?? now) - now);
  // Each mark stands for one attempt that the account's counter has, also while concurrent attempts are counted and cleared.
  const { account, mark } = markOf(counters);
  if (account && mark && !(await throttle.take([mark], now))) await throttle.giveBack(account.key);
}

async function requireUnblocked({ throttle }: Ports, counters: readonly Counter[], now: Millis, message?: string): Promise<void> {
  const blockedUntil = await throttle.blockedUntil(counters, now);
  if (blockedUntil !== null) throw tooMany(blockedUntil - now, message);
}

function limiting(counters: readonly Counter[]): Counter[] {
  return counters.filter(({ kind }) => kind !== 'counted');
}

/** Does something at most once per hour, on all cores together. If it fails, the next attempt does it. */
export async function oncePerHour({ throttle, clock }: Ports, what: string, work: () => Promise<void>): Promise<void> {
  const counter = createCounter('access', what);
  const now = clock.now();
  if ((await throttle.blockedUntil([counter], now)) !== null || !(await throttle.take([counter], now))) return;
  await work().catch(async (error: unknown) => {
    await throttle.giveBack(counter.key);
    throw error;
  });
}

/** @throws Problem `too-many-requests` if a user has tried too many email addresses that are taken */
export function requireUntaken(ports: Ports, userId: string): Promise<void> {
  return requireUnblocked(ports, [createCounter('taken', userId)], ports.clock.now(), "Too many email addresses that can't be used.");
}

export async function countTaken({ throttle, clock }: Ports, userId: string): Promise<void> {
  await throttle.take([createCounter('taken', userId)], clock.now());
}

/** Counts an export or a switch of tenancy. @throws Problem `too-many-requests` */
export async function countRecorded(ports: Ports, kind: 'export' | 'tenancy', userId: string): Promise<void> {
  const counters = [createCounter(kind, userId)];
  const what = kind === 'export' ? 'exports' : 'switches between accounts or partners';
  const message = `At most ${throttleLimits[kind].max} ${what} per minute are allowed.`;
  const now = ports.clock.now();
  // Check first, so that a client that's blocked but keeps trying doesn't cause any writes.
  await requireUnblocked(ports, counters, now, message);
  if (!(await ports.throttle.take(counters, now))) throw tooMany(0, message);
}

/** Undoes the count of an attempt that was right, and clears wrong passwords for the same account from the same address or device. */
async function clearCounters({ throttle, clock }: Ports, counters: readonly Counter[]): Promise<void> {
  const { account, mark } = markOf(counters);
  const now = clock.now();
  if (account && mark && (await throttle.reset(mark.key, now))) await throttle.giveBack(account.key);
  for (const { kind, key } of counters.filter((counter) => counter !== account && counter !== mark))
    await (kind.startsWith('pair') || kind === 'device' ? throttle.reset(key, now) : throttle.giveBack(key));
}

/** Finds the account's counter, which counts each network once, and the mark that it has counted the network of these counters. */
function markOf(counters: readonly Counter[]): { account: Counter | undefined; mark: Counter | undefined } {
  const find = (kind: Kind) => counters.find((counter) => counter.kind === kind);
  return { account: find('account'), mark: find('counted') };
}

type Kind = keyof typeof throttleLimits;
type Counter = ThrottleCounter & { kind: Kind };

function countersFor({ email, address, vouched }: Attempt): Counter[] {
  if (vouched !== null) return [createCounter('device', vouched)];
  const [pair = '', ...networks] = toNetworks(address).map((network) => `${email} ${network}`);
  const kinds: readonly Kind[] = networks.length === 1 ? ['pairs24'] : ['pairs56', 'pairs48'];
  return [
    ...createNetworkCounters('address', address),
    createCounter('account', email),
    createCounter('counted', networks.at(-1) ?? pair),
    createCounter('pair', pair),
    ...networks.map((network, index) => createCounter(kinds[index] ?? 'pairs48', network)),
  ];
}

function createNetworkCounters(kind: 'address' | 'provider', address: string): Counter[] {
  const [narrowest = '', ...wider] = toNetworks(address);
  const kinds: readonly Kind[] = wider.length === 1 ? ['network24'] : ['network56', 'network48'];
  return [
    createCounter(kind, narrowest),
    ...wider.map((network, index) => createCounter(kinds[index] ?? 'network48', `${kind} ${network}`)),
  ];
}

/** Hashes the keys, so that they have the same length and contain no personal data. */
function createCounter(kind: Kind, of: string): Counter {
  const { max, window } = throttleLimits[kind];
  return { kind, key: `${kind}:${hash('sha256', of, 'base64url')}`, max, window: window.toMillis() };
}

function tooMany(millis: number, what = 'Too many attempts.'): Problem {
  const retryAfter = Math.max(1, Math.ceil(millis / 1_000));
  return new Problem('too-many-requests', `${what} Try again in ${formatWait(retryAfter)}.`, { retryAfter });
}

function formatWait(seconds: number): string {
  const [count, unit] =
    seconds < 60 ? [seconds, 'second'] : seconds <= 7_200 ? [Math.ceil(seconds / 60), 'minute'] : [Math.ceil(seconds / 3_600), 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** Call this before a password is checked, changed or handed out. @throws Problem `forbidden` */
export function requirePasswordSignIn({ passwordSignIn, identityProvider }: Ports): void {
  if (!passwordSignIn)
    throw new Problem('forbidden', `Passwords are turned off. Sign in with ${identityProvider?.name ?? 'your provider'} instead.`);
}
