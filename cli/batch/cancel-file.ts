import { isRequestId } from '#contract/calls/calls.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { isIdentifier } from '#contract/text/text.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { CallReference } from '../client/types.ts';
import { type Context, contextOfRun } from '../connection/context.ts';
import { paceWords, shellCommand } from '../terminal/help.ts';
import { attend, type Batch, maxNotes, Tally, withBatch } from './batch.ts';
import { type CallFile, openCallFile } from './call-file.ts';
import { LineSet } from './long-file.ts';
import { type Pace, runPool } from './pool.ts';
import type { Reading } from './reading.ts';
import {
  type CancelledLine,
  hasEnded,
  type Journal,
  lineRequestId,
  openCancelJournal,
  placedLines,
  type Run,
  readCancelledLines,
  readRun,
  readRuns,
  runName,
} from './run-journal.ts';

/** A call to cancel. If it may not exist, for example because the response to placing it was lost, `isConfirmed` is false. */
type Target = { line: number; call: CallReference; isConfirmed: boolean };

type Status = CancelledLine['status'] | 'not-found' | 'invalid';
const reasons: Readonly<Record<Exclude<Status, 'cancelled'>, string>> = {
  'too-late': 'too late: the call was already dialed',
  'not-found': "not found: this call isn't in the campaign",
  'not-placed': 'never placed',
  invalid: 'no requestId or contactId',
};

/** The calls of one campaign that are being cancelled. */
type Cancelling = { batch: Batch; campaignId: string; tally: Tally<Status> };

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
export async function cancelRun(context: Context, run: Run, pace: Pace): Promise<void> {
  const again = shellCommand({ state: context.options.state }, 'call', 'cancel', '--run', runName(run), ...paceWords(pace));
  const total = run.completedAt === null ? run.placed.size + run.unsettled.size : run.header.calls;
  await cancel(contextOfRun(context, run.header), run.header.campaignId, pace, total, again, async (cancelling) => {
    const { batch } = cancelling;
    const { signal } = batch.stop;
    const journal = await openTolerantJournal(cancelling, run);
    const done = new LineSet();
    try {
      for await (const earlier of readCancelledLines(run)) {
        // Calls that hadn't arrived are tried again.
        if (earlier.status === 'not-placed') continue;
        done.add(earlier.line);
        report(cancelling, earlier);
      }
      for (const [index, delay] of delays.entries()) {
        await batch.timing.wait(delay, signal);
        const isLast = run.completedAt !== null || index === delays.length - 1;
        const missing = await cancelTargets(cancelling, runTargets(run, done), { journal, done, isLast });
        // The second attempt finds the calls that a command that is still placing this run has sent in the meantime.
        if (isLast || (index > 0 && missing === 0) || signal.aborted) return;
        if (missing > 0) batch.progress.waiting(`${counted(missing, 'call')} may still arrive`);
      }
    } finally {
      journal.close();
    }
  });
}

/** Cancels the calls in a file: the results of `call place`, or the placed file. Safe to repeat. @throws as cancelRun does */
export async function cancelFile(context: Context, campaignId: string, from: string, pace: Pace, reading: Reading): Promise<void> {
  const file = await openCallFile({ stdin: context.streams.stdin, folders: context.folders }, from, reading, 'cancel');
  try {
    for (const note of file.notes) context.output.note(note);
    const pairs = Object.entries(reading.columns).map(([column, header]) => `${column}=${header}`);
    const columns = pairs.length > 0 ? ['--columns', pairs.join()] : [];
    const again = shellCommand(context.options, 'call', 'cancel', campaignId, '--from', from, ...columns, ...paceWords(pace));
    await cancel(context, campaignId, pace, file.lines, again, async (cancelling) => {
      await cancelTargets(cancelling, fileTargets(cancelling, file), { done: new LineSet(), isLast: true });
    });
  } finally {
    await file.close();
  }
}

async function cancel(
  context: Context,
  campaignId: string,
  pace: Pace,
  total: number,
  again: string,
  work: (cancelling: Cancelling) => Promise<void>,
): Promise<void> {
  await withBatch(context, pace, async (batch) => {
    const cancelling: Cancelling = { batch, campaignId, tally: new Tally(batch) };
    const attended = {
      ...{ total, done: 0, inFlight: 'requests' as const },
      formatProgress: () => formatCounts(cancelling.tally),
      resumeAdvice: () => `To continue, run ${again}.`,
      repeatAdvice: () => 'run the same command again',
      // When the work ends, every call has been tried, even if no one could read the results.
      isComplete: () => true,
      stopsIfUnread: false,
    };
    await attend(batch, attended, () => work(cancelling));
    conclude(cancelling);
  });
}

