import { hash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { Duration } from 'luxon';
import { isPrintable } from '#contract/text.ts';
import type { Credentials, Ports, ThrottleCounter } from './ports.ts';
import { Problem } from './problem.ts';

/**
 * `trusted` attempts come from a client that holds a live session of that very user: they are counted by address alone, so that nobody can
 * lock a signed-in user out.
 */
export type Attempt = { email: string; address: string; trusted: boolean };

/**
 * Wrong passwords that are let through before a pause, in a window from the first one:
 * - `address`: from one address for any account, so that many accounts do not help;
 * - `account`: for one account from anywhere, so that many addresses do not help;
 * - `pair`: for one account from one address.
 */
export const throttleLimits = {
  address: { most: 100, window: Duration.fromObject({ minutes: 15 }) },
  account: { most: 100, window: Duration.fromObject({ hours: 1 }) },
  pair: { most: 10, window: Duration.fromObject({ minutes: 15 }) },
};

/** In ms. A counter that ends further ahead was made by a clock that has stepped back since. */
export const longestWindow = Math.max(...Object.values(throttleLimits).map(({ window }) => window.toMillis()));

/**
 * Checks a password, and counts it when it is wrong.
 *
 * @returns the credentials of `email`, or null when the password is not theirs
 * @throws Problem `too-many-requests`
 */
export async function checkPassword(ports: Ports, attempt: Attempt, email: string, password: string): Promise<Credentials | null> {
  const counters = countersOf(attempt);
  const now = ports.clock.millis();
  // Before a place in the queue for the password check: a flood of blocked attempts takes none, and writes nothing.
  const blockedUntil = await ports.throttle.blockedUntil(counters, now);
  if (blockedUntil !== null) throw tooMany(blockedUntil - now);
  const find = async () => {
    // Counted before the password is looked at, so that guesses in parallel count; and after it has a place in the queue, so that a crowd
    // is not taken for wrong passwords, and made-up e-mail addresses add rows no faster than passwords are checked.
    if (!(await ports.throttle.take(counters, now))) throw tooMany(((await ports.throttle.blockedUntil(counters, now)) ?? now) - now);
    // An address that nobody can have is not looked up: databases do not take every character.
    return isPrintable(email) ? ports.stores.users.findByEmail(email) : null;
  };
  const credentials = await ports.passwords.verify(find, password);
  if (credentials) await forgive(ports, counters);
  return credentials;
}

/** Gives back what a right password had taken, and what wrong ones for the same account from the same address had before. */
async function forgive({ throttle }: Ports, counters: readonly Counter[]): Promise<void> {
  for (const { kind, key } of counters) await (kind === 'pair' ? throttle.reset(key) : throttle.giveBack(key));
}

type Counter = ThrottleCounter & { kind: keyof typeof throttleLimits };

function countersOf({ email, address, trusted }: Attempt): Counter[] {
  const network = networkOf(address);
  const byAddress = counterOf('address', network);
  return trusted ? [byAddress] : [byAddress, counterOf('account', email), counterOf('pair', `${email} ${network}`)];
}

/** Addresses and e-mail addresses of any length become keys of one length that tell nothing. */
function counterOf(kind: keyof typeof throttleLimits, of: string): Counter {
  const { most, window } = throttleLimits[kind];
  return { kind, key: `${kind}:${hash('sha256', of, 'base64url')}`, most, window: window.toMillis() };
}

/** One customer has a whole /64 of IPv6 addresses: they count as one (RFC 6177). */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const left = head.split(':').filter((group) => group !== '');
  const right = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}

function tooMany(millis: number): Problem {
  const retryAfter = Math.max(1, Math.ceil(millis / 1_000));
  return new Problem('too-many-requests', 'Too many sign-ins failed. Wait before you try again.', { retryAfter });
}
