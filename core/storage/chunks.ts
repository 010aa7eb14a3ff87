import { setTimeout } from 'node:timers/promises';

/** So many values go into one statement: databases take a limited number. */
const atOnce = 500;

export function* inChunks<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}

/**
 * In ms. A process that waits for SQLite's lock looks for it ten times a second: steps that follow each other without a pause can keep it
 * out for longer than it waits.
 */
const pause = 5;

/**
 * Repeats a short transaction until it finds less to do than it may, so that others can write in between.
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
