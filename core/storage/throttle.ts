import { hash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { RateLimiterRes } from 'rate-limiter-flexible';
import RateLimiterStoreAbstract from 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js';
import type { SignInThrottle } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import type { Database } from './database.ts';
import { asProblem } from './faults.ts';

/**
 * Wrong passwords that are let through before a pause, in a window of seconds from the first one:
 * - `pair`: for one account from one address;
 * - `account`: for one account from anywhere, so that many addresses do not help;
 * - `address`: from one address for any account, so that many accounts do not help.
 */
export const throttleLimits = {
  pair: { points: 10, duration: 15 * 60 },
  account: { points: 100, duration: 60 * 60 },
  address: { points: 100, duration: 15 * 60 },
} as const;

type Kind = keyof typeof throttleLimits;

/** The counters are in the database, so they hold over all processes and restarts. */
export function signInThrottle(database: Database): SignInThrottle & { sweep(): Promise<void> } {
  const limiters = {
    pair: new DatabaseLimiter(database, 'pair'),
    account: new DatabaseLimiter(database, 'account'),
    address: new DatabaseLimiter(database, 'address'),
  };

  const countersOf = ({ email, address, trusted }: { email: string; address: string; trusted: boolean }): [Kind, string][] => {
    const pair: [Kind, string][] = trusted
      ? []
      : [
          ['pair', digest(`${email} ${networkOf(address)}`)],
          ['account', digest(email)],
        ];
    return [...pair, ['address', digest(networkOf(address))]];
  };

  return {
    async take(attempt) {
      for (const [kind, key] of countersOf(attempt)) {
        try {
          await limiters[kind].consume(key);
        } catch (refused) {
          throw refused instanceof RateLimiterRes ? tooMany(refused.msBeforeNext) : asProblem(refused);
        }
      }
    },
    async giveBack(attempt) {
      for (const [kind, key] of countersOf(attempt)) await limiters[kind].reward(key);
    },
    async forgive(attempt) {
      for (const [kind, key] of countersOf(attempt)) {
        if (kind === 'pair') await limiters.pair.delete(key);
        else await limiters[kind].reward(key);
      }
    },
    async sweep() {
      await database.write('sign_in_attempts').where('expire', '<', Date.now()).delete();
    },
  };
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
  const seconds = Math.max(1, Math.ceil(millis / 1_000));
  return new Problem('too-many-requests', 'Too many sign-ins failed. Wait before you try again.', { retryAfter: seconds });
}

/** Addresses and e-mail addresses of any length, as keys of one length that tell nothing. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

type Counted = { points: number; expire: number };

/**
 * The library's counting on this database's writer, one statement at a time. (Its own SQLite store keeps transactions open when two
 * attempts meet, and with them the lock on the whole file.)
 */
class DatabaseLimiter extends RateLimiterStoreAbstract {
  readonly #database: Database;

  constructor(database: Database, kind: Kind) {
    const limit = throttleLimits[kind];
    // A key that is over its limit is refused from memory: a flood costs no writes.
    super({ storeClient: database, keyPrefix: kind, ...limit, inMemoryBlockOnConsumed: limit.points + 1 });
    this.#database = database;
  }

  protected async _upsert(key: string | number, points: number, duration: number, forceExpire = false): Promise<Counted | undefined> {
    const now = Date.now();
    const isOver = forceExpire ? '1 = 1' : 'sign_in_attempts.expire <= ?';
    const counted = await this.#database.write.raw(
      `INSERT INTO sign_in_attempts (key, points, expire) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET
         points = CASE WHEN ${isOver} THEN excluded.points ELSE sign_in_attempts.points + excluded.points END,
         expire = CASE WHEN ${isOver} THEN excluded.expire ELSE sign_in_attempts.expire END
       RETURNING points, expire`,
      forceExpire ? [String(key), points, now + duration] : [String(key), points, now + duration, now, now],
    );
    const rows: Counted[] = Array.isArray(counted) ? counted : counted.rows;
    return rows[0];
  }

  protected async _get(key: string | number): Promise<Counted | null> {
    const found: Counted | undefined = await this.#database
      .read('sign_in_attempts')
      .where({ key })
      .where('expire', '>', Date.now())
      .first('points', 'expire');
    return found ?? null;
  }

  protected async _delete(key: string | number): Promise<boolean> {
    return (await this.#database.write('sign_in_attempts').where({ key }).delete()) > 0;
  }

  protected _getRateLimiterRes(_key: string | number, changed: number, { points, expire }: Counted): RateLimiterRes {
    return new RateLimiterRes(Math.max(this.points - points, 0), Math.max(expire - Date.now(), 0), points, changed === points);
  }
}
