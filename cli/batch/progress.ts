import { formatCount } from '../output.ts';

/** One line on a terminal that shows how far a run is, and is painted over. Shows nothing where the stream is no terminal. */
export type Progress = {
  step(): void;
  /** Shows what the run waits for, until the next step. */
  waiting(reason: string): void;
  /** Removes the line, to make room for other output. */
  clear(): void;
};

const betweenPaints = 100;
const barWidth = 24;

export function createProgress(stream: NodeJS.WriteStream, total: number, alreadyDone: number): Progress {
  if (!stream.isTTY) return { step: () => undefined, waiting: () => undefined, clear: () => undefined };
  const startedAt = performance.now();
  let done = alreadyDone;
  let paintedAt = 0;
  let reason = '';

  const paint = () => {
    const now = performance.now();
    if (now - paintedAt < betweenPaints && done < total) return;
    paintedAt = now;
    const rate = Math.round((done - alreadyDone) / ((now - startedAt) / 1000));
    const text = progressLine(done, total, reason === '' ? `${formatCount(rate)} per second` : `waiting: ${reason}`);
    // Leaves one column free: a full line would wrap, and the next paint would not cover it.
    stream.write(`\r\x1b[K${text.slice(0, Math.max(0, (stream.columns || 80) - 1))}`);
  };
  return {
    step() {
      done++;
      reason = '';
      paint();
    },
    waiting(newReason) {
      reason = newReason;
      paint();
    },
    clear: () => stream.write('\r\x1b[K'),
  };
}

export type Counter = {
  line(): void;
  /** Removes what is shown, to make room for other output. */
  clear(): void;
};

/** Shows how many lines have been read. */
export function createCounter(stream: NodeJS.WriteStream, label: string): Counter {
  if (!stream.isTTY) return { line: () => undefined, clear: () => undefined };
  let lines = 0;
  let paintedAt = performance.now();
  return {
    line() {
      lines++;
      // The clock is not asked a million times.
      if (lines % 1000 !== 0 || performance.now() - paintedAt < betweenPaints) return;
      paintedAt = performance.now();
      stream.write(`\r\x1b[K${label} … ${formatCount(lines)} lines`);
    },
    clear: () => stream.write('\r\x1b[K'),
  };
}

export function progressLine(done: number, total: number, tail: string): string {
  const filled = Math.floor((done / total) * barWidth);
  const bar = '#'.repeat(filled) + '.'.repeat(barWidth - filled);
  return `[${bar}] ${Math.floor((done / total) * 100)} %  ${formatCount(done)} of ${formatCount(total)}  ${tail}`;
}
