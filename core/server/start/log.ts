import pino, { type DestinationStream, type Logger } from 'pino';
import { keyValueLookalike } from '#contract/key-value.ts';
import type { LogLevel } from './config.ts';

/** Logs JSON lines. Callers log an allow-list of fields. As a last defence, anything that looks like a key value is redacted from the line. */
export function createLog(level: LogLevel, destination?: DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: errorOf },
    hooks: { streamWrite: scrub },
  };
  return pino(options, destination ?? standardOutput());
}

/** Written asynchronously, and dropped where it cannot be written: a log on a full disk, or a pipe without a reader, must not stop the service. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: 1, sync: false, maxLength: 1024 * 1024 });
  let isFailing = false;
  output.on('error', () => {
    isFailing = true;
  });
  output.on('write', () => {
    isFailing = false;
  });
  // At exit the library retries to write the rest until it succeeds, which on a full disk is for ever.
  process.prependListener('exit', () => {
    if (isFailing) output.destroy();
  });
  return output;
}

function scrub(text: string): string {
  return text.replace(keyValueLookalike, 'svc_sk_live_[redacted]');
}

type LoggedError = { type: string; message: string; code?: string; stack?: string; cause?: LoggedError };

/** Name, message, code, stack and cause: not the properties that libraries hang on errors, such as a statement's parameters. */
function errorOf(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'Something other than an error was thrown.' };
  const logged: LoggedError = { type: error.name, message: error.message };
  if ('code' in error && typeof error.code === 'string') logged.code = error.code;
  // The stack repeats the message before its first frame.
  if (error.stack?.includes('\n    at ')) logged.stack = error.stack.slice(error.stack.indexOf('\n    at ') + 1);
  if (error.cause !== undefined) logged.cause = errorOf(error.cause);
  return logged;
}
