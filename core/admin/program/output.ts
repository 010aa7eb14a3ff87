import { safeJson, stripControls } from '#contract/text/terminal-text.ts';

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

/** For text from outside within a line: a line break in it would begin a line that looks like ours. */
export function oneLine(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ')).trim();
}
