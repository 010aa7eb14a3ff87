import { setTimeout as wait } from 'node:timers/promises';
import type { CallLine } from './call-file.ts';

export type Pace = { concurrency: number /** Calls a second. */; rate: number | undefined };

/**
 * Places lines side by side until all are done or the signal stops it. What is under way when it stops is let finish.
 *
 * @throws what the first line to fail threw, once all others have stopped
 */
export async function placeLines(
  lines: readonly CallLine[],
  { concurrency, rate }: Pace,
  stop: AbortController,
  placeLine: (line: CallLine) => Promise<void>,
): Promise<void> {
  const remaining = lines.values();
  const turn = turns(rate, stop.signal);
  const lane = async () => {
    for (const line of remaining) {
      await turn();
      if (stop.signal.aborted) return;
      await placeLine(line);
    }
  };
  const failures: unknown[] = [];
  const lanes = Array.from({ length: Math.min(concurrency, lines.length) }, () =>
    lane().catch((error: unknown) => {
      // Others may fail for no other reason than that they have to stop: the first to fail tells why.
      failures.push(error);
      stop.abort();
    }),
  );
  await Promise.all(lanes);
  if (failures.length > 0) throw failures[0];
}

/** Waits until the next call may start. */
function turns(rate: number | undefined, signal: AbortSignal): () => Promise<void> {
  if (rate === undefined) return async () => undefined;
  let next = performance.now();
  return async () => {
    const now = performance.now();
    const mine = Math.max(now, next);
    next = mine + 1000 / rate;
    if (mine > now) await wait(mine - now, undefined, { signal }).catch(() => undefined);
  };
}
