import { styleText } from 'node:util';
import { keyValueLookalike, keyValuePrefix } from '#contract/key-value.ts';

/** Standard output carries answers and nothing else; standard error carries every message to the user. */
export type Output = {
  readonly json: boolean;
  /** Whether a program reads the results: with --json, or when standard output is no terminal. */
  readonly forPrograms: boolean;
  readonly verbose: boolean;
  /** The answer of a command: one JSON object with --json, otherwise text. */
  answer(json: object, text: string): void;
  /** One line of newline-delimited JSON. */
  result(json: object): void;
  note(text: string): void;
  error(text: string): void;
  /** Shown with --verbose alone. */
  trace(text: string): void;
};

export type Streams = { stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };

export function createOutput(
  { stdout, stderr }: Streams,
  { json = false, verbose = false }: { json?: boolean; verbose?: boolean },
): Output {
  const note = (text: string) => stderr.write(`${stripControls(redact(text))}\n`);
  const result = (object: object) => stdout.write(`${JSON.stringify(object)}\n`);
  return {
    json,
    forPrograms: json || !stdout.isTTY,
    verbose,
    answer: (object, text) => (json ? result(object) : stdout.write(`${stripControls(redact(text))}\n`)),
    result,
    note,
    error: (text) => stderr.write(`${styleText('red', 'error:', { stream: stderr })} ${stripControls(redact(text))}\n`),
    trace: (text) => verbose && note(text),
  };
}

/** Replaces key values, which may come from a mistyped argument, a URL or a server's answer. */
export function redact(text: string): string {
  return text.replace(keyValueLookalike, (found) => (found === keyValuePrefix ? found : `${keyValuePrefix}[redacted]`));
}

/** Removes control characters but tabs and line ends: text from a server or a file must not steer the terminal. */
export function stripControls(text: string): string {
  return text.replace(/[^\P{Cc}\t\n]/gu, '');
}

export function formatCount(count: number): string {
  return count.toLocaleString('en');
}
