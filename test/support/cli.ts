import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openCallFile } from '../../cli/batch/call-file.ts';
import { type CallLine, checkLines, goodLines, type InvalidLine } from '../../cli/batch/check-file.ts';
import { plainReading, type Reading } from '../../cli/batch/reading.ts';
import type { RunHeader } from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { createContext } from '../../cli/connection/context.ts';
import type { GlobalOptions } from '../../cli/connection/settings.ts';
import { createProgram } from '../../cli/program.ts';
import { type Folders, xdgFolders } from '../../cli/state/folders.ts';
import { createOutput, toFailure } from '../../cli/terminal/output.ts';
import { fakeTiming, type OnWait } from './clock.ts';
import { bareEnvironment, type Ended, runScript } from './commands.ts';
import { freshDirectory } from './databases.ts';
import { skip } from './suites.ts';

export const cliMain = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));

export type CliProcess = {
  child: ChildProcess;
  ended: Promise<Ended & { signal: NodeJS.Signals | null }>;
  /** Waits until standard error or output contains a text. */
  printed(pattern: RegExp): Promise<void>;
};
/** `stdout`: a file instead of a pipe. `keepOpen`: the test writes to standard input itself, and ends it. */
type CliOptions = { environment?: Record<string, string>; input?: string; main?: string; stdout?: string; keepOpen?: true };

/** `stdin`, `stdout`: streams that the test writes and reads itself while the command runs. */
export type HereOptions = { isTTY?: boolean; stdin?: PassThrough; stdout?: PassThrough };

/** A user's machine: a separate home folder, and the command line running there as a process. */
export class CliHome {
  readonly directory = freshDirectory();
  readonly environment: Record<string, string>;

  constructor(environment: Record<string, string> = {}) {
    this.environment = environment;
  }

  /** Starts a separate process, which a test can kill. */
  start(args: string[], { environment, input, main = cliMain, stdout, keepOpen }: CliOptions = {}): CliProcess {
    const env = { ...this.processEnvironment, ...environment };
    const file = stdout === undefined ? undefined : openSync(stdout, 'w');
    const child = spawn(process.execPath, [main, ...args], { env, cwd: this.directory, stdio: ['pipe', file ?? 'pipe', 'pipe'] });
    if (file !== undefined) closeSync(file);
    child.stdin?.on('error', () => undefined);
    if (!keepOpen) child.stdin?.end(input ?? '');
    return followed(child);
  }

  run(args: string[], { environment, input = '' }: Omit<CliOptions, 'main' | 'stdout' | 'keepOpen'> = {}): Promise<Ended> {
    return runScript('cli/main.ts', args, { env: this.#env(environment), input, directory: this.directory });
  }

  /**
   * Runs the command in this process, with a clock on which waiting takes no time. Without main.ts: only for arguments that the command
   * line accepts, and not if a signal interrupts the command.
   */
  async runHere(args: string[], onWait?: OnWait, { isTTY = false, ...given }: HereOptions = {}): Promise<Ended> {
    const environment = this.#env();
    const output = () => Object.assign(new PassThrough(), { isTTY });
    const streams = { stdin: new PassThrough().end(), stdout: output(), stderr: output(), ...given };
    const written = Promise.all([given.stdout ? '' : text(streams.stdout), text(streams.stderr)]);
    let code = 0;
    const program = createProgram('0.0.0', async (work) => {
      const options = program.opts<GlobalOptions>();
      const output = createOutput(streams, options, new AbortController().signal);
      const folders = xdgFolders(environment, this.directory);
      const context = { options, environment, folders, output, streams, version: '0.0.0', timing: fakeTiming(onWait) };
      await work(createContext(context)).catch((error: unknown) => {
        if (!(error instanceof CallkeyError)) throw error;
        const failure = toFailure(error);
        code = failure.exitCode;
        output.error(failure);
      });
    });
    try {
      await program.parseAsync(args, { from: 'user' });
    } finally {
      streams.stdout.end();
      streams.stderr.end();
    }
    const [stdout, stderr] = await written;
    return { code, stdout, stderr };
  }

  /** Runs the command in a terminal of its own, as a person does. Skips the test if that isn't possible. @param typed what the person types */
  async onTerminal(test: Mocha.Context, args: string[], typed = ''): Promise<{ code: number; text: string }> {
    const command = [process.execPath, cliMain, ...args].map((word) => `"${word}"`).join(' ');
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: this.processEnvironment, stdio: 'pipe' });
    const isMissing = await once(child, 'spawn').then(
      () => false,
      () => true,
    );
    if (isMissing) skip(test, "script isn't installed");
    const { ended } = followed(child);
    child.stdin.end(typed);
    const { code, stdout } = await ended;
    return { code, text: stdout };
  }

