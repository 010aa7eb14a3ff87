import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ElectronApplication, _electron as electron, type Page } from 'playwright-core';
import type { Command } from '../../desktop/ipc.ts';
import { displayEnvironment, electronFile, rootArgs } from '../../scripts/support/electron-runtime.ts';
import { freshDirectory } from './databases.ts';
import { describeUnless, findProgram, whyNoElectron } from './suites.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const prepareApp = fileURLToPath(new URL('prepare-app.cjs', import.meta.url));
const missing = whyNoElectron();

/** Runs tests in a real Electron. Without it, they're skipped with the reason, or fail if they're required. */
export function describeDesktop(title: string, tests: () => void): void {
  describeUnless(missing, title, () => {
    before(buildConsole);
    after(killConsoles);
    tests();
  });
}

// `npm test` builds it once for all files, because two builds at the same time would overwrite each other and the files of running tests.
let built = process.env['CONSOLE_IS_BUILT'] === '1' ? Promise.resolve() : undefined;

/** Builds the console once. */
export function buildConsole(): Promise<void> {
  built ??= build();
  return built;
}

async function build(): Promise<void> {
  const viteCli = join(root, 'node_modules/electron-vite/bin/electron-vite.js');
  const args = [viteCli, 'build', '--config', 'desktop/electron.vite.config.ts', '--logLevel', 'warn'];
  await promisify(execFile)(process.execPath, args, { cwd: root });
}

/** Returns the tests' own environment with a display, and without the variables that change how Electron starts. */
export async function consoleEnvironment(more: Record<string, string> = {}): Promise<Record<string, string>> {
  const { NODE_OPTIONS, ELECTRON_RUN_AS_NODE, ...own } = process.env;
  const defined = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(defined), ...(await displayEnvironment()), ...more };
}

export type LaunchOptions = {
  /** The folder of an earlier start, or a new one. */
  userData?: string;
  /** Further command-line arguments. */
  args?: string[];
  env?: Record<string, string>;
};

export type RunningConsole = {
  app: ElectronApplication;
  page: Page;
  userData: string;
  /** Returns everything that the app has written to stdout and stderr. */
  output(): string;
  /** Quits the app, and kills it if it doesn't quit within five seconds. */
  close(): Promise<void>;
};

/** Every process that hasn't ended. Each leads its own process group. */
const running = new Set<ChildProcess>();

/** Kills the process and its children after the group of tests, unless it has ended. */
export function watchOver(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Returns the arguments of `npm run desktop`, with a different user data folder. */
export const consoleArgs = (userData: string, more: readonly string[] = []) => [...rootArgs, `--user-data-dir=${userData}`, ...more, root];

/** Starts the console and waits for its page. */
export async function launchConsole({ userData = freshDirectory(), args = [], env = {} }: LaunchOptions = {}): Promise<RunningConsole> {
  const app = await electron.launch({
    executablePath: electronFile(),
    args: ['-r', prepareApp, ...consoleArgs(userData, args)],
    env: await consoleEnvironment(env),
  });
  const child = watchOver(app.process());
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => written.push(String(chunk)));
  const page = await app.firstWindow();
  await page.waitForLoadState('domcontentloaded');
  return { app, page, userData, output: () => written.join(''), close: () => closeConsole(app, child) };
}

/** Clicks the menu item of a command. */
export function chooseCommand({ app }: Pick<RunningConsole, 'app'>, command: Command): Promise<void> {
  return app.evaluate(({ Menu }, id) => Menu.getApplicationMenu()?.getMenuItemById(id)?.click(), command);
}

/** Whether the window would close now, instead of asking the user about a secret. Sends the event without closing it, which would end the app. */
export function wouldClose({ app }: Pick<RunningConsole, 'app'>): Promise<boolean> {
  return app.evaluate(({ BrowserWindow }) => {
    let isKept = false;
    const preventDefault = () => {
      isKept = true;
    };
    BrowserWindow.getAllWindows()[0]?.emit('close', { preventDefault });
    return !isKept;
  });
}

/** A message box of the app. */
type Question = { message: string; detail?: string; buttons: string[] };

