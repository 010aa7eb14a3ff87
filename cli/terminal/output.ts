import { styleText } from 'node:util';
import { redactKeyValues } from '#contract/key-value.ts';
import { safeJson, stripControls } from '#contract/text/terminal-text.ts';
import type { CallkeyError, ErrorKind } from '../client/errors.ts';

/** Standard output carries only results; standard error carries every message to the user. */
export type Output = {
  readonly json: boolean;
  /** Whether a program reads the results: with --json, or if standard output isn't a terminal. */
  readonly forPrograms: boolean;
  readonly verbose: boolean;
  /** Aborts when standard output can no longer be written, because of a closed pipe or a full disk. The reason is the error. */
  readonly lost: AbortSignal;
  /** A command's result: one JSON object with --json, otherwise text. */
  answer(json: object, text: string): void;
  /** One line of newline-delimited JSON. */
  result(json: object): void;
  note(text: string): void;
  error(failure: Failure): void;
  /** Shown only with --verbose. */
  trace(text: string): void;
  /** The last result, to be shown elsewhere if it couldn't be written. */
  lastAnswer(): string | undefined;
};

/** Why a command failed. With --json, it's printed as the last line of standard error. */
export type Failure = { code: string; message: string; exitCode: number };

export type Streams = { stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };

export function createOutput(
  { stdout, stderr }: Streams,
  { json = false, verbose = false }: { json?: boolean; verbose?: boolean },
  lost: AbortSignal,
): Output {
  let lastAnswer: string | undefined;
  const note = (text: string) => stderr.write(`${stripControls(redactKeyValues(text))}\n`);
  const result = (object: object) => stdout.write(`${safeJson(object)}\n`);
  return {
    json,
    forPrograms: json || !stdout.isTTY,
    verbose,
    lost,
    answer(object, text) {
      lastAnswer = json ? safeJson(object) : stripControls(redactKeyValues(text));
      stdout.write(`${lastAnswer}\n`);
    },
    result,
    note,
    error({ code, message, exitCode }) {
      const text = stripControls(redactKeyValues(message));
      if (json) stderr.write(`${safeJson({ error: { code, message: text, exitCode } })}\n`);
      else stderr.write(`${styleText('red', 'error:', { stream: stderr })} ${text}\n`);
    },
    trace: (text) => verbose && note(text),
    lastAnswer: () => lastAnswer,
  };
}

/** Scripts depend on these, so a code never changes its meaning. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  keyRefused: 3,
  campaignRefused: 4,
  conflict: 5,
  notFound: 6,
  unreachable: 7,
  notCallable: 8,
} as const satisfies Record<ErrorKind | 'done', number>;

/** With --json, the code of an error that doesn't have its own. */
const errorCodes = {
  failed: 'failed',
  usage: 'usage',
  keyRefused: 'unauthorized',
  campaignRefused: 'campaign-refused',
  conflict: 'conflict',
  notFound: 'not-found',
  unreachable: 'unreachable',
  notCallable: 'not-callable',
} as const satisfies Record<ErrorKind, string>;

export function toFailure({ kind, code, message }: CallkeyError): Failure {
  return { code: code ?? errorCodes[kind], message, exitCode: exitCodes[kind] };
}
