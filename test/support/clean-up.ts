type Task = () => unknown;
const afterFile: Task[] = [];
const atEnd: Task[] = [];

/**
 * Registers a function that ends the processes shared by the tests of a file. The hooks don't import the modules that start these
 * processes, because every file would then load modules that only some files need.
 */
export function afterEachFile(task: Task): void {
  afterFile.push(task);
}

/** Registers a function that ends or removes everything that the tests of a process share. */
export function atTheEnd(task: Task): void {
  atEnd.push(task);
}

export async function endProcesses(): Promise<void> {
  for (const task of afterFile) await task();
}

export async function removeFiles(): Promise<void> {
  for (const task of atEnd) await task();
}

/** Ends everything that the tests' modules have started, for scripts that use them. */
export async function cleanUp(): Promise<void> {
  await endProcesses();
  await removeFiles();
}
