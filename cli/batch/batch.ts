import { formatCount } from '#contract/text/count.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { filePolicy, formatSpan } from '../client/retries.ts';
import type { Connection, Context } from '../connection/context.ts';
import { diskReason } from '../state/durable-file.ts';
import { Interrupted, interruptOnSignals } from '../terminal/interrupt.ts';
import type { TextStream } from '../terminal/output.ts';
import type { Pace } from './pool.ts';

/** Many calls to place or to cancel over one connection. Placing, resuming and cancelling stop, report and fail in the same way. */
export type Batch = Connection &
  Pick<Context, 'folders' | 'output' | 'streams' | 'timing'> & {
    pace: Pace;
    /** Aborts when nothing more may be sent. */
    stop: AbortController;
    progress: Progress;
  };

/** Connects, and closes the connection when the work has ended. @throws CallkeyError */
export async function withBatch(context: Context, pace: Pace, work: (batch: Batch) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const { folders, output, streams, timing } = context;
  const retry = { ...filePolicy, until: stop.signal, onRetry: (reason: string) => batch.progress.waiting(reason) };
  const connection = await context.connect({ retry, connections: pace.concurrency });
  const batch: Batch = { ...connection, folders, output, streams, timing, pace, stop, progress: hidden };
  try {
    await work(batch);
  } finally {
    await connection.client.close();
  }
}

/** What people see while calls are sent, and read when that stops. */
type Attended = {
  /** The number of calls, and how many of them are already done. */
  total: number;
  done: number;
  /** What Ctrl-C waits for. */
  inFlight: 'calls' | 'requests';
  formatProgress(): string;
  /** A sentence that says how to continue; empty if that's not possible. */
  resumeAdvice(): string;
  /** How to get the results of complete work again, without doing anything twice. */
  repeatAdvice(): string;
  isComplete(): boolean;
  /** Whether the work stops when no one can read its results. */
  stopsIfUnread: boolean;
};

/** Sends calls until all are sent, a signal arrives or no one can read the results. @throws CallkeyError with advice; Interrupted */
export async function attend(batch: Batch, attended: Attended, work: () => Promise<void>): Promise<void> {
  const { output, streams, stop } = batch;
  const { total, done, inFlight, formatProgress, resumeAdvice, stopsIfUnread } = attended;
  batch.progress = createProgress(streams.stderr, total, done);
  const interrupt = interruptOnSignals(stop, () => {
    batch.progress.clear();
    output.note(`Finishing the ${inFlight} in flight. Press Ctrl-C again to stop immediately.`);
  });
  const stopIfUnread = () => stopsIfUnread && stop.abort();
  // The output may have been closed while the file was being checked.
  if (output.lost.aborted) stopIfUnread();
  output.lost.addEventListener('abort', stopIfUnread);
  try {
    await work();
  } catch (error) {
    // A request can fail because a signal has ended its retries. The signal is then the reason to report.
    if (interrupt.signal() === undefined && !(stopsIfUnread && output.lost.aborted)) throw withAdvice(error, attended);
  } finally {
    output.lost.removeEventListener('abort', stopIfUnread);
    batch.progress.clear();
    interrupt.release();
  }
  const signal = interrupt.signal();
  if (signal !== undefined) throw new Interrupted(signal, `Stopped. ${formatProgress()} ${resumeAdvice()}`);
  if (output.lost.aborted) throwIfResultsLost(output.lost.reason, attended);
}

function withAdvice(error: unknown, { formatProgress, resumeAdvice }: Attended): unknown {
  if (!(error instanceof CallkeyError)) return error;
  const { kind, code, message } = error;
  return new CallkeyError(kind, `${message}\nStopped. ${formatProgress()} ${resumeAdvice()}`.trim(), { code, cause: error });
}

/** Throws if results were lost. If the work is complete and the pipe was closed by its reader, such as `head`, that's a success. */
function throwIfResultsLost(reason: unknown, { formatProgress, resumeAdvice, repeatAdvice, isComplete }: Attended): void {
  const isClosed = errorCode(reason) === 'EPIPE';
  if (isClosed && isComplete()) return;
  const why = isClosed
    ? "The output pipe was closed, so the results can't be written."
    : `Couldn't write the results: ${diskReason(reason)}.`;
  const nextStep = isComplete()
    ? `${formatProgress()} To get the results, ${repeatAdvice()}. It won't place a call twice.`
    : `Stopped. ${formatProgress()} ${resumeAdvice()} To keep the results, redirect them to a file: > results.ndjson`;
  throw new CallkeyError('failed', `${why} ${nextStep}`, { code: 'results-lost' });
}

/** A terminal shows only this many lines of a kind, because no one reads more. The results contain all of them. */
export const maxNotes = 100;

/** Counts lines by what became of them, and reports each. */
export class Tally<Status extends string> {
  readonly #batch: Batch;
  readonly #counts = new Map<Status, number>();

  constructor(batch: Batch) {
    this.#batch = batch;
  }

  count(status: Status): number {
    return this.#counts.get(status) ?? 0;
  }

  /** Counts a line, and prints it if a program reads the results. @returns how many lines have this status */
  add(result: { line: number; status: Status; [field: string]: unknown }): number {
    const count = this.count(result.status) + 1;
    this.#counts.set(result.status, count);
    if (this.#batch.output.forPrograms) this.#batch.output.result(result);
    return count;
  }

  note(text: string): void {
    this.#batch.progress.clear();
    this.#batch.output.note(text);
  }
}

/** A line on a terminal that shows the progress of a run and is repainted in place. Shows nothing if the stream isn't a terminal. */
type Progress = {
  step(): void;
  /** Shows what the run is waiting for, until its next step. */
  waiting(reason: string): void;
  /** Clears the line to make room for other output. */
  clear(): void;
};

const betweenPaints = 100;
const barWidth = 24;

const hidden: Progress = { step: () => undefined, waiting: () => undefined, clear: () => undefined };

function createProgress(stream: TextStream, total: number, alreadyDone: number): Progress {
  if (!stream.isTTY) return hidden;
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

/** Shows the number of lines read so far. `clear` makes room for other output. */
export function createCounter(stream: TextStream, label: string) {
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
  return `${pace}, ${formatSpan(seconds)} left`;
}

/** @param expected the expected total; `done` may exceed it, because another command may still be placing the run that this one cancels */
export function progressLine(done: number, expected: number, tail: string): string {
  const total = Math.max(done, expected);
  const share = total === 0 ? 0 : done / total;
  const filled = Math.floor(share * barWidth);
  const bar = '#'.repeat(filled) + '.'.repeat(barWidth - filled);
  return `[${bar}] ${Math.floor(share * 100)}%  ${formatCount(done)} of ${formatCount(total)}  ${tail}`;
}
