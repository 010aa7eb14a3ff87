import { type ChildProcess, execFile, execFileSync, fork, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { AsyncEntry } from '@napi-rs/keyring';
import { expect } from 'chai';
import { atTheEnd } from './clean-up.ts';
import { type DatabaseKind, freshDatabase, freshDirectory, onEachDatabase } from './databases.ts';
import type { Job } from './script-host.ts';
import { skip } from './suites.ts';

export type Ended = { code: number; stdout: string; stderr: string };

const compiled = fileURLToPath(new URL('../../node_modules/.cache/callkey-tests', import.meta.url));
const { PATH = '', HOME = '', NODE_COMPILE_CACHE = compiled } = process.env;
/** The environment of every started program: no configuration, and a place for compiled code, which halves the startup time. */
export const bareEnvironment = { PATH, HOME, NODE_COMPILE_CACHE };

export const testSecret = 'a secret for tests of at least 32 characters';

type Settings = { env?: Record<string, string>; input?: string; directory?: string };

/** Runs a script of the project in a separate process. */
export async function spawnScript(
  script: string,
  args: string[],
  { env = {}, input = '', directory = process.cwd(), ...options }: Settings & Pick<SpawnOptions, 'uid' | 'gid' | 'timeout'> = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [toPath(script), ...args], {
    ...{ env: { ...bareEnvironment, ...env }, stdio: 'pipe', cwd: directory },
    ...options,
  });
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

/** Mounts a disk in memory, or skips the test without root. @param options such as `size=3m` @returns its folder, which the test unmounts */
export function mountDisk(test: Mocha.Context, options: string): string {
  const directory = freshDirectory();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'callkey-test', directory], { stdio: 'ignore' });
  } catch {
    skip(test, 'only root can mount a disk');
  }
  return directory;
}

/** Whether strace is installed and allowed to trace. */
export const canTrace = () => spawnSync('strace', ['-qq', '-e', 'trace=none', 'true']).status === 0;

/** A successful system call; `paths` are the full paths that it names. */
type SystemCall = { name: string; paths: string[] };

/** Runs a script under strace. @returns what it created, renamed, linked and synced, in order */
export async function runTraced(
  script: string,
  args: string[],
  { env = {}, directory = process.cwd() }: { env?: Record<string, string>; directory?: string },
): Promise<{ code: number; calls: SystemCall[] }> {
  const file = join(freshDirectory(), 'trace');
  const which = 'trace=mkdir,rename,renameat2,link,linkat,fsync,fdatasync';
  const command = ['-f', '-y', '-qq', '-z', '-s', '4096', '-e', which, '-o', file, process.execPath, script, ...args];
  const child = spawn('strace', command, { env: { ...bareEnvironment, ...env }, stdio: 'ignore', cwd: directory });
  const [code] = await once(child, 'exit');
  return { code, calls: readFileSync(file, 'utf8').split('\n').flatMap(parseCall) };
}

function parseCall(line: string): SystemCall[] {
  const [, name, args = ''] = /^\d+ +(\w+)\((.*)/.exec(line) ?? [];
  const paths = [...args.matchAll(/"([^"]*)"|<(\/[^>]*)>/g)].map(([, quoted, opened]) => quoted ?? opened ?? '');
  return name === undefined ? [] : [{ name, paths }];
}

/** Returns why the keychain can't be tested here; undefined if it can. */
export async function whyNoSecretService(): Promise<string | undefined> {
  // On other systems, the tests would use the developer's own keychain, which may ask for a password.
  if (process.platform !== 'linux') return 'only Linux has a keychain apart from the developer’s own';
  try {
    await new AsyncEntry('callkey-test', 'probe', { linux: { store: 'secret-service' } }).getPassword();
    return undefined;
  } catch {
    return 'no Secret Service is running here';
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url));

// `npm test` builds it once for all files, because two builds at the same time would overwrite each other.
let built = process.env['WEB_CONSOLE_IS_BUILT'] === '1' ? Promise.resolve() : undefined;

/** Builds the console for the browser once. */
export function buildWebConsole(): Promise<void> {
  built ??= build();
  return built;
}

async function build(): Promise<void> {
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  await promisify(execFile)(process.execPath, [vite, 'build', '--config', 'desktop/web.vite.config.ts', '--logLevel', 'warn'], {
    cwd: root,
  });
}

/** Runs `npm run admin` on a database, which a function may choose for each run. */
export function adminOn(database: string | (() => string)) {
  const getUrl = typeof database === 'string' ? () => database : database;
  const admin = (args: string[], input = ''): Promise<Ended> =>
    runScript('core/admin.ts', args, { env: { DATABASE_URL: getUrl() }, input });
  /** Runs with --json. @returns the JSON object that it prints */
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await admin([...args, '--json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^\{.*\}\n$/);
    return JSON.parse(stdout);
  };
  return { admin, json };
}

type Admin = ReturnType<typeof adminOn> & { kind: DatabaseKind; database(): string };

/** Runs the same tests on each kind of database. Every test has its own database. */
export function describeAdmin(title: string, tests: (on: Admin) => void): void {
  describe(title, () => {
    onEachDatabase((kind) => {
      let url: string;
      beforeEach(async () => {
        url = await freshDatabase(kind);
      });
      const database = () => url;
      tests({ ...adminOn(database), kind, database });
    });
  });
}
