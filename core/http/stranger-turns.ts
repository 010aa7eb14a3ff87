import type { Middleware } from './middleware/context.ts';

/** The number of requests that start in one turn of the event loop. */
const startsInTurn = 4;

const waiting: (() => void)[] = [];

/**
 * Waits for a turn. A connection sends its next request only after a response, so hundreds of connections whose requests are quickly
 * refused can't fill the turns of the event loop. Every statement of other requests waits for a turn, and a sign-in has more than ten
 * statements.
 */
export function turnOfStranger(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(startSome);
  });
}

function startSome(): void {
  for (const start of waiting.splice(0, startsInTurn)) start();
  if (waiting.length > 0) setImmediate(startSome);
}

/** Makes all requests without a key take turns. */
export const strangerTurns: Middleware = async (_, next) => {
  await turnOfStranger();
  await next();
};
