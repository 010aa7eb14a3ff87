import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type ServerProcess, startServerProcess, track } from '../support/server-process.ts';

export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

/** `await using` stops it at the end of the block. */
type Server = ServerProcess & AsyncDisposable;

/** Starts a script as a separate process. The script must log its address. @param script its path from this folder, or its URL */
export async function startServer(script: string, environment: Record<string, string> = {}): Promise<Server> {
  const { PATH = '', HOME = '' } = process.env;
  const server = await startServerProcess([fileURLToPath(new URL(script, import.meta.url))], { PATH, HOME, ...environment });
  server.child.stderr?.pipe(process.stderr);
  return { ...server, [Symbol.asyncDispose]: async () => void (await server.stop()) };
}

/** Starts a core as a service manager does: `node core/main.ts`, without the flags of `npm start`. */
export function startCore(databaseUrl: string, environment = {}, script = '../../core/main.ts'): Promise<Server> {
  const SESSION_SECRETS = 'a secret for the bench of at least 32 characters';
  return startServer(script, { DATABASE_URL: databaseUrl, SESSION_SECRETS, PORT: '0', MANAGEMENT_PORT: '0', ...environment });
}

export type Output = { stdout: string };

/** Runs a program until it exits. @throws Error with its standard output */
export function run(program: string, args: readonly string[], env = process.env): Promise<Output> {
  const running = promisify(execFile)(program, args, { env });
  void track(running.child);
  return running;
}

/** Returns what a program says about its version. @throws Error if it isn't installed */
export async function versionOf(program: string): Promise<string> {
  // wrk prints its version, and then exits with an error.
  const { stdout } = await run(program, ['--version']).catch((failed: Partial<Output>) => failed);
  const version = /^\S+ \S+/.exec(stdout ?? '')?.[0];
  if (!version) throw new Error(`The bench needs ${program}: apt-get install ${program}, or brew install ${program}.`);
  return version;
}

/** @returns the script of the published command `callkey` */
export async function packCommand(): Promise<string> {
  const folder = freshFolder();
  await run(process.execPath, [fileURLToPath(new URL('../pack-cli.ts', import.meta.url)), folder]);
  return join(folder, 'callkey', 'lib', 'callkey.js');
}

/**
 * PostgreSQL's defaults are for a small machine that also does other things. Its manual recommends a quarter of the machine's memory for
 * buffers. With a minimum of 1 GB for the log, PostgreSQL reuses old log files, so it doesn't have to create files in the middle of a
 * round.
 */
export const postgresSettings = ['shared_buffers=1GB', 'min_wal_size=1GB', 'max_wal_size=4GB'];
let postgres: PostgresServer | undefined;

export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  if (kind === 'sqlite') return `sqlite:${join(freshFolder(), 'callkey.db')}`;
  postgres ??= await startPostgres(postgresSettings);
  return postgres.createDatabase();
}

/** Returns the main process of the PostgreSQL server, if it was started. */
export const postgresPid = () => postgres?.pid;

/** Stops PostgreSQL. The other processes are killed when this one ends. */
export const leave = async () => postgres?.stop();

/** Creates a folder for temporary files such as databases. It's deleted when this process ends. */
export const freshFolder = () => mkdtempSync(join(tmpdir(), 'callkey-bench-'));

