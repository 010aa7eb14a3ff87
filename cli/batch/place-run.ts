import { counted, formatCount } from '#contract/text/count.ts';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Call } from '../client/types.ts';
import type { Interrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { isCancelled, openCancelJournal } from './cancel-journal.ts';
import { cancelledError } from './choose-run.ts';
import { type CallFile, type CallLine, type CheckedFile, goodLines } from './file/call-file.ts';
import { type Pace, runPool } from './pool.ts';
import type { Progress } from './progress.ts';
import { callDigest, earlierLines, lineRequestId, openJournal, type PlacedLine, type Run, type RunJournal } from './run-journal.ts';
import { runUntilStopped } from './run-until-stopped.ts';

/** A run, and everything needed to place it. */
type Batch = {
  run: Run;
  file: CallFile;
  checked: CheckedFile;
  client: CallkeyClient;
  pace: Pace;
  /** Whether the command has --again. */
  again: boolean;
  interrupt: Interrupt;
  output: Output;
  progress: Progress;
  /** The command that resumes the run. */
  resumeCommand: string;
};

/**
 * Counts the lines that the core rejected.
 *
 * @property isUnclear whether a proxy rejected a line that an earlier attempt may have placed
 * @property skipped the number of lines whose person must not be called, by problem code
 */
type Refusals = { count: number; isUnclear: boolean; first?: CallkeyError; skipped: Map<string, number> };

/** How often a command checks whether another one has cancelled its run, in milliseconds. */
const cancellationCheckInterval = 250;

/** A terminal shows only this many lines, because no one reads more. The results contain all of them. */
const maxSkippedNotes = 100;

/**
 * Reports the lines that are already placed, then places the others.
 *
 * @throws CallkeyError if the core rejected lines or the run had to stop; Interrupted after a signal
 */
export async function placeRun(batch: Batch): Promise<void> {
  const { run, checked, output, progress } = batch;
  const refusals: Refusals = { count: 0, isUnclear: false, skipped: new Map() };
  const stoppable = {
    ...batch,
    formatProgress: () => formatProgress(batch),
    resumeAdvice: () => resumeAdvice(batch),
    repeatAdvice: () => repeatAdvice(batch),
    isComplete: () => run.completedAt !== null || areAllAnswered(batch, refusals),
    // The user must see every call that's placed.
    stopsIfUnread: true,
  };
  await runUntilStopped(stoppable, async () => {
    try {
      await reportEarlier(batch);
      if (run.completedAt === null) await placeOthers(batch, refusals);
    } finally {
      progress.clear();
      reportSkippedCount(batch, refusals);
    }
  });
  if (refusals.first) throw rejectedLinesError(refusals.count, refusals.first, batch);
  if (run.completedAt === null && run.placed.size === checked.good) output.note(formatProgress(batch));
}

async function placeOthers(batch: Batch, refusals: Refusals): Promise<void> {
  const { run, file, checked, pace, interrupt } = batch;
  const journal = openJournal(run);
  // Requests that wait for their next attempt then aren't sent again.
  const checks = setInterval(() => isCancelled(run) && interrupt.controller.abort(), cancellationCheckInterval);
  try {
    await runPool(goodLines(file, checked.bad, run.placed), pace, interrupt.controller, (line) =>
      placeLine(batch, journal, line, refusals),
    );
    const now = new Date().toISOString();
    if (run.placed.size === checked.good) journal.add({ completedAt: now });
    else if (isCancelled(run)) throw cancelledError(run);
    else if (areAllAnswered(batch, refusals)) journal.add({ endedAt: now });
  } finally {
    clearInterval(checks);
    journal.close();
  }
}

function areAllAnswered({ run, checked }: Batch, { count, isUnclear, skipped }: Refusals): boolean {
  return !isUnclear && run.placed.size + count + countSkipped(skipped) === checked.good;
}

async function placeLine(batch: Batch, journal: RunJournal, { line, call }: CallLine, refusals: Refusals): Promise<void> {
  const { run, client, output, progress } = batch;
  const identified: Call = { ...call, requestId: call.requestId ?? lineRequestId(run.header, line) };
  if (isCancelled(run)) throw cancelledError(run);
  // Write the line to the journal before checking once more whether the run was cancelled. A command that cancels the run then either sees
  // this line in the journal, or this check stops it.
  const ownId = call.requestId === undefined ? {} : { requestId: call.requestId };
  const digest = callDigest(call);
  journal.add({ sent: line, ...ownId, call: digest });
  if (isCancelled(run)) throw cancelledError(run);
  try {
    const { requestId, contactId, placedAt, heldUntil, replayed } = await client.place(run.header.campaignId, identified);
    const placed = { line, ...ownId, contactId, placedAt, heldUntil, call: digest };
    run.placed.add(line);
    reportPlaced(output, placed, requestId, replayed);
    progress.step();
    journal.add(placed);
  } catch (error) {
    if (concernsOneLine(error)) {
      reportRejected(batch, journal, refusals, line, identified.requestId, error);
      if (error.code !== undefined) return;
    } else if (!isCancelled(run)) {
      // An earlier command may have sent this line, too.
      if (isUnplaced(error) && !run.unsettled.has(line)) journal.add({ refused: line });
      throw error;
    }
  }
  if (isCancelled(run)) {
    await cancelSent(batch, line, identified.requestId);
    throw cancelledError(run);
  }
}

function reportRejected(
  { output, progress }: Batch,
  journal: RunJournal,
  refusals: Refusals,
  line: number,
  requestId: string,
  error: CallkeyError,
): void {
  // A proxy's response has no code. It says nothing about an earlier attempt, which may have placed the call.
  if (error.code === undefined) refusals.isUnclear = true;
  else journal.add({ refused: line });
  if (error.kind === 'notCallable') {
    reportSkipped({ output, progress }, refusals, line, requestId, error);
    return;
  }
  refusals.count++;
  refusals.first ??= error;
  if (output.forPrograms) output.result({ line, status: 'refused', requestId, code: error.code ?? null, detail: error.message });
  progress.clear();
  output.note(`line ${line}: rejected: ${error.message}`);
}

/**
 * Cancels a call that was sent before this command noticed that its run was cancelled. The command that cancels the run may have ended
 * before the call arrived.
 */
async function cancelSent({ run, client }: Batch, line: number, requestId: string): Promise<void> {
  try {
    const { contactId, cancelledAt } = await client.cancel(run.header.campaignId, { requestId });
    const journal = await openCancelJournal(run);
    journal.add({ line, status: 'cancelled', requestId, contactId, cancelledAt });
    journal.close();
  } catch (error) {
    if (!(error instanceof CallkeyError)) throw error;
    if (error.code === 'call-not-found') return;
    const message = `The run was cancelled while line ${line} was being sent, and callkey couldn't cancel its call: ${error.message} Run call cancel again.`;
    throw new CallkeyError(error.kind, message, { code: error.code, cause: error });
  }
}

/** Whether an error concerns only its own line. A refused key, an unreachable core or a full disk stops the run. */
function concernsOneLine(error: unknown): error is CallkeyError {
  return error instanceof CallkeyError && ['usage', 'conflict', 'notCallable'].includes(error.kind);
}

/** Whether a request that failed certainly didn't place a call. */
function isUnplaced(error: unknown): boolean {
  if (!(error instanceof CallkeyError)) return false;
  const { isUnsent, isRepeat, code, status = 500 } = error;
  return isUnsent || (!isRepeat && code !== undefined && status < 500);
}

function reportSkipped(
  { output, progress }: Pick<Batch, 'output' | 'progress'>,
  { skipped }: Refusals,
  line: number,
  requestId: string,
  { code = '', message }: CallkeyError,
): void {
  skipped.set(code, (skipped.get(code) ?? 0) + 1);
  progress.step();
  if (output.forPrograms) output.result({ line, status: 'skipped', requestId, code, detail: message });
  if (countSkipped(skipped) > maxSkippedNotes) return;
  progress.clear();
  output.note(`line ${line}: skipped: ${message}`);
}

/** Skipped lines don't count as placed or rejected, because the run did what it should. */
function reportSkippedCount(batch: Batch, { skipped }: Refusals): void {
  if (skipped.size === 0) return;
  const reasons = [...skipped].map(([code, count]) => `${formatCount(count)} ${code}`).join(', ');
  batch.output.note(`Skipped ${counted(countSkipped(skipped), 'line')}: ${reasons}. To try them again, ${repeatAdvice(batch)}.`);
}

function countSkipped(skipped: ReadonlyMap<string, number>): number {
  return skipped.values().reduce((sum, count) => sum + count, 0);
}

async function reportEarlier({ run, output, interrupt }: Batch): Promise<void> {
  if (!output.forPrograms || (run.completedAt === null && run.placed.size === 0)) return;
  for await (const placed of earlierLines(run)) {
    if (interrupt.controller.signal.aborted) return;
    reportPlaced(output, placed, placed.requestId ?? lineRequestId(run.header, placed.line), true);
  }
}

function reportPlaced(output: Output, { line, contactId, placedAt, heldUntil }: PlacedLine, requestId: string, replayed: boolean): void {
  if (output.forPrograms) output.result({ line, status: 'placed', requestId, contactId, placedAt, heldUntil, replayed });
}

function formatProgress({ run, checked }: Batch): string {
  const placed = run.completedAt === null ? run.placed.size : checked.good;
  return `${formatCount(placed)} of ${counted(checked.good, 'line')} placed.`;
}

function resumeAdvice({ run, resumeCommand }: Batch): string {
  if (isCancelled(run)) return '';
  return run.header.path === null ? 'To continue, pipe in the same input again.' : `To continue, run ${resumeCommand}.`;
}

/** Repeating a command that has --again would place every line again. */
function repeatAdvice({ run, again }: Batch): string {
  return `run the same command ${again || run.header.repetition !== '' ? 'without --again' : 'again'}`;
}

function rejectedLinesError(count: number, first: CallkeyError, batch: Batch): CallkeyError {
  return new CallkeyError(first.kind, `The server rejected ${counted(count, 'line')} (see above). ${formatProgress(batch)}`, {
    code: first.code,
    cause: first,
  });
}
