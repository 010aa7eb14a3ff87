import { formatCount } from '#contract/text/count.ts';

/** A line on a terminal that shows the progress of a run and is repainted in place. Shows nothing if the stream isn't a terminal. */
export type Progress = {
  step(): void;
  /** Shows what the run is waiting for, until its next step. */
  waiting(reason: string): void;
  /** Clears the line to make room for other output. */
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
    const rate = (done - alreadyDone) / ((now - startedAt) / 1000);
    const text = progressLine(done, total, reason === '' ? formatPace(rate, total - done) : `waiting: ${reason}`);
    // Leaves one column free, because a full line would wrap, and the next paint would overwrite only part of it.
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
  /** Clears the line to make room for other output. */
  clear(): void;
};

/** Shows the number of lines read so far. */
export function createCounter(stream: NodeJS.WriteStream, label: string): Counter {
  if (!stream.isTTY) return { line: () => undefined, clear: () => undefined };
  let lines = 0;
  let paintedAt = performance.now();
  return {
    line() {
      lines++;
      // Avoids reading the clock a million times.
      if (lines % 1000 !== 0 || performance.now() - paintedAt < betweenPaints) return;
      paintedAt = performance.now();
      stream.write(`\r\x1b[K${label}… ${formatCount(lines)} lines`);
    },
    clear: () => stream.write('\r\x1b[K'),
  };
}

/** @param rate calls per second */
export function formatPace(rate: number, remaining: number): string {
  const pace = `${formatCount(Math.round(rate))} per second`;
  const seconds = Math.ceil(remaining / rate);
  if (remaining <= 0 || !Number.isFinite(seconds)) return pace;
  if (seconds < 60) return `${pace}, ${seconds} s left`;
  const minutes = Math.ceil(seconds / 60);
  return `${pace}, ${minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`} left`;
}

/** @param expected the expected total; `done` may exceed it, because another command may still be placing the run that this one cancels */
export function progressLine(done: number, expected: number, tail: string): string {
  const total = Math.max(done, expected);
  const share = total === 0 ? 0 : done / total;
  const filled = Math.floor(share * barWidth);
  const bar = '#'.repeat(filled) + '.'.repeat(barWidth - filled);
  return `[${bar}] ${Math.floor(share * 100)}%  ${formatCount(done)} of ${formatCount(total)}  ${tail}`;
}
