import { parseJson } from '#contract/text/json.ts';
import { CallkeyError } from '../../client/errors.ts';
import type { Row } from './row.ts';

/** Several times the size of a call. */
const maxLineLength = 1024 * 1024;

/** Reads lines, each of which is the body of one request. @throws CallkeyError `usage` if a line is too long to hold in memory */
export async function* readNdjson(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  let rest = '';
  for await (const chunk of chunks) {
    const text = rest + chunk;
    // If a chunk ends with CR, the LF may come with the next chunk.
    const end = text.endsWith('\r') ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? '') + text.slice(end);
    for (const content of lines) yield* toRows(content, ++line);
    if (rest.length > maxLineLength) throw new CallkeyError('usage', `Line ${line + 1} is too long for a call. Put one call on each line.`);
  }
  yield* toRows(rest, ++line);
}

function toRows(content: string, line: number): Row[] {
  if (content.trim() === '') return [];
  const input = parseJson(content);
  return [input === undefined ? { line, path: '', reason: "This isn't valid JSON." } : { line, input }];
}
