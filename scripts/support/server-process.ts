import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A core, or another server that logs its address in a core's format, in a separate process. */
export type ServerProcess = {
  url: string;
  managementUrl: string;
  /** The logged line that says that the server is listening. */
  startLine: Readonly<Record<string, unknown>>;
  /** All of its output so far. */
  stdout: string[];
  stderr: string[];
  child: ChildProcess;
  pid: number;
  /** Sends a signal and waits until the process has ended. @returns the exit code, or the signal that ended it */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

/** The processes that are still running. They're killed at the end, so that a failure leaves nothing behind. */
const running = new Set<ChildProcess>();

export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}
process.once('exit', killAll);

/** Kills a process that's running when this one ends. Waits for its output's end. @returns its exit code, or the signal that ended it */
export function track(child: ChildProcess): Promise<number | NodeJS.Signals> {
  running.add(child);
  const ended = once(child, 'close').then(
    ([code, signal]) => code ?? signal,
    // The process couldn't be started.
    () => 1,
  );
  return ended.finally(() => running.delete(child));
}

/** @param args for Node.js, starting with the script @throws Error with its output if the process ends before it listens */
export async function startServerProcess(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  directory = process.cwd(),
): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'], cwd: directory });
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const lines = new Map<unknown, Readonly<Record<string, unknown>>>();
  // Waits for the end of the output, not for the exit, because some output may still be unread at that point.
  const ended = track(child);
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  const listening = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (text) => {
      stdout.push(text);
      const line = JSON.parse(text);
      if (line.url !== undefined) lines.set(line.msg, line);
      if (line.msg === 'listening') resolve();
    });
  });
  const tooEarly = ended.then((end) => {
    throw new Error(`The server exited with ${end} before it was listening:\n${[...stdout, ...stderr].join('\n')}`);
  });
  await Promise.race([listening, tooEarly]);
  const getUrl = (message: string) => String(lines.get(message)?.['url'] ?? '');
  return {
    ...{ url: getUrl('listening'), managementUrl: getUrl('management listening'), startLine: lines.get('listening') ?? {} },
    ...{ stdout, stderr, child, pid: child.pid ?? 0 },
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}
