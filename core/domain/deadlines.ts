import { Duration } from 'luxon';

/**
 * In milliseconds. A key-authenticated request is answered within `answer` of its arrival, with 503 if need be: a client that hangs cannot
 * help its own caller. A statement gives up after `statement`, and starts only while at least that much of the request's time is left: a
 * commit after the 503 would surprise a client that sent no request id. So `statement` must be shorter than `answer`, and together with the
 * time for a connection (storage/postgres.ts) no longer.
 */
export const deadlines = { answer: 5_500, statement: 3_000 } as const;

/** How far apart the clocks of cores on one database may be, or how far an operator may set one. Kerberos allows the same. */
export const clockSkew = Duration.fromObject({ minutes: 5 });
