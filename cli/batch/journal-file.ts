import { appendFileSync, closeSync, createReadStream, fsyncSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { diskError, privateFile } from '../state/durable-file.ts';
import { keepHeapSmall } from './heap-limit.ts';

/** Reads a journal line by line, since it can have a million entries. */
export async function* readLines(file: string, start = 0, bytes = Infinity): AsyncGenerator<string> {
  const keepSmall = keepHeapSmall();
  const input = createReadStream(file, { start, end: start + bytes - 1 });
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    keepSmall();
    yield line;
  }
}

/** `add` throws CallkeyError `failed` if it can't write. */
export type Journal<Entry> = { add(entry: Entry): void; close(): void };

/** Opens a journal to append entries. Creates it if necessary. @throws CallkeyError `failed` */
export function appendTo<Entry>(file: string): Journal<Entry> {
  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      throw diskError(error, `Couldn't write the journal ${file}`);
    }
  };
  const descriptor = attempt(() => openSync(file, 'a', privateFile));
  // Ends a line that a crash left half-written, so that the next entry stays readable.
  attempt(() => appendFileSync(descriptor, '\n'));
  return {
    add: (entry) => {
      // If the disk fills up, writeSync may write only a part of the entry, without an error.
      attempt(() => appendFileSync(descriptor, `${JSON.stringify(entry)}\n`));
    },
    /**
     * Syncs only once: if an entry is lost in a power failure or to a full disk, its line is sent again, and the core recognizes the
     * repeat.
     */
    close: () => {
      try {
        fsyncSync(descriptor);
      } catch {
        // Ignore a failed sync. As above, the line of a lost entry is sent again, and the core recognizes the repeat.
      }
      closeSync(descriptor);
    },
  };
}
