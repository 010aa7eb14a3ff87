import type { Middleware } from './middleware/context.ts';

/** The number of waiting requests that start in one turn of the event loop. */
const startsInTurn = 4;

const waiting: (() => void)[] = [];

/**
 * Waits until the request may start, because only a few start in each turn of the event loop. Otherwise, hundreds of connections whose
 * requests are quickly refused could fill every turn, since each sends its next request right after the response. Other requests would then
 * have to wait until such a turn ends, once for each of their statements, and a sign-in has more than ten.
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

/** Makes requests without a key wait, so that only a few start in each turn of the event loop. */
export const strangerTurns: Middleware = async (_, next) => {
  await waitForStrangerTurn();
  await next();
};
