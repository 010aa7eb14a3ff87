import { LineReader, readAll } from '#contract/files/csv.ts';
import { UnreadableFile } from '#contract/files/text-file.ts';
import { parseJson } from '#contract/text/json.ts';
import type { Row } from './row.ts';

/** Several times the size of a call. */
const maxLineLength = 1024 * 1024;

/** Reads lines, each of which is the body of one request. @throws UnreadableFile if a line is too long to hold in memory */
export async function* readNdjson(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  const lines = new LineReader(({ length }) => {
    if (length > maxLineLength) throw new UnreadableFile(`Line ${line + 1} is too long for a call. Put one call on each line.`);
  });
  for await (const content of readAll(chunks, lines)) {
    line++;
    if (content.trim() === '') continue;
    const input = parseJson(content);
    yield input === undefined ? { line, path: '', reason: "This isn't valid JSON." } : { line, input };
  }
}
