import { Problem } from '../domain/problem.ts';
import { sharedQueue } from '../domain/shared-queue.ts';

type Turn = { share: string; latest: number; start: () => void; refuse: (problem: Problem) => void };

/** The maximum number of waiting bodies. Together, they take up to 64 MB. */
const maxWaiting = 1_000;
/** In ms. A request with a key must still have time for a statement afterwards: see `deadlines`. */
const maxWait = 2_000;

const waiting = sharedQueue<Turn>(maxWaiting, ({ share }) => share);

/**
 * Waits for a turn to parse a large body. Each turn of the event loop parses one, because a body with thousands of unknown fields takes up
 * to 10 ms. Small bodies don't wait, so a flood of large ones doesn't delay them. Keys and users take turns, so a flood delays only itself.
 *
 * @param share the key or user that sent the body
 * @throws Problem `unavailable`
 */
export function waitForParseTurn(share: string): Promise<void> {
  return new Promise((start, refuse) => {
    if (waiting.length() === 0) setImmediate(startNext);
    waiting.add({ share, latest: performance.now() + maxWait, start, refuse })?.refuse(tooMany());
  });
}

function startNext(): void {
  const now = performance.now();
  waiting.keep(({ latest, refuse }) => {
    if (latest < now) refuse(tooMany());
    return latest >= now;
  });
  waiting.take(1)[0]?.start();
  if (waiting.length() > 0) setImmediate(startNext);
}

function tooMany(): Problem {
  return new Problem('unavailable', 'Too many large requests are waiting. Try again shortly.', { retryAfter: 2 });
}
