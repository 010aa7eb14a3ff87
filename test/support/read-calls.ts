import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { openCallFile } from '../../cli/batch/call-file.ts';
import { type CallLine, checkLines, goodLines, type InvalidLine } from '../../cli/batch/check-file.ts';
import { plainReading, type Reading } from '../../cli/batch/reading.ts';
import { freshDirectory } from './databases.ts';

/** What a file contains, as the command reads it. */
type Read = { good: CallLine[]; bad: InvalidLine[]; duplicateNumber: [number, number][]; notes: string[]; content: string };

export async function readCalls(content: string | Buffer, reading: Partial<Reading> = {}, purpose?: 'cancel'): Promise<Read> {
  const directory = freshDirectory();
  const path = join(directory, 'calls');
  writeFileSync(path, content);
  const machine = { stdin: Readable.from([]), folders: { config: directory, data: directory, state: directory } };
  const file = await openCallFile(machine, path, { ...plainReading, ...reading }, purpose);
  try {
    const result: Read = { good: [], bad: [], duplicateNumber: [], notes: file.notes, content: file.content };
    const { bad, good } = await checkLines(file, {
      invalidLine: (line) => result.bad.push(line),
      duplicateNumber: (...lines) => result.duplicateNumber.push(lines),
      line: () => undefined,
    });
    result.good.push(...(await Readable.from(goodLines(file, bad)).toArray()));
    expect([good, bad.size]).to.deep.equal([result.good.length, result.bad.length]);
    return result;
  } finally {
    await file.close();
  }
}
/** Returns why a whole file is refused. */
export const readRefusal = (content: string | Buffer, reading?: Partial<Reading>) =>
  readCalls(content, reading).then(
    () => expect.fail('The file was accepted.'),
    (thrown: unknown) => thrown,
  );
/** Returns the errors of invalid lines. */
export const badLines = async (text: string, reading?: Partial<Reading>) =>
  (await readCalls(text, reading)).bad.flatMap(({ line, errors }) => errors.map(({ path, message }) => [line, path, message]));
