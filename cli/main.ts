import { constants, homedir } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { CommanderError } from 'commander';
import { keyValuePrefix, redactKeyValues } from '#contract/key-value.ts';
import { expandHelp } from '#contract/text/shell.ts';
import { restoreTlsChecks, tlsChecksWarning } from '#contract/tls-checks.ts';
import packageJson from '../package.json' with { type: 'json' };
import { CallkeyError, errorCode, usageError } from './client/errors.ts';
import { systemTiming } from './client/timing.ts';
import { keyOnCommandLineError } from './commands/key.ts';
import type { Context } from './connection/context.ts';
import type { GlobalOptions } from './connection/settings.ts';
import { createProgram } from './program.ts';
import { diskReason } from './state/durable-file.ts';
import { xdgFolders } from './state/folders.ts';
import { Interrupted } from './terminal/interrupt.ts';
import { createOutput, type Output, toFailure } from './terminal/output.ts';

const outputLost = new AbortController();
process.stdout.on('error', (error) => outputLost.abort(error));
// If standard error fails, there's no one left to tell.
process.stderr.on('error', () => undefined);

const { version } = packageJson;
const program = createProgram(version, async (work) => work(await openContext()));
// Doesn't use commander's options, because commander can fail before it has parsed them.
const json = process.argv.includes('--json');
let createdOutput: Output | undefined;

async function openContext(): Promise<Context> {
  const options = program.opts<GlobalOptions>();
  createdOutput = createOutput(process, options, outputLost.signal);
  const { state, ...folders } = xdgFolders(process.env, home());
  if (options.state === '') throw usageError('--state: specify a folder.');
  const stateFolder = options.state === undefined ? state : absolute(options.state);
  const context = await import('./connection/context.ts');
  return context.createContext({
    options,
    environment: process.env,
    folders: { ...folders, state: stateFolder },
    output: createdOutput,
    streams: process,
    version,
    timing: systemTiming,
  });
}

function absolute(path: string): string {
  try {
    return resolve(path);
  } catch {
    throw usageError('--state: use an absolute path. The current folder no longer exists.');
  }
}

/** A folder where nothing can be stored. Commands report the failure and say what to do. */
const noHome = '/dev/null';

/** Returns the home folder. A container's user might not have one, and a relative or empty HOME would depend on where a command runs. */
function home(): string {
  try {
    const directory = homedir();
    return isAbsolute(directory) ? directory : noHome;
  } catch {
    return noHome;
  }
}

/** Configures a command and its subcommands, because commander doesn't pass these settings on. */
function configure(command: typeof program): void {
  command
    .exitOverride()
    .showHelpAfterError('(add --help for usage)')
    .configureOutput({ writeErr: (text) => json || process.stderr.write(redactKeyValues(text)) });
  for (const subcommand of command.commands) configure(subcommand);
}

function fail(error: unknown): void {
  const output = createdOutput ?? createOutput(process, { json }, outputLost.signal);
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return;
    const isMissing = error.code === 'commander.help';
    const message = isMissing ? 'Missing command. To list commands, run callkey --help.' : error.message.replace(/^error: /, '');
    const failure = toFailure(usageError(message));
    process.exitCode = failure.exitCode;
    // Without --json, commander has already printed its message.
    if (json) output.error(failure);
  } else if (error instanceof Interrupted) {
    if (json) output.error({ code: 'interrupted', message: error.message, exitCode: 128 + constants.signals[error.signal] });
    else output.note(error.message);
    // Ends with the same signal, so that a shell loop around this command ends as well.
    process.kill(process.pid, error.signal);
  } else {
    const callkeyError =
      error instanceof CallkeyError ? error : new CallkeyError('failed', error instanceof Error ? error.message : String(error));
    const failure = toFailure(callkeyError);
    process.exitCode = failure.exitCode;
    output.error(failure);
    if (error instanceof Error && !(error instanceof CallkeyError)) output.trace(error.stack ?? '');
  }
}

/** Fails if output was lost that the user may need. A closed pipe isn't a failure, because its reader chose to stop reading. */
function failIfOutputLost(): void {
  const reason: unknown = outputLost.signal.reason;
  if (!outputLost.signal.aborted || errorCode(reason) === 'EPIPE' || process.exitCode) return;
  const answer = createdOutput?.lastAnswer() ?? '';
  const message = `Couldn't write to standard output: ${diskReason(reason)}. The command succeeded; its output was:\n${answer}`;
  fail(new CallkeyError('failed', message, { code: 'results-lost' }));
}

configure(program);
if (restoreTlsChecks(process.env)) process.stderr.write(`${tlsChecksWarning}\n`);
try {
  if (process.argv.slice(2).some((word) => word.includes(keyValuePrefix))) throw keyOnCommandLineError();
  await program.parseAsync(expandHelp(process.argv.slice(2)), { from: 'user' });
  // Waits until earlier writes and their errors, if any, are done.
  await new Promise((done) => process.stdout.write('', done));
  failIfOutputLost();
} catch (error) {
  fail(error);
}
