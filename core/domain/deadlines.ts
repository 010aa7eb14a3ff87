import { Duration } from 'luxon';

/**
 * In ms. A key-authenticated request gets a response within `answer`, with 503 if necessary, because a client that hangs can't help its own
 * caller. The time that the client takes to send the body doesn't count. A 503 to such a request means that nothing was changed; elsewhere,
 * its detail says if something was. So a statement starts only if at least `statement` remains, and waits at most `lock` for a lock. If one
 * that was sent has no result by the deadline, the connection is closed without a response. `statement` and the time for a connection
 * (storage/engine/postgres/postgres-connection.ts) together must not exceed `answer`.
 */
export const deadlines = { answer: 5_500, statement: 3_000, lock: 2_500 } as const;

/**
 * How far apart the clocks of cores on one database may be, and how far ahead an operator may set one. Kerberos allows the same difference.
 * The clocks of cores that dial must be closer: see `dialingLimits.lease`.
 */
export const clockSkew = Duration.fromObject({ minutes: 5 });
