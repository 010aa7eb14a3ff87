import { setTimeout } from 'node:timers/promises';

/** The number of values in one statement, because databases limit the number of parameters. */
const atOnce = 500;

export function* inChunks<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}

/**
 * In ms. A process that waits for SQLite's lock polls it. Without pauses between transactions, that process might not get the lock until it
 * times out.
 */
const pause = 5;

/**
 * Repeats a short transaction until it changes fewer rows than it could, so that other processes can write in between.
 *
 * @param step changes at most `size` rows, and returns the number of changed rows
 * @param signal stops it between two steps
 * @returns the total number of changed rows
 */
export async function inShortTransactions(step: (size: number) => Promise<number>, size: number, signal?: AbortSignal): Promise<number> {
  for (let changed = 0; ; ) {
    signal?.throwIfAborted();
    const count = await step(size);
    changed += count;
    if (count < size) return changed;
    await setTimeout(pause);
  }
}
