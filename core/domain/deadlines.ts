import { Duration } from 'luxon';

/**
 * All in milliseconds. A key-authenticated request gets a response within `answer`, with 503 if necessary, because a client that hangs
 * can't help its own caller. The time in which the client sends its body doesn't count. A 503 means that nothing was changed, so a
 * statement starts only while `statement` of that time is left, and waits for a lock for `lock` at most, so that the refusal comes in time.
 * If a statement has no result at the end of that time, there's no response, and the connection is closed. `statement` and the time for a
 * connection (storage/engine/postgres/postgres-connection.ts) together must not exceed `answer`.
 */
export const deadlines = { answer: 5_500, statement: 3_000, lock: 2_500 } as const;

/** How far apart the clocks of cores on one database may be, and how far an operator may set one. Kerberos allows the same. */
export const clockSkew = Duration.fromObject({ minutes: 5 });
