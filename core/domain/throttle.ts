import { hash } from 'node:crypto';
import { Duration } from 'luxon';
import { isPrintable } from '#contract/text.ts';
import type { Credentials } from './model.ts';
import type { Ports, ThrottleCounter } from './ports.ts';
import { Problem } from './problem.ts';

/**
 * `trusted` attempts come from a client with a live session of the same user. They count by address only, so that nobody can lock a
 * signed-in user out.
 */
type Attempt = { email: string; address: string; trusted: boolean };

/**
 * Wrong passwords before a pause, in a window from the first one:
 * - `address`: from one address for any account, against an attacker who tries many accounts;
 * - `account`: for one account from anywhere, against an attacker with many addresses;
 * - `pair`: for one account from one address, below both, so that an honest user blocks only themself.
 */
export const throttleLimits = {
  address: { most: 100, window: Duration.fromObject({ minutes: 15 }) },
  account: { most: 100, window: Duration.fromObject({ hours: 1 }) },
  pair: { most: 10, window: Duration.fromObject({ minutes: 15 }) },
};

/** In ms. A counter that ends further ahead comes from a clock that has stepped back since. */
export const longestWindow = Math.max(...Object.values(throttleLimits).map(({ window }) => window.toMillis()));

/**
 * Checks a password, and counts a wrong one.
 *
 * @returns the credentials of `email`, or null if the password is wrong
 * @throws Problem `too-many-requests`
 */
export async function checkPassword(ports: Ports, attempt: Attempt, email: string, password: string): Promise<Credentials | null> {
  const counters = countersOf(attempt);
  const now = ports.clock.millis();
  // Before the queue for the password check: a flood of blocked attempts takes no place in it, and writes nothing.
  const blockedUntil = await ports.throttle.blockedUntil(counters, now);
  if (blockedUntil !== null) throw tooMany(blockedUntil - now);
  const find = async () => {
    // Counts before the check, so that parallel guesses count; but only attempts that got a place in its queue, so that a crowd that signs in
    // is not blocked, and invented e-mail addresses add rows no faster than passwords are checked.
    if (!(await ports.throttle.take(counters, now))) throw tooMany(((await ports.throttle.blockedUntil(counters, now)) ?? now) - now);
    // Skips an address that nobody can have: databases refuse some characters.
    return isPrintable(email) ? ports.stores.users.findByEmail(email) : null;
  };
  const credentials = await ports.passwords.verify(find, password);
  if (credentials) await clearCounters(ports, counters);
  return credentials;
}

/** A right password gives its own attempt back, and clears the wrong ones for the same account from the same address. */
async function clearCounters({ throttle }: Ports, counters: readonly Counter[]): Promise<void> {
  for (const { kind, key } of counters) await (kind === 'pair' ? throttle.reset(key) : throttle.giveBack(key));
}

type Counter = ThrottleCounter & { kind: keyof typeof throttleLimits };

function countersOf({ email, address, trusted }: Attempt): Counter[] {
  const network = networkOf(address);
  const byAddress = counterOf('address', network);
  return trusted ? [byAddress] : [byAddress, counterOf('account', email), counterOf('pair', `${email} ${network}`)];
}

/** Hashes, so that the keys have one length and no personal data. */
function counterOf(kind: keyof typeof throttleLimits, of: string): Counter {
  const { most, window } = throttleLimits[kind];
  return { kind, key: `${kind}:${hash('sha256', of, 'base64url')}`, most, window: window.toMillis() };
}

/** A /64 of IPv6 addresses counts as one, since one customer has all of it (RFC 6177). */
function networkOf(address: string): string {
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}

function tooMany(millis: number): Problem {
  const retryAfter = Math.max(1, Math.ceil(millis / 1_000));
  return new Problem('too-many-requests', 'Too many sign-ins failed. Wait before you try again.', { retryAfter });
}
