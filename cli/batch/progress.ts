import { formatCount } from '../output.ts';

/** How far a run is, on one line that is painted over; on what is no terminal, nothing. */
export type Progress = {
  step(): void;
  /** What the run waits for at the moment. */
  waiting(reason: string): void;
  /** Takes the line away, so that something else can be written. */
  clear(): void;
};

const betweenPaints = 100;
const barWidth = 24;

export function createProgress(stream: NodeJS.WriteStream, total: number, alreadyDone: number): Progress {
  if (!stream.isTTY) return { step: () => undefined, waiting: () => undefined, clear: () => undefined };
  const startedAt = performance.now();
  let done = alreadyDone;
  let paintedAt = 0;
  let held = '';

  const paint = () => {
    const now = performance.now();
    if (now - paintedAt < betweenPaints && done < total) return;
    paintedAt = now;
    const filled = Math.floor((done / total) * barWidth);
    const bar = '#'.repeat(filled) + '.'.repeat(barWidth - filled);
    const rate = Math.round((done - alreadyDone) / ((now - startedAt) / 1000));
    const tail = held === '' ? `${formatCount(rate)} a second` : held;
    const text = `[${bar}] ${Math.floor((done / total) * 100)} %  ${formatCount(done)} of ${formatCount(total)}  ${tail}`;
    // One column is left free: a full line would wrap, and then be painted over no more.
    stream.write(`\r\x1b[K${text.slice(0, Math.max(0, (stream.columns || 80) - 1))}`);
  };
  return {
    step() {
      done++;
      held = '';
      paint();
    },
    waiting(reason) {
      held = `waiting: ${reason}`;
      paint();
    },
    clear: () => stream.write('\r\x1b[K'),
  };
}
