import { stripVTControlCharacters } from 'node:util';

/** Writes answers and errors as one JSON object each, or as text. */
export type Output = {
  answer(json: object, text: string): void;
  /** Goes to standard error, which leaves standard output to the answer: as JSON, too, where answers are. */
  error(code: string, text: string): void;
};

type Streams = { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream };

export function outputTo(streams: Streams, asJson: boolean): Output {
  return {
    answer: (json, text) => streams.stdout.write(asJson ? `${safeJson(json)}\n` : `${stripControls(text)}\n`),
    error: (code, text) =>
      streams.stderr.write(asJson ? `${safeJson({ error: { code, message: text } })}\n` : `error: ${stripControls(text)}\n`),
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
