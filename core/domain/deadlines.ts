import { Duration } from 'luxon';

/**
 * In milliseconds. A key-authenticated request is answered within `answer`, with 503 if need be: a client that hangs cannot help its own caller.
 * The time in which the client sends its body does not count. A 503 says that nothing was changed: a statement starts only while `statement` of
 * that time is left, and waits for a lock no longer than `lock`, so that the refusal comes in time. A statement that has no result at the end of
 * the time gets no answer at all: its connection is closed. `statement` and the time for a connection (storage/postgres-connection.ts) together
 * must not exceed `answer`.
 */
export const deadlines = { answer: 5_500, statement: 3_000, lock: 2_500 } as const;

/** How far apart the clocks of cores on one database may be, or how far an operator may set one. Kerberos allows the same. */
export const clockSkew = Duration.fromObject({ minutes: 5 });
