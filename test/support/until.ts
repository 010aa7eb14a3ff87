import { setTimeout as pause } from 'node:timers/promises';

/** Waits for what no event tells. Pauses in between: a loop without a pause takes a processor from the very work that it waits for. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}
