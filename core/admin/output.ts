import { stripVTControlCharacters } from 'node:util';

/** Writes answers as one JSON object each, or as text. */
export type Output = {
  answer(json: object, text: string): void;
  /** Goes to standard error, which leaves standard output to the answer. */
  note(text: string): void;
};

type Streams = { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream };

export function outputTo(streams: Streams, asJson: boolean): Output {
  return {
    answer: (json, text) => streams.stdout.write(asJson ? `${safeJson(json)}\n` : `${stripControls(text)}\n`),
    note: (text) => streams.stderr.write(`${stripControls(text)}\n`),
  };
}

/** These can reorder or hide text on a terminal: bidirectional formatting (UAX #9), and Unicode's line separators. */
const formatting = '\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';
const unsafe = new RegExp(`[${formatting}]|[^\\P{Cc}\\n]`, 'gu');
const unsafeInJson = new RegExp(`[${formatting}\\u007f-\\u009f]`, 'gu');

/** Names, files and messages from outside must not steer the terminal (CWE-150). Keeps line ends: answers have several lines. */
export function stripControls(text: string): string {
  return stripVTControlCharacters(text).replace(unsafe, '');
}

/** For text from outside within a line: a line break in it would begin a line that looks like ours. */
export function oneLine(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ')).trim();
}

/** JSON.stringify escapes C0 only. The other characters occur only within its strings, where an escape means the same. */
function safeJson(json: object): string {
  return JSON.stringify(json).replace(unsafeInJson, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Columns, as wide as their widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows.map((row) => row.map(oneLine))];
  const widths = head.map((_, column) => all.reduce((widest, row) => Math.max(widest, [...(row[column] ?? '')].length), 0));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
