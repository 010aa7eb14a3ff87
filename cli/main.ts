import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { CommanderError } from 'commander';
import { CallkeyError, errorCode, exitCodes, Interrupted } from './client/errors.ts';
import type { Context } from './context.ts';
import { refuseKeyArguments } from './keys/key-argument.ts';
import { createOutput, type Output, redact } from './output.ts';
import { createProgram } from './program.ts';
import type { GlobalOptions } from './settings.ts';
import { xdgFolders } from './xdg.ts';

// Whoever reads the output may stop when they have seen enough: what was asked for is still done, and nothing is said of it.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (errorCode(error) !== 'EPIPE') throw error;
  });
}

const { version }: { version: string } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const program = createProgram(version, (command) => command(context()));
let said: Output | undefined;

function context(): Context {
  const options = program.opts<GlobalOptions>();
  said = createOutput(process, options);
  return { options, environment: process.env, folders: xdgFolders(process.env, homedir()), output: said, streams: process };
}

/** Commander reads each command's own settings: they are told to all of them. */
function forAll(command: typeof program): void {
  command
    .exitOverride()
    .showHelpAfterError('(add --help for how it is used)')
    .configureOutput({ writeErr: (text) => process.stderr.write(redact(text)) });
  for (const sub of command.commands) forAll(sub);
}

function fail(error: unknown): void {
  const output = said ?? createOutput(process, {});
  if (error instanceof CommanderError) {
    // Commander has said its own already.
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  } else if (error instanceof Interrupted) {
    output.note(error.message);
    // Ends by the signal itself: a shell that runs this in a loop then stops the loop, too.
    process.kill(process.pid, error.signal);
  } else {
    output.error(error instanceof Error ? error.message : String(error));
    if (error instanceof Error && !(error instanceof CallkeyError)) output.trace(error.stack ?? '');
    process.exitCode = exitCodes[error instanceof CallkeyError ? error.kind : 'failed'];
  }
}

forAll(program);
try {
  refuseKeyArguments(process.argv.slice(2));
  await program.parseAsync();
} catch (error) {
  fail(error);
}