/** Makes this process and its children create all their temporary files in one fresh folder. */
export function useFolder(): void {
  const folder = freshFolder();
  // PostgreSQL doesn't run as root, and needs access to its files.
  chmodSync(folder, 0o755);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

/** Whether the system has /proc, where Linux describes its processes. */
export const hasProc = existsSync('/proc/self/stat');

/** CPU time is in ms since the process started, with that of its children that have ended. */
type Process = { pid: number; parent: number; cpu: number };

/** In ms. The kernel counts in hundredths of a second (USER_HZ). */
const tick = 10;

/** Reads the format of `/proc/PID/stat`. */
export function parseStat(text: string): Process {
  // The second field, the program's name in parentheses, may itself contain spaces and parentheses.
  const [, parent = 0, ...fields] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(9);
  return { pid: Number.parseInt(text, 10), parent, cpu: (user + system + endedUser + endedSystem) * tick };
}

/** Returns nothing if the process has ended by now. */
export function readStat(file: string): Process[] {
  try {
    return [parseStat(readFileSync(file, 'utf8'))];
  } catch {
    return [];
  }
}

export function listProcesses(): Process[] {
  return readdirSync('/proc').flatMap((pid) => (/^\d+$/.test(pid) ? readStat(`/proc/${pid}/stat`) : []));
}

/** Returns a process and all its descendants. */
export function processTree(root: number, all: readonly Process[]): Process[] {
  const children = all.filter(({ parent }) => parent === root);
  return [...all.filter(({ pid }) => pid === root), ...children.flatMap(({ pid }) => processTree(pid, all))];
}

/** In ms. */
export const sumCpu = (all: readonly Process[]) => all.reduce((sum, { cpu }) => sum + cpu, 0);

/** Returns how much memory a process and its descendants use, in MB. */
export function readMegabytes(root: number): number {
  const texts = processTree(root, listProcesses()).map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'utf8'));
  return texts.reduce((sum, text) => sum + Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1.024e-3, 0);
}

/**
 * CPU time in ms since the machine started. `busy`: of all programs. `own`: of the bench, its child processes and the kernel's threads.
 * `stolen`: what the host of a virtual machine gave to other machines.
 */
type Reading = { at: number; busy: number; own: number; stolen: number };

/**
 * Returns how long all processors together have been busy, in ms. Omits interrupts, because the bench's own network traffic causes most of
 * them, and some kernels include them in the processes' times.
 */
export const busyTime = () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys, 0);

/** How many processors other programs use, and how many the host of a virtual machine gives to other machines. */
export type OtherLoad = { others: number; stolen: number };

function readLoad(): Reading {
  const all = listProcesses();
  // The kernel's threads descend from process 2. Most of their work, such as writing to the disk, is for the bench.
  const own = sumCpu([...processTree(process.pid, all), ...processTree(2, all)]);
  const stolen = Number(/^cpu(?: +\d+){7} +(\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) * tick;
  return { at: performance.now(), busy: busyTime(), own, stolen };
}

export function computeOtherLoad(before: Reading, after: Reading): OtherLoad {
  const per = (key: keyof Reading) => (after[key] - before[key]) / (after.at - before.at);
  return { others: Math.max(0, per('busy') - per('own')), stolen: per('stolen') };
}

/** Returns the lower of two loads: if a process or a kernel thread ends while it's being measured, one load seems too high. */
export function lowerLoad(a: OtherLoad, b: OtherLoad): OtherLoad {
  return { others: Math.min(a.others, b.others), stolen: Math.min(a.stolen, b.stolen) };
}

/**
 * Measures every 15 seconds how many processors other programs use. Only a load that lasts for two measurements in a row counts, because a
 * program that runs only briefly isn't a reason to stop. `broken` rejects if the load is too high. On systems other than Linux, this only
 * checks the load average once.
 */
export function watchOtherLoad(isAllowed: boolean) {
  const max: OtherLoad = { others: 0, stolen: 0 };
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const refuseAbove = (limit: number, used: number) => {
    const message = `Other programs are using ${used.toFixed(2)} processors; the limit is ${limit}. Stop them, then run the bench again.`;
    if (used > limit && !isAllowed) reject(new Error(message));
  };
  if (!hasProc) {
    refuseAbove(0.5, loadavg()[0] ?? 0);
    return { max, broken, stop: () => undefined };
  }
  let before = readLoad();
  let last = { ...max };
  const timer = setInterval(() => {
    const now = readLoad();
    const load = computeOtherLoad(before, now);
    const { others, stolen } = lowerLoad(last, load);
    [before, last] = [now, load];
    Object.assign(max, { others: Math.max(max.others, others), stolen: Math.max(max.stolen, stolen) });
    refuseAbove(0.1, others);
  }, 15_000);
  return { max, broken, stop: () => clearInterval(timer) };
}
