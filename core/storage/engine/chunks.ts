import { setTimeout } from 'node:timers/promises';

/** Values in one statement: databases limit the number of parameters. */
const atOnce = 500;

export function* inChunks<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}

/**
 * In ms. A process that waits for SQLite's lock polls it: without a pause, a run of steps can keep it out until it gives up.
 */
const pause = 5;

/**
 * Repeats a short transaction until it changes fewer rows than it may, so that other processes can write in between.
 *
 * @param step changes `size` rows at most. @returns how many it did
 * @param signal ends it between two steps
 * @returns how many rows were changed in all
 */
export async function inShortTransactions(step: (size: number) => Promise<number>, size: number, signal?: AbortSignal): Promise<number> {
  for (let changed = 0; ; ) {
    signal?.throwIfAborted();
    const some = await step(size);
    changed += some;
    if (some < size) return changed;
    await setTimeout(pause);
  }
}