  /** The environment of a separate process. */
  get processEnvironment() {
    return { ...bareEnvironment, ...this.#env() };
  }

  #env(environment: Record<string, string> = {}): Record<string, string> {
    return { HOME: this.directory, ...this.environment, ...environment };
  }

  /** Returns every file left in the home folder, with its content. */
  files(): { path: string; text: string }[] {
    return readFiles(this.directory);
  }
}

function followed(child: ChildProcess): CliProcess {
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  const heard = () => {
    for (const listener of listeners) listener();
  };
  child.stdout?.on('data', (chunk) => {
    stdout += String(chunk);
    heard();
  });
  child.stderr?.on('data', (chunk) => {
    stderr += String(chunk);
    heard();
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout, stderr }));
  return {
    child,
    ended,
    printed: (what) =>
      new Promise((resolve, reject) => {
        const check = () => what.test(stdout + stderr) && resolve();
        listeners.add(check);
        check();
        ended.then(() => reject(new Error(`The command ended without printing ${what}:\n${stdout}${stderr}`)));
      }),
  };
}

/** Lines of newline-delimited JSON. */
export function ndjson(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** Returns folders for the command's files, as in a home folder that doesn't have them yet. */
export function freshFolders(): Folders {
  const directory = freshDirectory();
  return { config: join(directory, 'c'), data: join(directory, 'd'), state: join(directory, 's') };
}

/** The header of a run's journal. */
export const runHeader = (changes: Partial<RunHeader> = {}): RunHeader => ({
  ...{ version: 1, server: 'https://core', profile: 'default', campaignId: 'campaign', path: '/contacts.csv', content: 'digest' },
  ...{ reading: plainReading, repetition: '', calls: 3, skipped: 0, ownRequestIds: false },
  ...{ startedAt: '2026-11-22T12:00:00.000Z', ...changes },
});

/** What a file contains, as the command reads it. */
type Read = { good: CallLine[]; bad: InvalidLine[]; duplicateNumber: [number, number][]; notes: string[]; content: string };

export async function readCalls(content: string | Buffer, reading: Partial<Reading> = {}, purpose?: 'cancel'): Promise<Read> {
  const directory = freshDirectory();
  const path = join(directory, 'calls');
  writeFileSync(path, content);
  const machine = { stdin: Readable.from([]), folders: { config: directory, data: directory, state: directory } };
  const file = await openCallFile(machine, path, { ...plainReading, ...reading }, purpose);
  try {
    const result: Read = { good: [], bad: [], duplicateNumber: [], notes: file.notes, content: file.content };
    const { bad, good } = await checkLines(file, {
      invalidLine: (line) => result.bad.push(line),
      duplicateNumber: (...lines) => result.duplicateNumber.push(lines),
      line: () => undefined,
    });
    result.good.push(...(await Readable.from(goodLines(file, bad)).toArray()));
    expect([good, bad.size]).to.deep.equal([result.good.length, result.bad.length]);
    return result;
  } finally {
    await file.close();
  }
}
/** Returns why a whole file is refused. */
export const readRefusal = (content: string | Buffer, reading?: Partial<Reading>) =>
  readCalls(content, reading).then(
    () => expect.fail('The file was accepted.'),
    (thrown: unknown) => thrown,
  );
/** Returns the errors of invalid lines. */
export const badLines = async (text: string, reading?: Partial<Reading>) =>
  (await readCalls(text, reading)).bad.flatMap(({ line, errors }) => errors.map(({ path, message }) => [line, path, message]));

/** Returns every file under the folder, with its content in Latin-1, which can represent any bytes. */
export function readFiles(folder: string): { path: string; text: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(folder, path), text: readFileSync(path, 'latin1') }));
}
