import { styleText } from 'node:util';
import { keyValueLookalike, keyValuePrefix } from '#contract/key-value.ts';

/** Standard output carries answers and nothing else; standard error carries all that is said to a person. */
export type Output = {
  readonly json: boolean;
  /** Whether results are read by a program: with --json, or when standard output is no terminal. */
  readonly forPrograms: boolean;
  readonly verbose: boolean;
  /** The answer of a command: one JSON object with --json, otherwise text. */
  answer(json: object, text: string): void;
  /** One line of newline-delimited JSON. */
  result(json: object): void;
  note(text: string): void;
  error(text: string): void;
  /** What --verbose shows besides. */
  trace(text: string): void;
};

export type Streams = { stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };

export function createOutput(
  { stdout, stderr }: Streams,
  { json = false, verbose = false }: { json?: boolean; verbose?: boolean },
): Output {
  const say = (text: string) => stderr.write(`${stripControls(text)}\n`);
  const result = (object: object) => stdout.write(`${JSON.stringify(object)}\n`);
  return {
    json,
    forPrograms: json || !stdout.isTTY,
    verbose,
    answer: (object, text) => (json ? result(object) : stdout.write(`${stripControls(text)}\n`)),
    result,
    note: say,
    error: (text) => stderr.write(`${styleText('red', 'error:', { stream: stderr })} ${stripControls(text)}\n`),
    trace: (text) => verbose && say(text),
  };
}

/** Key values blotted out, wherever they come from: a mistyped argument, a URL, a server's answer. */
export function redact(text: string): string {
  return text.replace(keyValueLookalike, (found) => (found === keyValuePrefix ? found : `${keyValuePrefix}[blotted out]`));
}

/** Text that a server or a file had a hand in must not steer the terminal: control characters are left out, but for tabs and line ends. */
function stripControls(text: string): string {
  return redact(text).replace(/[^\P{Cc}\t\n]/gu, '');
}

export function formatCount(count: number): string {
  return count.toLocaleString('en');
}
