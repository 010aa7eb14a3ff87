import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits for a condition that no event signals. Pauses in between, since a loop without pauses would slow down the work that it waits for.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}
