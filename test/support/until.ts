import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits for a condition that no event signals. Pauses between checks, because checking nonstop would slow down the work that it waits for.
 * Each pause is a bit longer, because the end of slow work needn't be noticed to the millisecond.
 *
 * @param within in ms
 * @returns whether the condition became true in time
 */
export async function until(condition: () => boolean | Promise<boolean>, within = Number.POSITIVE_INFINITY): Promise<boolean> {
  const end = performance.now() + within;
  for (let ms = 5; !(await condition()); ms = Math.min(ms + 1, 25)) {
    if (performance.now() > end) return false;
    await pause(ms);
  }
  return true;
}

/**
 * Repeats an assertion about a page until it holds, because a page can still be loading or drawing. After 15 seconds, its last failure counts.
 */
export async function eventually(assertion: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await pause(20);
    }
  }
}
