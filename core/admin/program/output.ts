import { safeJson, stripControls } from '#contract/text/terminal-text.ts';

/** Writes results and errors, as text or as one JSON object each. */
export type Output = {
  answer(json: object, text: string): void;
  /** Writes to standard error, so that standard output has only the result. Writes JSON if results are JSON. */
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

/** Puts text from outside on one line, because a line break in it could start a line that looks like ours. */
export function oneLine(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ')).trim();
}
