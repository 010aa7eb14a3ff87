import { setTimeout as wait } from 'node:timers/promises';
import { isRequestId } from '#contract/calls/calls.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { isIdentifier } from '#contract/text/text.ts';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { CallReference } from '../client/types.ts';
import type { Interrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { type CancelledLine, openCancelJournal, readCancelledLines } from './cancel-journal.ts';
import type { CallFile } from './file/call-file.ts';
import { LineSet } from './file/line-numbers.ts';
import type { Journal } from './journal-file.ts';
import { type Pace, runPool } from './pool.ts';
import type { Progress } from './progress.ts';
import { earlierLines, lineRequestId, type Run, unsettledLines } from './run-journal.ts';
import { runUntilStopped } from './run-until-stopped.ts';

/** A call to cancel. If the response to placing it was lost, `isConfirmed` is false: the call may not exist. */
type Target = { line: number; call: CallReference; isConfirmed: boolean };

type CancelBatch = {
  campaignId: string;
  client: CallkeyClient;
  pace: Pace;
  interrupt: Interrupt;
  output: Output;
  progress: Progress;
  resumeAdvice: string;
};

type Status = CancelledLine['status'] | 'not-found' | 'invalid';
const reasons: Readonly<Record<Exclude<Status, 'cancelled'>, string>> = {
  'too-late': 'too late: the call was already dialed',
  'not-found': "not found: this call isn't in the campaign",
  'not-placed': 'never placed',
  invalid: 'no requestId or contactId',
};
type Counts = Record<Status, number>;

/** A terminal shows only this many lines, because no one reads more. The results contain all of them. */
const maxNotes = 100;

/**
 * How long to wait before each attempt to cancel a run, in milliseconds. Together, it's longer than one attempt of `call place` to send a
 * call takes by default. So the calls that a command had sent before it noticed the cancellation, or was killed, have arrived by then.
 */
const delays = [0, 1_000, 2_000, 4_000, 4_000];

/**
 * Cancels the calls of a run that haven't been dialed. A journal records what was done, so that a stopped command can continue.
 *
 * @throws CallkeyError `conflict` if calls were already dialed; Interrupted after a signal
 */
export async function cancelRun(batch: CancelBatch, run: Run): Promise<void> {
  const counts = newCounts();
  const journal = await openTolerantJournal(batch, run);
  const done = new LineSet();
  try {
    await runUntilStopped(toAttended(batch, counts), async () => {
      for await (const earlier of readCancelledLines(run)) {
        // Calls that hadn't arrived are tried again.
        if (earlier.status === 'not-placed') continue;
        done.add(earlier.line);
        report(batch, counts, earlier);
      }
      const { signal } = batch.interrupt.controller;
      for (const [index, delay] of delays.entries()) {
        await wait(delay, undefined, { signal }).catch(() => undefined);
        const isLast = run.completedAt !== null || index === delays.length - 1;
        const missing = await cancelTargets(batch, runTargets(run, done), counts, { journal, done, isLast });
        // The second attempt finds the calls that a command that is still placing this run has sent in the meantime.
        if (isLast || (index > 0 && missing === 0) || signal.aborted) return;
        if (missing > 0) batch.progress.waiting(`${counted(missing, 'call')} may still arrive`);
      }
    });
  } finally {
    journal.close();
  }
  conclude(batch, counts);
}

/** Opens a journal. If it can't be written, cancelling continues without it, because cancelling is urgent and can be repeated. */
async function openTolerantJournal({ output, progress }: CancelBatch, run: Run): Promise<Journal<CancelledLine>> {
  let journal: Journal<CancelledLine> | undefined;
  const giveUp = (error: unknown) => {
    if (!(error instanceof CallkeyError)) throw error;
    journal?.close();
    journal = undefined;
    progress.clear();
    output.note(`${error.message} callkey will still cancel the calls, but may not be able to record that, so don't resume this run.`);
  };
  await openCancelJournal(run).then((opened) => {
    journal = opened;
  }, giveUp);
  return {
    add(result) {
      try {
        journal?.add(result);
      } catch (error) {
        giveUp(error);
      }
    },
    close: () => journal?.close(),
  };
}

/**
 * Cancels the calls in a file: the results of `call place`, or the placed file itself. Safe to repeat. @throws the same errors as cancelRun
 */
export async function cancelFile(batch: CancelBatch, file: CallFile): Promise<void> {
  const counts = newCounts();
  await runUntilStopped(toAttended(batch, counts), async () => {
    await cancelTargets(batch, fileTargets(batch, file, counts), counts, { done: new LineSet(), isLast: true });
  });
  conclude(batch, counts);
}

type Pass = { journal?: Journal<CancelledLine>; done: LineSet; isLast: boolean };

/** @returns the number of calls that don't exist, but that may still arrive */
async function cancelTargets(batch: CancelBatch, targets: AsyncIterable<Target>, counts: Counts, pass: Pass): Promise<number> {
  const { client, campaignId, pace, interrupt } = batch;
  let missing = 0;
  await runPool(targets, pace, interrupt.controller, async ({ line, call, isConfirmed }) => {
    try {
      const { requestId, contactId, cancelledAt } = await client.cancel(campaignId, call);
      settle(batch, counts, pass, { line, status: 'cancelled', requestId, contactId, cancelledAt });
    } catch (error) {
      if (!(error instanceof CallkeyError)) throw error;
      // A proxy's response has no code, and says nothing about the call.
      if (error.code === 'already-dialed') settle(batch, counts, pass, { line, status: 'too-late', ...call, detail: error.message });
      else if (error.code !== 'call-not-found') throw error;
      else if (isConfirmed) {
        pass.done.add(line);
        report(batch, counts, { line, status: 'not-found', ...call });
      } else if (pass.isLast) settle(batch, counts, pass, { line, status: 'not-placed', ...call });
      else missing++;
    }
  });
  return missing;
}

function settle(batch: CancelBatch, counts: Counts, { journal, done }: Pass, result: CancelledLine): void {
  done.add(result.line);
  report(batch, counts, result);
  journal?.add(result);
}

function report({ output, progress }: CancelBatch, counts: Counts, result: { line: number; status: Status }): void {
  counts[result.status]++;
  if (output.forPrograms) output.result(result);
  else if (result.status !== 'cancelled' && counts[result.status] <= maxNotes) {
    progress.clear();
    const isLast = counts[result.status] === maxNotes;
    output.note(`line ${result.line}: ${reasons[result.status]}${isLast ? '. To see more of these lines, add --json.' : ''}`);
  }
  progress.step();
}

async function* runTargets(run: Run, done: LineSet): AsyncGenerator<Target> {
  const placed = new LineSet();
  for await (const { line, contactId } of earlierLines(run)) {
    placed.add(line);
    if (!done.has(line)) yield { line, call: { contactId }, isConfirmed: true };
  }
  if (run.completedAt !== null) return;
  for (const [line, { requestId }] of await unsettledLines(run, placed))
    if (!done.has(line)) yield { line, call: { requestId }, isConfirmed: false };
}

async function* fileTargets(batch: CancelBatch, file: CallFile, counts: Counts): AsyncGenerator<Target> {
  const header = { campaignId: batch.campaignId, content: file.content, repetition: '' };
  for await (const row of file.rows()) {
    const target = 'input' in row ? toTarget(row.line, row.input, () => lineRequestId(header, row.line)) : undefined;
    if (target === 'not placed') continue;
    if (target) yield target;
    else report(batch, counts, { line: row.line, status: 'invalid' });
  }
}

/** Reads a line of results, or of the placed file. @returns undefined if its ID isn't valid */
function toTarget(line: number, input: unknown, derivedId: () => string): Target | 'not placed' | undefined {
  if (typeof input !== 'object' || input === null) return undefined;
  const { status, code, contactId, requestId = derivedId() } = input as Record<string, unknown>;
  // If a proxy rejected the line, an earlier attempt may have placed its call.
  const isConfirmed = !(status === 'refused' && code === null);
  if (isConfirmed && typeof status === 'string' && !/^(placed|placed-before|cancelled|queued)$/.test(status)) return 'not placed';
  if (typeof contactId === 'string') return isIdentifier(contactId) ? { line, call: { contactId }, isConfirmed } : undefined;
  return typeof requestId === 'string' && isRequestId(requestId) ? { line, call: { requestId }, isConfirmed } : undefined;
}

function newCounts(): Counts {
  return { cancelled: 0, 'too-late': 0, 'not-found': 0, 'not-placed': 0, invalid: 0 };
}

function toAttended(batch: CancelBatch, counts: Counts) {
  // When the work ends, every call has been tried, even if no one could read the results.
  const reading = { stopsIfUnread: false, isComplete: () => true, repeatAdvice: () => 'run the same command again' };
  return { ...batch, ...reading, formatProgress: () => formatCounts(counts), resumeAdvice: () => batch.resumeAdvice };
}

function formatCounts(counts: Counts): string {
  const others = [
    counts['too-late'] > 0 && `${formatCount(counts['too-late'])} too late, because they were already dialed`,
    counts['not-found'] > 0 && `${formatCount(counts['not-found'])} not found`,
    counts['not-placed'] > 0 && `${formatCount(counts['not-placed'])} never placed`,
    counts.invalid > 0 && `${formatCount(counts.invalid)} invalid`,
  ].filter((text) => text !== false);
  return `Cancelled ${counted(counts.cancelled, 'call')}${others.length > 0 ? `; ${others.join(', ')}` : ''}.`;
}

function conclude({ output, campaignId }: CancelBatch, counts: Counts): void {
  const text = formatCounts(counts);
  if (counts['too-late'] > 0) throw new CallkeyError('conflict', text, { code: 'already-dialed' });
  if (counts.invalid > 0) throw new CallkeyError('usage', `${text} A line must have a requestId or a contactId.`, { code: 'invalid' });
  if (counts['not-found'] > 0) {
    const advice = counts.cancelled > 0 ? '' : ` Check that these calls were placed in the campaign ${campaignId}.`;
    throw new CallkeyError('notFound', text + advice, { code: 'call-not-found' });
  }
  output.note(text);
}
