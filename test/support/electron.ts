import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ElectronApplication, _electron as electron, type Page } from 'playwright-core';
import { freshDirectory } from './databases.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { DISPLAY, WAYLAND_DISPLAY, ELECTRON_OVERRIDE_DIST_PATH, CALLKEY_REQUIRE_DESKTOP } = process.env;

const installed = dirname(createRequire(import.meta.url).resolve('electron/package.json'));
/** The folder of the runtime that `npm run desktop` would start, if it is installed. Nothing is downloaded for a test. */
export const electronFolder = ELECTRON_OVERRIDE_DIST_PATH ?? join(installed, 'dist');
export const electronFile = join(electronFolder, nameOfElectron());
export const electronVersion = () => readFileSync(join(electronFolder, 'version'), 'utf8').trim().replace(/^v/, '');

function nameOfElectron(): string {
  const pathFile = join(installed, 'path.txt');
  return existsSync(pathFile) ? readFileSync(pathFile, 'utf8') : 'electron';
}

/** As root, Chromium starts without its own sandbox only. */
export const rootArgs = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

/** Why the console cannot be started here, in a few words; undefined where it can. */
function whyNot(): string | undefined {
  if (!existsSync(electronFile)) return 'no Electron runtime is installed (npx install-electron)';
  const { status, stderr } = spawnSync(electronFile, ['--version', ...rootArgs], { encoding: 'utf8', timeout: 10_000 });
  if (status !== 0) return `the Electron runtime does not start (${stderr.trim().split('\n', 1)[0]})`;
  if (process.platform !== 'linux' || DISPLAY || WAYLAND_DISPLAY) return undefined;
  return spawnSync('Xvfb', ['-help']).error ? 'there is no display, and no Xvfb to make one' : undefined;
}
const reason = whyNot();

/** A group of tests in a real Electron: skipped with the reason where there can be none, unless they are required. */
export function describeDesktop(title: string, tests: () => void): void {
  describe(title, function (this: Mocha.Suite) {
    // A start takes a second, or much longer on a machine that is busy.
    this.timeout(60_000);
    if (reason === undefined) {
      before(buildConsole);
      after(killConsoles);
      tests();
    } else if (CALLKEY_REQUIRE_DESKTOP === '1') {
      it('is tested', () => {
        throw new Error(`The desktop tests are required, but ${reason}.`);
      });
    } else it.skip(`is not tested: ${reason}`);
  });
}

// `npm test` builds it for all files: two builds at once would write over each other, and over what a third has started.
let built = process.env['CONSOLE_IS_BUILT'] === '1' ? Promise.resolve() : undefined;

/** Builds the console, once. */
export function buildConsole(): Promise<void> {
  built ??= build();
  return built;
}

async function build(): Promise<void> {
  const viteCli = join(root, 'node_modules/electron-vite/bin/electron-vite.js');
  const args = [viteCli, 'build', '--config', 'desktop/electron.vite.config.ts', '--logLevel', 'warn'];
  await promisify(execFile)(process.execPath, args, { cwd: root });
}

let display: Promise<string> | undefined;

/** The display of an X server of our own, which ends with this process. */
async function startDisplay(): Promise<string> {
  const server = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1600x1200x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  process.once('exit', () => server.kill('SIGKILL'));
  const numbers = server.stdio[3];
  if (!(numbers instanceof Readable)) throw new Error('Xvfb has no way to say its display.');
  const [number] = await once(createInterface({ input: numbers }), 'line');
  numbers.destroy();
  server.unref();
  return `:${number}`;
}

async function displayEnvironment(): Promise<Record<string, string>> {
  if (process.platform !== 'linux' || DISPLAY || WAYLAND_DISPLAY) return {};
  display ??= startDisplay();
  return { DISPLAY: await display };
}

/** What a console is started with: the environment of the tests, with a display, and without what would change how Electron starts. */
export async function consoleEnvironment(more: Record<string, string> = {}): Promise<Record<string, string>> {
  const { NODE_OPTIONS, ELECTRON_RUN_AS_NODE, ...own } = process.env;
  const defined = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(defined), ...(await displayEnvironment()), ...more };
}

export type LaunchOptions = {
  /** The folder of an earlier start, to start there again; a fresh one otherwise. */
  userData?: string;
  /** Further arguments of the command line. */
  args?: string[];
  env?: Record<string, string>;
};

export type RunningConsole = {
  app: ElectronApplication;
  page: Page;
  userData: string;
  /** All that the app has written to stdout and stderr so far. */
  output(): string;
  /** Quits, or kills what does not quit within five seconds. */
  close(): Promise<void>;
};

/** What is running still. Each leads a process group of its own. */
const running = new Set<ChildProcess>();

/** Keeps hold of a process until it ends, and kills it with all of its own after the group of tests if it does not. */
export function watchOver(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** The command line of a console, as `npm run desktop` starts it, but for the folder that it keeps its own in. */
export const consoleArgs = (userData: string, more: readonly string[] = []) => [...rootArgs, `--user-data-dir=${userData}`, ...more, root];

/** The console as `npm run desktop` starts it, with its page loaded. */
export async function launchConsole({ userData = freshDirectory(), args = [], env = {} }: LaunchOptions = {}): Promise<RunningConsole> {
  const app = await launch({ executablePath: electronFile, args: consoleArgs(userData, args), env: await consoleEnvironment(env) });
  const child = watchOver(app.process());
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => written.push(String(chunk)));
  const page = await app.firstWindow();
  await page.waitForLoadState('domcontentloaded');
  return { app, page, userData, output: () => written.join(''), close: () => closeConsole(app, child) };
}

/** On a busy machine, Electron and Playwright at times wait for one another at the start: what does not come up is started again. */
async function launch(options: Parameters<typeof electron.launch>[0], tries = 3): Promise<ElectronApplication> {
  try {
    return await electron.launch({ ...options, timeout: 5_000 });
  } catch (error) {
    if (tries === 1) throw error;
    return launch(options, tries - 1);
  }
}

async function closeConsole(app: ElectronApplication, child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const deadline = setTimeout(() => killGroup(child), 5_000);
  await app.close().catch(() => undefined);
  clearTimeout(deadline);
}

function killConsoles(): void {
  for (const child of running) killGroup(child);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
