type Task = () => unknown;
const afterFile: Task[] = [];
const atEnd: Task[] = [];

/**
 * Registers what ends the processes that the tests of a file share. The hooks import none of those who do: every file would load what only
 * some need.
 */
export function afterEachFile(task: Task): void {
  afterFile.push(task);
}

/** Registers what ends or removes what the tests of a process share. */
export function atTheEnd(task: Task): void {
  atEnd.push(task);
}

export async function endProcesses(): Promise<void> {
  for (const task of afterFile) await task();
}

export async function removeFiles(): Promise<void> {
  for (const task of atEnd) await task();
}

/** For scripts that use what the tests use. */
export async function cleanUp(): Promise<void> {
  await endProcesses();
  await removeFiles();
}
