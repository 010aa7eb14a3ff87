import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { redactKeyValues } from '#contract/key-value.ts';
import { pageUrl } from '#contract/pages.ts';
import { safeJson, stripControls } from '#contract/text/terminal-text.ts';
import type { CallkeyError, ErrorKind } from '../client/errors.ts';

/** Why a command failed. With --json, it's printed as the last line of standard error. */
export type Failure = { code: string; message: string; exitCode: number; page?: string };

/** A stream that may be a terminal. */
export type TextStream = Writable & { isTTY?: boolean; columns?: number };
export type Streams = { stdout: TextStream; stderr: TextStream };

/** Standard output carries only results; standard error carries every message to the user. */
export type Output = ReturnType<typeof createOutput>;

/** @param lost aborts when standard output can no longer be written, because of a closed pipe or a full disk. The reason is the error */
export function createOutput(
  { stdout, stderr }: Streams,
  { json = false, verbose = false }: { json?: boolean; verbose?: boolean },
  lost: AbortSignal,
) {
  let lastAnswer: string | undefined;
  const note = (text: string): void => void stderr.write(`${stripControls(redactKeyValues(text))}\n`);
  return {
    json,
    lost,
    note,
    /** Whether a program reads the results: with --json, or if standard output isn't a terminal. */
    forPrograms: json || !stdout.isTTY,
    /** Prints a command's result: one JSON object with --json, otherwise text. */
    answer(object: object, text: string): void {
      lastAnswer = json ? safeJson(object) : stripControls(redactKeyValues(text));
      stdout.write(`${lastAnswer}\n`);
    },
    /** Prints one line of newline-delimited JSON. */
    result: (object: object): void => void stdout.write(`${safeJson(object)}\n`),
    error({ code, message, exitCode, page }: Failure): void {
      const text = stripControls(redactKeyValues(message));
      if (json) stderr.write(`${safeJson({ error: { code, message: text, exitCode, page } })}\n`);
      else stderr.write(`${styleText('red', 'error:', { stream: stderr })} ${text}\n${page === undefined ? '' : `See ${page}\n`}`);
    },
    /** Shown only with --verbose. */
    trace: (text: string): void => (verbose ? note(text) : undefined),
    /** Returns the last result, to be shown elsewhere if it couldn't be written. */
    lastAnswer: () => lastAnswer,
  };
}

/** Scripts depend on the exit codes, so none changes its meaning. With --json, `code` is for errors that don't have their own. */
const failures = {
  failed: { exitCode: 1, code: 'failed' },
  usage: { exitCode: 2, code: 'usage' },
  keyRefused: { exitCode: 3, code: 'unauthorized' },
  campaignRefused: { exitCode: 4, code: 'campaign-refused' },
  conflict: { exitCode: 5, code: 'conflict' },
  notFound: { exitCode: 6, code: 'not-found' },
  unreachable: { exitCode: 7, code: 'unreachable' },
  notCallable: { exitCode: 8, code: 'not-callable' },
} as const satisfies Record<ErrorKind, Pick<Failure, 'exitCode' | 'code'>>;

/** The sections of the command's own README that explain its codes. */
const sections: Readonly<Record<string, string>> = {
  'untrusted-certificate': 'security',
  'proxy-refused': 'security',
  'other-server': 'store-a-key',
  'file-changed': 'stop-and-resume',
  'run-cancelled': 'cancel-a-file',
};

export function toFailure({ kind, code, message, status }: CallkeyError): Failure {
  const section = sections[code ?? ''];
  const own = section && pageUrl(`cli/README.md#${section}`);
  // Only a core sends a status and a problem code.
  const page = code !== undefined && status !== undefined ? pageUrl(`core/docs/problems.md#${code}`) : own;
  const { exitCode, code: usualCode } = failures[kind];
  return { code: code ?? usualCode, message, exitCode, ...(page && { page }) };
}
