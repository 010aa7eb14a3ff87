/** What ends the processes and removes the files that the tests of a file share. */
const tasks: (() => unknown)[] = [];

/** Registers a task for the end of the file. The hooks import none of those who do: every file would load what only some need. */
export function atTheEnd(task: () => unknown): void {
  tasks.push(task);
}

export async function cleanUp(): Promise<void> {
  for (const task of tasks) await task();
}
