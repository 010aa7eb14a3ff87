import { failed } from './core-requests.ts';
import { type Result, refusal } from './ipc.ts';

/** If no data arrives for this long, the connection counts as lost. A busy core takes up to ten seconds to send part of a file. */
const idleMs = 60_000;
/** How often to report the progress, in ms. */
const reportMs = 200;
const connectionLost = 'The connection to the server was lost. Export again.';

/** Returns the name to suggest for a file: `calls-console.example.com-2026-11-28.csv`. */
export function nameExport(file: string, host: string): string {
  // Swedish dates are in the order of ISO 8601.
  return `${file.replace(/\.csv$/, '')}-${host.replaceAll(/[^\w.-]+/g, '-')}-${new Date().toLocaleDateString('sv')}.csv`;
}

type Copying = {
  body: AsyncIterable<Uint8Array>;
  write: (text: string) => Promise<void>;
  onRows: (rows: number) => void;
  signal: AbortSignal;
};

/** Copies a CSV file as it arrives. If it fails, discard what was written. @returns the number of rows; null if it was cancelled */
export async function copyExport({ body, write, onRows, signal }: Copying): Promise<Result<number | null>> {
  const file = new CsvProgress();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let reportedAt = 0;
  const parts = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const part = await beforeIdle(parts.next()).catch(() => null);
      if (signal.aborted) return { ok: true, value: null };
      if (!part || part.done) break;
      const text = decoder.decode(part.value, { stream: true });
      file.follow(text);
      await write(text);
      if (performance.now() - reportedAt < reportMs) continue;
      reportedAt = performance.now();
      onRows(file.rows);
    }
  } finally {
    // Not awaited, because on a lost connection, this may never finish.
    void parts.return?.()?.catch(() => undefined);
  }
  const { rows, problem } = file.ending() ?? { rows: 0, problem: connectionLost };
  if (problem === null) return { ok: true, value: rows };
  return failed(refusal('unavailable', problem));
}

async function beforeIdle<Value>(next: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const idle = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('idle')), idleMs);
  });
  return Promise.race([next, idle]).finally(() => clearTimeout(timer));
}

/** Longer than the last line of any file. */
const tailLength = 1_000;
const lastLine = /(?:^|\n)# (complete|INCOMPLETE), (\d+) rows(?:: (.*))?\r\n$/;

/** Tracks a CSV file as it arrives: counts its rows, and knows whether the text so far ends inside a cell. */
class CsvProgress {
  #lines = 0;
  #isInCell = false;
  #tail = '';

  follow(text: string): void {
    for (const [index, part] of text.split('"').entries()) {
      if (index > 0) this.#isInCell = !this.#isInCell;
      if (!this.#isInCell) this.#lines += part.split('\n').length - 1;
    }
    this.#tail = (this.#tail + text).slice(-tailLength);
  }

  /** The number of complete rows so far, not counting the header. */
  get rows(): number {
    return Math.max(0, this.#lines - 1);
  }

  /** Returns what the file's last line says: how many rows it has, and why it's incomplete, if it is. Null if that line hasn't arrived. */
  ending(): { rows: number; problem: string | null } | null {
    const [, kind, rows, why = ''] = (!this.#isInCell && lastLine.exec(this.#tail)) || [];
    return kind === undefined ? null : { rows: Number(rows), problem: kind === 'complete' ? null : why };
  }
}
