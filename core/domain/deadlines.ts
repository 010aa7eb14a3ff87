/**
 * In milliseconds. A key-authenticated request is answered within `answer` of its arrival, with 503 if need be: a client that hangs cannot
 * help its own caller. A statement gives up after `statement`, so one begins only while so much of the request's time is left: what
 * committed after its 503 would surprise a client that sent no request id.
 */
export const deadlines = { answer: 5_500, statement: 3_000 } as const;