/** Chooses this button in every message box from now on, and forgets the boxes before. */
export function chooseButton({ app }: Pick<RunningConsole, 'app'>, button: string): Promise<void> {
  return app.evaluate((_, chosenButton) => void Object.assign(globalThis, { chosenButton, questions: [] }), button);
}

/** Returns the message boxes since then, or since the start. */
export function listQuestions({ app }: Pick<RunningConsole, 'app'>): Promise<Question[]> {
  return app.evaluate(() => Reflect.get(globalThis, 'questions'));
}

async function closeConsole(app: ElectronApplication, child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => {
    killGroup(child);
    child.kill('SIGKILL');
  }, 5_000);
  await app.close().catch(() => undefined);
  // Playwright may return before the process has ended.
  await ended;
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
    // The process has already ended.
  }
}

const run = promisify(execFile);

/** Returns which of these programs isn't installed; undefined if all are. */
export function missingProgram(...names: readonly string[]): string | undefined {
  return names.find((name) => findProgram(name) === undefined);
}

/** The missing program that the tests need for a keyring; undefined if all are installed. */
export const missingKeyring = missingProgram('dbus-daemon', 'gnome-keyring-daemon', 'gdbus', 'xdotool');

/** A session bus of D-Bus with its own home folder. Pass its variables to everything that should use it. */
export type SessionBus = { env: Record<string, string>; close(): Promise<void> };

/** Starts a bus. @param services whether it can start the system's services, such as the prompt of a keyring */
export async function startBus(services: boolean): Promise<SessionBus> {
  const home = freshDirectory();
  const runtime = join(home, 'run');
  mkdirSync(runtime, { mode: 0o700 });
  const file = join(home, 'bus.conf');
  writeFileSync(
    file,
    `<busconfig><type>session</type><listen>unix:tmpdir=${runtime}</listen>${services ? '<standard_session_servicedirs/>' : ''}
    <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`,
  );
  const own = { HOME: home, XDG_DATA_HOME: join(home, 'data'), XDG_RUNTIME_DIR: runtime, XDG_CURRENT_DESKTOP: '', DESKTOP_SESSION: '' };
  const daemon = spawn('dbus-daemon', [`--config-file=${file}`, '--nofork', '--print-address'], {
    env: await consoleEnvironment(own),
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  watchOver(daemon);
  const [address] = await once(createInterface({ input: daemon.stdout }), 'line');
  return {
    env: await consoleEnvironment({ ...own, DBUS_SESSION_BUS_ADDRESS: String(address) }),
    async close() {
      daemon.kill();
      await once(daemon, 'exit');
    },
  };
}

const keyringPassword = 'open';

/** A bus with an unlocked keyring. */
export type Keyring = SessionBus & {
  lock(): Promise<unknown>;
  /** Answers the prompt for the password. */
  answerPrompt(answer: 'unlock' | 'dismiss'): Promise<void>;
};

export async function startKeyring(): Promise<Keyring> {
  const bus = await startBus(true);
  const { env } = bus;
  const daemon = spawn('gnome-keyring-daemon', ['--unlock', '--foreground', '--components=secrets'], {
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchOver(daemon);
  daemon.stdin.end(keyringPassword);
  await run('gdbus', ['wait', '--session', 'org.freedesktop.secrets'], { env });
  return {
    ...bus,
    lock: () => run('gdbus', [...call('org.freedesktop.Secret.Service.Lock'), `['/org/freedesktop/secrets/collection/login']`], { env }),
    async answerPrompt(answer) {
      await run('xdotool', ['search', '--sync', '--onlyvisible', '--name', 'Unlock'], { env });
      const keys = answer === 'unlock' ? ['type', keyringPassword] : ['key', 'Escape'];
      await run('xdotool', keys, { env });
      if (answer === 'unlock') await run('xdotool', ['key', 'Return'], { env });
    },
    async close() {
      daemon.kill();
      await once(daemon, 'exit');
      await bus.close();
    },
  };
}

const call = (method: string) => ['call', '--session', '-d', 'org.freedesktop.secrets', '-o', '/org/freedesktop/secrets', '-m', method];
