import { hash } from 'node:crypto';
import { RateLimiterPostgres, RateLimiterRes, RateLimiterSQLite, type RateLimiterStoreAbstract } from 'rate-limiter-flexible';
import sqlite3 from 'sqlite3';
import type { SignInThrottle } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import type { Database, DatabaseLocation } from './database.ts';
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
export function signInThrottle(database: Database, location: DatabaseLocation): { throttle: SignInThrottle; close(): Promise<void> } {
  const { limiter, close } = location.kind === 'sqlite' ? sqliteLimiter(location.filename) : postgresLimiter(database);
  const limiters = { pair: limiter('pair'), account: limiter('account'), address: limiter('address') };

  const countersOf = ({ email, address, trusted }: { email: string; address: string; trusted: boolean }): [Kind, string][] => {
    const pair: [Kind, string][] = trusted
      ? []
      : [
          ['pair', digest(`${email} ${address}`)],
          ['account', digest(email)],
        ];
    return [...pair, ['address', digest(address)]];
  };

  const throttle: SignInThrottle = {
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
      for (const [kind, key] of countersOf(attempt)) {
        if (kind === 'pair') await limiters.pair.delete(key);
        else await limiters[kind].reward(key);
      }
    },
  };
  return { throttle, close };
}

function tooMany(millis: number): Problem {
  const seconds = Math.max(1, Math.ceil(millis / 1_000));
  return new Problem('too-many-requests', 'Too many sign-ins failed. Wait before you try again.', { retryAfter: seconds });
}

/** Addresses and e-mail addresses of any length, as keys of one length that tell nothing. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

type MakeLimiter = (kind: Kind) => RateLimiterStoreAbstract;

const tableName = 'sign_in_attempts';

/** On a connection of its own: the library's savepoint must not take in other statements, nor they it. */
function sqliteLimiter(filename: string): { limiter: MakeLimiter; close(): Promise<void> } {
  const connection = new sqlite3.Database(filename);
  connection.configure('busyTimeout', 5_000);
  return {
    limiter: (kind) =>
      new RateLimiterSQLite({
        storeClient: connection,
        storeType: 'sqlite3',
        tableName,
        tableCreated: true,
        keyPrefix: kind,
        ...throttleLimits[kind],
      }),
    close: () => new Promise((resolve, reject) => connection.close((error) => (error ? reject(error) : resolve()))),
  };
}

function postgresLimiter(database: Database): { limiter: MakeLimiter; close(): Promise<void> } {
  return {
    limiter: (kind) =>
      new RateLimiterPostgres({
        storeClient: database.write,
        storeType: 'knex',
        tableName,
        tableCreated: true,
        keyPrefix: kind,
        ...throttleLimits[kind],
      }),
    close: () => Promise.resolve(),
  };
}
