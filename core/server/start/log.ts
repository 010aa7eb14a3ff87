import pino, { type DestinationStream, type Logger } from 'pino';
import { redactKeyValues } from '#contract/key-value.ts';
import type { LogLevel } from './config.ts';

/**
 * Creates a log of JSON lines. Each line has only fields that the code names, never a whole request. Errors are logged without the
 * parameters of statements (`compileSqlOnError`). As a last defense, what looks like a key value is redacted.
 */
export function createLog(level: LogLevel, destination?: DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: toLoggedError },
    hooks: { streamWrite: redactKeyValues },
  };
  return pino(options, destination ?? standardOutput());
}

/** Writes asynchronously, and drops what can't be written: a full disk, or a pipe that no one reads, must not stop the service. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: 1, sync: false, maxLength: 1024 * 1024 });
  let isFailing = false;
  output.on('error', () => {
    isFailing = true;
  });
  output.on('write', () => {
    isFailing = false;
  });
  // At exit, the library would retry until it has written everything, and on a full disk it would never stop.
  process.prependListener('exit', () => {
    if (isFailing) output.destroy();
  });
  return output;
}

type LoggedError = { type: string; message: string; code?: string; stack?: string; cause?: LoggedError };

/** Returns an error's name, message, code, stack and cause, but not what libraries add, such as a statement's parameters. */
function toLoggedError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'Something other than an error was thrown.' };
  const logged: LoggedError = { type: error.name, message: error.message };
  if ('code' in error && typeof error.code === 'string') logged.code = error.code;
  // Omit the message, which the stack repeats before its first frame.
  if (error.stack?.includes('\n    at ')) logged.stack = error.stack.slice(error.stack.indexOf('\n    at ') + 1);
  if (error.cause !== undefined) logged.cause = toLoggedError(error.cause);
  return logged;
}
