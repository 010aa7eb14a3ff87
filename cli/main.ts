import { constants, homedir } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { CommanderError } from 'commander';
import { restoreTlsChecks, tlsChecksWarning } from '#contract/tls-checks.ts';
import packageJson from '../package.json' with { type: 'json' };
import { CallkeyError, errorCode } from './client/errors.ts';
import type { Context } from './context.ts';
import { diskReason } from './durable-file.ts';
import { exitCodes, failureOf } from './exit-codes.ts';
import { Interrupted } from './interrupt.ts';
import { refuseKeyArguments } from './keys/key-argument.ts';
import { createOutput, type Output, redact } from './output.ts';
import { createProgram } from './program.ts';
import type { GlobalOptions } from './settings.ts';
import { xdgFolders } from './xdg.ts';

const outputLost = new AbortController();
process.stdout.on('error', (error) => outputLost.abort(error));
// There is nobody left to tell.
process.stderr.on('error', () => undefined);

const { version } = packageJson;
const program = createProgram(version, (action) => action(createContext()));
// Also where commander fails before it has read the options.
const json = process.argv.includes('--json');
let createdOutput: Output | undefined;

function createContext(): Context {
  const options = program.opts<GlobalOptions>();
  createdOutput = createOutput(process, options, outputLost.signal);
  const { state, ...folders } = xdgFolders(process.env, home());
  if (options.state === '') throw new CallkeyError('usage', '--state: specify a folder.');
  const stateFolder = options.state === undefined ? state : absolute(options.state);
  return {
    options,
    environment: process.env,
    folders: { ...folders, state: stateFolder },
    output: createdOutput,
    streams: process,
    version,
  };
}

function absolute(path: string): string {
  try {
    return resolve(path);
  } catch {
    throw new CallkeyError('usage', '--state: use an absolute path. The current folder no longer exists.');
  }
}

/** A folder in which nothing can be kept, which commands say, with what to do. */
const noHome = '/dev/null';

/** A container's user may have none. A relative HOME, or an empty one, would be another folder wherever a command runs. */
function home(): string {
  try {
    const found = homedir();
    return isAbsolute(found) ? found : noHome;
  } catch {
    return noHome;
  }
}

/** Commander does not pass these settings on to subcommands. */
function configure(command: typeof program): void {
  command
    .exitOverride()
    .showHelpAfterError('(add --help for usage)')
    .configureOutput({ writeErr: (text) => json || process.stderr.write(redact(text)) });
  for (const subcommand of command.commands) configure(subcommand);
}

function fail(error: unknown): void {
  const output = createdOutput ?? createOutput(process, { json }, outputLost.signal);
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return;
    process.exitCode = exitCodes.usage;
    const message =
      error.code === 'commander.help' ? 'Missing command. To list commands, run callkey --help.' : error.message.replace(/^error: /, '');
    // Without --json, commander has written its message already.
    if (json) output.error({ code: 'usage', message, exitCode: exitCodes.usage });
  } else if (error instanceof Interrupted) {
    if (json) output.error({ code: 'interrupted', message: error.message, exitCode: 128 + constants.signals[error.signal] });
    else output.note(error.message);
    // Ends by the signal itself: a shell loop around this command then ends, too.
    process.kill(process.pid, error.signal);
  } else {
    const known =
      error instanceof CallkeyError ? error : new CallkeyError('failed', error instanceof Error ? error.message : String(error));
    process.exitCode = exitCodes[known.kind];
    output.error(failureOf(known));
    if (error instanceof Error && !(error instanceof CallkeyError)) output.trace(error.stack ?? '');
  }
}

/** The work is done, and its answer may be what the user needs to go on. A closed pipe is no failure: its reader chose to read no more. */
function failWhereAnswerWasLost(): void {
  const reason: unknown = outputLost.signal.reason;
  if (!outputLost.signal.aborted || errorCode(reason) === 'EPIPE' || process.exitCode) return;
  const answer = createdOutput?.lastAnswer() ?? '';
  fail(
    new CallkeyError(
      'failed',
      `Couldn't write to standard output: ${diskReason(reason)}. The command succeeded; its output was:\n${answer}`,
      {
        code: 'results-lost',
      },
    ),
  );
}

configure(program);
if (restoreTlsChecks(process.env)) process.stderr.write(`${tlsChecksWarning}\n`);
try {
  refuseKeyArguments(process.argv.slice(2));
  await program.parseAsync();
  // Its error, if any, comes before.
  await new Promise((done) => process.stdout.write('', done));
  failWhereAnswerWasLost();
} catch (error) {
  fail(error);
}
