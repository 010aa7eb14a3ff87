import { parseJson } from '#contract/json.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Row } from './row.ts';

/** Several times what a call may have. */
const longestLine = 1024 * 1024;

/** Each line is the body of one request. @throws CallkeyError `usage` at a line that no memory should hold */
export async function* readNdjson(text: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  let rest = '';
  for await (const chunk of text) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const content of lines) yield* rowOf(content, ++line);
    if (rest.length > longestLine) throw new CallkeyError('usage', `Line ${line + 1} is too long for a call. Put one call on each line.`);
  }
  yield* rowOf(rest, ++line);
}

function rowOf(content: string, line: number): Row[] {
  if (content.trim() === '') return [];
  const input = parseJson(content);
  return [input === undefined ? { line, path: '', reason: 'This is not JSON.' } : { line, input }];
}
