import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** With what it said when it listened. */
export type Server = { url: string; said: Readonly<Record<string, unknown>>; stop(): Promise<void> };

const running = new Set<ChildProcess>();

/** A server as a process of its own: a script beside this one, or `core/main.ts`, that says where it listens. */
export async function startServer(script: string, environment: Record<string, string> = {}, directory = process.cwd()): Promise<Server> {
  const { PATH = '', HOME = '' } = process.env;
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [file], {
    env: { PATH, HOME, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: directory,
  });
  running.add(child);
  const ended = once(child, 'exit').finally(() => running.delete(child));
  const said = await Promise.race([
    listening(child),
    ended.then(([code]) => {
      throw new Error(`${script} ended with ${code} before it listened.`);
    }),
  ]);
  return {
    url: String(said['url']),
    said,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function listening({ stdout }: ChildProcess): Promise<Record<string, unknown>> {
  if (!stdout) throw new Error('A server without a standard output.');
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const said = JSON.parse(line);
      if (said.msg === 'listening') resolve(said);
    });
  });
}

/** Ends the servers that still run. */
export function stopServers(): void {
  for (const child of running) child.kill('SIGKILL');
}
