import { safeJson, stripControls } from '#contract/text/terminal-text.ts';
import { errorCode } from '../../domain/problem.ts';
import { explainDatabaseError } from '../../storage/engine/error-text.ts';

/** Writes results and errors, as text or as one JSON object each. */
export type Output = {
  /** Writes the result. If that fails, the command fails, and the result goes to standard error. */
  answer(json: object, text: string): void;
  /** Writes to standard error, so that standard output has only the result. Writes JSON if results are JSON. */
  error(code: string, text: string): void;
};

type Streams = { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream };

export function outputTo(streams: Streams, asJson: boolean): Output {
  const error: Output['error'] = (code, text) =>
    streams.stderr.write(asJson ? `${safeJson({ error: { code, message: text } })}\n` : `error: ${stripControls(text)}\n`);
  return {
    answer(json, text) {
      const result = asJson ? safeJson(json) : stripControls(text);
      streams.stdout.write(`${result}\n`, (lost) => {
        // EPIPE isn't a failure, because a reader such as `head -1` may stop before the end of the output.
        if (!lost || errorCode(lost) === 'EPIPE') return;
        process.exitCode ||= 1;
        // Write the result here instead, because it may contain a one-time password, or a list that no other command shows.
        error(
          'failed',
          `Couldn't write to standard output: ${explainDatabaseError(lost)?.cause ?? lost.message}. The result is:\n${result}`,
        );
      });
    },
    error,
  };
}

/** Puts text from outside on one line, because after a line break, it could imitate a line of our own output. */
export function oneLine(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ')).trim();
}
