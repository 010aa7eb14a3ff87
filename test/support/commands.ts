import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { atTheEnd } from './clean-up.ts';
import type { Job } from './script-host.ts';

export type Ended = { code: number; stdout: string; stderr: string };

const compiled = fileURLToPath(new URL('../../node_modules/.cache/callkey-tests', import.meta.url));
const { PATH = '', HOME = '', NODE_COMPILE_CACHE = compiled } = process.env;
/** The environment of every started program: no configuration, and a place for compiled code, which halves the startup time. */
export const bareEnvironment = { PATH, HOME, NODE_COMPILE_CACHE };

type Settings = { env?: Record<string, string>; input?: string; directory?: string };

/** Runs a script of the project in a separate process. */
export async function spawnScript(
  script: string,
  args: string[],
  { env = {}, input = '', directory = process.cwd() }: Settings = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [toPath(script), ...args], { env: { ...bareEnvironment, ...env }, stdio: 'pipe', cwd: directory });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code, stdout, stderr };
}

let host: ChildProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/** Runs a script of the project in a process that this test process shares between its scripts, one at a time. */
export function runScript(
  script: string,
  args: string[],
  { env = {}, input = '', directory = process.cwd() }: Settings = {},
): Promise<Ended> {
  const job: Job = { file: toPath(script), args, env: { ...bareEnvironment, ...env }, input, directory };
  const ended = last.then(() => runInHost(job));
  last = ended.catch(() => undefined);
  return ended;
}

async function runInHost(job: Job): Promise<Ended> {
  host ??= startHost();
  const heard = new AbortController();
  const answer = once(host, 'message', heard);
  const end = once(host, 'exit', heard).then(([code]) => Promise.reject(new Error(`The scripts' process ended with ${code}.`)));
  host.send(job);
  try {
    const [ended] = await Promise.race([answer, end]);
    return ended;
  } finally {
    heard.abort();
  }
}

function startHost(): ChildProcess {
  const started = fork(toPath('test/support/script-host.ts'), { env: bareEnvironment, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  // The process keeps running for the next test file.
  started.unref();
  started.channel?.unref();
  started.once('exit', () => {
    host = undefined;
  });
  return started;
}

atTheEnd(async () => {
  if (!host) return;
  const ended = once(host, 'exit');
  host.kill('SIGKILL');
  await ended;
});

const toPath = (script: string) => fileURLToPath(new URL(`../../${script}`, import.meta.url));
