import { CallkeyError, errorCode } from '../client/errors.ts';
import { diskReason } from '../state/durable-file.ts';
import { type Interrupt, Interrupted } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import type { Progress } from './progress.ts';

/** Work that reports its progress, and that stops after a signal or when no one can read its results. */
type StoppableWork = {
  interrupt: Interrupt;
  output: Output;
  progress: Progress;
  formatProgress(): string;
  /** A sentence that says how to continue; empty if that's not possible. */
  resumeAdvice(): string;
  /** How to get the results of complete work again, without doing anything twice. */
  repeatAdvice(): string;
  isComplete(): boolean;
  /** Whether the work stops when no one can read its results. */
  stopsIfUnread: boolean;
};

/** Runs `work` until it's done or has to stop. @throws CallkeyError, with advice on how to continue; Interrupted after a signal */
export async function runUntilStopped(stoppable: StoppableWork, work: () => Promise<void>): Promise<void> {
  const { interrupt, output, progress, formatProgress, resumeAdvice, stopsIfUnread } = stoppable;
  const stop = () => stopsIfUnread && interrupt.controller.abort();
  // The output may have been closed while the file was being checked.
  if (output.lost.aborted) stop();
  output.lost.addEventListener('abort', stop);
  try {
    await work();
  } catch (error) {
    // A request can fail because a signal has ended its retries. The signal is then the reason to report.
    if (interrupt.signal() === undefined && !(stopsIfUnread && output.lost.aborted))
      throw error instanceof CallkeyError ? withAdvice(error, stoppable) : error;
  } finally {
    output.lost.removeEventListener('abort', stop);
    progress.clear();
  }
  const signal = interrupt.signal();
  if (signal !== undefined) throw new Interrupted(signal, `Stopped. ${formatProgress()} ${resumeAdvice()}`);
  if (output.lost.aborted) throwIfResultsLost(stoppable);
}

function withAdvice(error: CallkeyError, { formatProgress, resumeAdvice }: StoppableWork): CallkeyError {
  return new CallkeyError(error.kind, `${error.message}\nStopped. ${formatProgress()} ${resumeAdvice()}`.trim(), {
    code: error.code,
    cause: error,
  });
}

/** Throws if results were lost. If the work is complete and the pipe was closed by its reader, such as `head`, that's a success. */
function throwIfResultsLost({ output, formatProgress, resumeAdvice, repeatAdvice, isComplete }: StoppableWork): void {
  const isClosed = errorCode(output.lost.reason) === 'EPIPE';
  if (isClosed && isComplete()) return;
  const why = isClosed
    ? "The output pipe was closed, so the results can't be written."
    : `Couldn't write the results: ${diskReason(output.lost.reason)}.`;
  const nextStep = isComplete()
    ? `${formatProgress()} To get the results, ${repeatAdvice()}. It won't place a call twice.`
    : `Stopped. ${formatProgress()} ${resumeAdvice()} To keep the results, redirect them to a file: > results.ndjson`;
  throw new CallkeyError('failed', `${why} ${nextStep}`, { code: 'results-lost' });
}