/** Opens a journal. If it can't be written, cancelling continues without it, because cancelling is urgent and can be repeated. */
async function openTolerantJournal({ tally }: Cancelling, run: Run): Promise<Journal<CancelledLine>> {
  let journal: Journal<CancelledLine> | undefined;
  const giveUp = (error: unknown) => {
    if (!(error instanceof CallkeyError)) throw error;
    journal?.close();
    journal = undefined;
    tally.note(`${error.message} callkey will still cancel the calls, but may not be able to record that, so don't resume this run.`);
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

type Pass = { journal?: Journal<CancelledLine>; done: LineSet; isLast: boolean };

/** @returns the number of calls that don't exist, but that may still arrive */
async function cancelTargets(cancelling: Cancelling, targets: AsyncIterable<Target>, pass: Pass): Promise<number> {
  const { batch, campaignId } = cancelling;
  let missing = 0;
  await runPool(targets, batch, async ({ line, call, isConfirmed }) => {
    try {
      const { requestId, contactId, cancelledAt } = await batch.client.cancel(campaignId, call);
      settle(cancelling, pass, { line, status: 'cancelled', requestId, contactId, cancelledAt });
    } catch (error) {
      if (!(error instanceof CallkeyError)) throw error;
      // A proxy's response has no code, and says nothing about the call.
      if (error.code === 'already-dialed') settle(cancelling, pass, { line, status: 'too-late', ...call, detail: error.message });
      else if (error.code !== 'call-not-found') throw error;
      else if (isConfirmed) {
        pass.done.add(line);
        report(cancelling, { line, status: 'not-found', ...call });
      } else if (pass.isLast) settle(cancelling, pass, { line, status: 'not-placed', ...call });
      else missing++;
    }
  });
  return missing;
}

function settle(cancelling: Cancelling, { journal, done }: Pass, result: CancelledLine): void {
  done.add(result.line);
  report(cancelling, result);
  journal?.add(result);
}

function report({ batch, tally }: Cancelling, result: { line: number; status: Status }): void {
  const { line, status } = result;
  const count = tally.add(result);
  if (!batch.output.forPrograms && status !== 'cancelled' && count <= maxNotes)
    tally.note(`line ${line}: ${reasons[status]}${count === maxNotes ? '. To see more of these lines, add --json.' : ''}`);
  batch.progress.step();
}

async function* runTargets(run: Run, done: LineSet): AsyncGenerator<Target> {
  // Read first, so that a line whose response arrives in between is among these or among the placed ones.
  const { unsettled } = (run.completedAt === null && (await readRun(run.file))) || run;
  const placed = new LineSet();
  for await (const { line, contactId } of placedLines(run)) {
    placed.add(line);
    if (!done.has(line)) yield { line, call: { contactId }, isConfirmed: true };
  }
  for (const [line, { requestId }] of unsettled)
    if (!placed.has(line) && !done.has(line)) yield { line, call: { requestId }, isConfirmed: false };
}

async function* fileTargets(cancelling: Cancelling, file: CallFile): AsyncGenerator<Target> {
  const scope = { campaignId: cancelling.campaignId, content: file.content, repetition: '' };
  // Cancelling must also work if the journals can't be read.
  const placed = await placedHere(cancelling, file).catch(() => undefined);
  for await (const row of file.rows()) {
    const target = 'input' in row ? toTarget(row.line, row.input, () => lineRequestId(scope, row.line)) : undefined;
    if (target === 'not placed') continue;
    if (target) yield placed?.has(row.line) === false ? { ...target, isConfirmed: false } : target;
    else report(cancelling, { line: row.line, status: 'invalid' });
  }
}

/**
 * Returns the lines of a file that were placed from this machine. The core doesn't have the calls of its other lines, which were invalid,
 * rejected or skipped, but that doesn't mean that the campaign is wrong.
 *
 * @returns undefined if this machine hasn't placed the file to its end
 */
async function placedHere({ batch, campaignId }: Cancelling, { content }: CallFile): Promise<LineSet | undefined> {
  const runs = (await readRuns(batch.folders)).filter(
    ({ header }) => header.server === batch.server && header.campaignId === campaignId && header.content === content,
  );
  if (!runs.some(hasEnded)) return undefined;
  const placed = new LineSet();
  for (const run of runs) for await (const { line } of placedLines(run)) placed.add(line);
  return placed;
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

function formatCounts(tally: Tally<Status>): string {
  const others = [
    ['too-late', 'too late, because they were already dialed'] as const,
    ['not-found', 'not found'] as const,
    ['not-placed', 'never placed'] as const,
    ['invalid', 'invalid'] as const,
  ].flatMap(([status, text]) => (tally.count(status) > 0 ? [`${formatCount(tally.count(status))} ${text}`] : []));
  return `Cancelled ${counted(tally.count('cancelled'), 'call')}${others.length > 0 ? `; ${others.join(', ')}` : ''}.`;
}

function conclude({ batch, campaignId, tally }: Cancelling): void {
  const text = formatCounts(tally);
  if (tally.count('too-late') > 0) throw new CallkeyError('conflict', text, { code: 'already-dialed' });
  if (tally.count('invalid') > 0) throw usageError(`${text} A line must have a requestId or a contactId.`, { code: 'invalid' });
  if (tally.count('not-found') > 0) {
    const advice = tally.count('cancelled') > 0 ? '' : ` Check that these calls were placed in the campaign ${campaignId}.`;
    throw new CallkeyError('notFound', text + advice, { code: 'call-not-found' });
  }
  batch.output.note(text);
}
