import { homedir } from 'node:os';
import { CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { CallkeyError, errorCode } from './client/errors.ts';
import type { Context } from './context.ts';
import { exitCodes } from './exit-codes.ts';
import { Interrupted } from './interrupt.ts';
import { refuseKeyArguments } from './keys/key-argument.ts';
import { createOutput, type Output, redact } from './output.ts';
import { createProgram } from './program.ts';
import type { GlobalOptions } from './settings.ts';
import { xdgFolders } from './xdg.ts';

// A reader such as `head` may close the pipe early. The command still does its work, and reports no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (errorCode(error) !== 'EPIPE') throw error;
  });
}

const { version } = packageJson;
const program = createProgram(version, (action) => action(createContext()));
let createdOutput: Output | undefined;

function createContext(): Context {
  const options = program.opts<GlobalOptions>();
  createdOutput = createOutput(process, options);
  return { options, environment: process.env, folders: xdgFolders(process.env, homedir()), output: createdOutput, streams: process };
}

/** Commander does not pass these settings on to subcommands. */
function configure(command: typeof program): void {
  command
    .exitOverride()
    .showHelpAfterError('(add --help for how it is used)')
    .configureOutput({ writeErr: (text) => process.stderr.write(redact(text)) });
  for (const subcommand of command.commands) configure(subcommand);
}

function fail(error: unknown): void {
  const output = createdOutput ?? createOutput(process, {});
  if (error instanceof CommanderError) {
    // Commander has written its message already.
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  } else if (error instanceof Interrupted) {
    output.note(error.message);
    // Ends by the signal itself: a shell loop around this command then ends, too.
    process.kill(process.pid, error.signal);
  } else {
    output.error(error instanceof Error ? error.message : String(error));
    if (error instanceof Error && !(error instanceof CallkeyError)) output.trace(error.stack ?? '');
    process.exitCode = exitCodes[error instanceof CallkeyError ? error.kind : 'failed'];
  }
}

configure(program);
try {
  refuseKeyArguments(process.argv.slice(2));
  await program.parseAsync();
} catch (error) {
  fail(error);
}
