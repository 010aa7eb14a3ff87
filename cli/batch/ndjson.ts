import { parseJson } from '#contract/text/json.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Row } from './row.ts';

/** Several times what a call may have. */
const longestLine = 1024 * 1024;

/** Each line is the body of one request. @throws CallkeyError `usage` at a line that no memory should hold */
export async function* readNdjson(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  let rest = '';
  for await (const chunk of chunks) {
    const text = rest + chunk;
    // At the end, nobody knows yet whether LF follows CR.
    const end = text.endsWith('\r') ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? '') + text.slice(end);
    for (const content of lines) yield* rowOf(content, ++line);
    if (rest.length > longestLine) throw new CallkeyError('usage', `Line ${line + 1} is too long for a call. Put one call on each line.`);
  }
  yield* rowOf(rest, ++line);
}

function rowOf(content: string, line: number): Row[] {
  if (content.trim() === '') return [];
  const input = parseJson(content);
  return [input === undefined ? { line, path: '', reason: "This isn't valid JSON." } : { line, input }];
}
