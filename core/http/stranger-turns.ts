import type { Middleware } from './middleware/context.ts';

/** The number of requests that start in one turn of the event loop. */
const startsInTurn = 4;

const waiting: (() => void)[] = [];

/**
 * Waits for a turn. Otherwise, hundreds of connections whose requests are quickly refused could fill every turn of the event loop, because
 * each sends its next request right after the response. Each statement of another request would then have to wait for such a turn to end,
 * and a sign-in has more than ten statements.
 */
export function waitForStrangerTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(startWaiting);
  });
}

function startWaiting(): void {
  for (const start of waiting.splice(0, startsInTurn)) start();
  if (waiting.length > 0) setImmediate(startWaiting);
}

/** Makes requests without a key take turns. */
export const strangerTurns: Middleware = async (_, next) => {
  await waitForStrangerTurn();
  await next();
};
