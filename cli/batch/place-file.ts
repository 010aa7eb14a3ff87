import { counted, formatCount } from '#contract/text/count.ts';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Call, PlacedCall } from '../client/types.ts';
import type { Context } from '../connection/context.ts';
import { rememberLastCall } from '../state/single-calls.ts';
import { paceWords, shellCommand } from '../terminal/help.ts';
import type { Output } from '../terminal/output.ts';
import { attend, type Batch, maxNotes, Tally, withBatch } from './batch.ts';
import { type CallFile, openCallFile } from './call-file.ts';
import { type CallLine, type CheckedFile, checkFile, goodLines } from './check-file.ts';
import { cancelledError, chooseRun, openRun } from './choose-run.ts';
import { LineSet } from './long-file.ts';
import { type Pace, runPool } from './pool.ts';
import type { Reading } from './reading.ts';
import {
  type CancelledLine,
  callDigest,
  isCancelled,
  lineRequestId,
  openCancelJournal,
  openJournal,
  type PlacedLine,
  placedLines,
  type Run,
  type RunJournal,
  readRuns,
} from './run-journal.ts';

type FileOptions = {
  pace: Pace;
  skipInvalid: boolean;
  again: boolean;
  dryRun: boolean;
  reading: Reading;
  /** The run that `call resume` continues. The file must not have changed since. */
  resumed?: Run;
};

/** Places one call for each line of a file, even if the command is stopped and run again. */
export async function placeFile(context: Context, campaignId: string, from: string, options: FileOptions): Promise<void> {
  const { output, streams, folders } = context;
  // The journal already records the server and the profile.
  const resume = shellCommand({ state: context.options.state }, 'call', 'resume', ...paceWords(options.pace));
  if (from === '-' && streams.stdin.isTTY) output.note('Reading calls from the terminal. Press Ctrl-D to finish.');
  const file = await openCallFile({ stdin: streams.stdin, folders }, from, options.reading, options.dryRun ? 'check' : 'place');
  try {
    if (options.resumed && options.resumed.header.content !== file.content) {
      const message = `${file.name} has changed since its run was stopped. Nothing was sent. Restore the file, then run ${resume} again.`;
      throw new CallkeyError('conflict', message, { code: 'file-changed' });
    }
    if (!options.resumed) for (const note of file.notes) output.note(note);
    if (options.dryRun) await showPlacing(context, campaignId, file, options);
    // Connects before the check, which may take a while, so that a missing key is reported immediately.
    else await withBatch(context, options.pace, (batch) => checkAndPlace(batch, campaignId, file, options, resume));
  } finally {
    await file.close();
  }
}

async function checkAndPlace(batch: Batch, campaignId: string, file: CallFile, options: FileOptions, resume: string): Promise<void> {
  const { server, settings, folders, output } = batch;
  // The command that started the run has already warned about its lines.
  const heard = options.resumed ? { ...output, note: () => undefined } : output;
  const checked = await checkFile({ ...batch, output: heard }, file, options.skipInvalid);
  const { good } = checked;
  const run = await openRun(folders, { server, profile: settings.profileName, campaignId }, file, checked, options);
  if (run.completedAt !== null)
    output.note(`${file.name} was already placed in full at ${run.completedAt}. Nothing was sent. To place every line again, add --again.`);
  else {
    if (run.placed.size > 0) output.note(`Resuming: ${formatCount(run.placed.size)} of ${counted(good, 'line')} already placed.`);
    await rememberLastCall(batch, server, campaignId, { fromFile: true });
  }
  const counts = { tally: new Tally<'refused' | 'skipped'>(batch), skipped: new Map(), isUnclear: false };
  await placeRun({ batch, run, file, checked, again: options.again, resume, ...counts });
}

/** A run, everything needed to place it, and what became of the lines that weren't placed. */
type Placing = {
  batch: Batch;
  run: Run;
  file: CallFile;
  checked: CheckedFile;
  /** Whether the command has --again. */
  again: boolean;
  /** The command that resumes the run. */
  resume: string;
  tally: Tally<'refused' | 'skipped'>;
  /** The number of skipped lines by problem code. */
  skipped: Map<string, number>;
  firstRefusal?: CallkeyError;
  /** Whether a proxy rejected a line that an earlier attempt may have placed. */
  isUnclear: boolean;
};

/** Reports the placed lines, then places the others. @throws CallkeyError if lines were rejected or it had to stop; Interrupted */
async function placeRun(placing: Placing): Promise<void> {
  const { batch, run, checked, tally } = placing;
  const attended = {
    ...{ total: checked.good, done: run.placed.size, inFlight: 'calls' as const },
    formatProgress: () => formatProgress(placing),
    resumeAdvice: () => resumeAdvice(placing),
    repeatAdvice: () => repeatAdvice(placing),
    isComplete: () => run.completedAt !== null || areAllAnswered(placing),
    // The user must see every call that's placed.
    stopsIfUnread: true,
  };
  await attend(batch, attended, async () => {
    try {
      await reportEarlier(placing);
      if (run.completedAt === null) await placeOthers(placing);
    } finally {
      batch.progress.clear();
      reportSkipped(placing);
    }
  });
  const { firstRefusal: first } = placing;
  if (first) {
    const count = counted(tally.count('refused'), 'line');
    const message = `The server rejected ${count} (see above). ${formatProgress(placing)}`;
    throw new CallkeyError(first.kind, message, { code: first.code, cause: first });
  }
  if (run.completedAt === null && run.placed.size === checked.good) batch.output.note(formatProgress(placing));
}

async function placeOthers(placing: Placing): Promise<void> {
  const { batch, run, file, checked } = placing;
  const journal = openJournal(run);
  const watch = watchCancellation(run, batch.stop);
  try {
    const lines = goodLines(file, checked.bad, run.placed);
    await runPool(lines, batch, (line) => placeLine(placing, journal, watch, line)).catch((error: unknown) => {
      if (!watch.look()) throw error;
    });
    if (watch.look()) {
      await cancelLate(placing, watch.late);
      throw cancelledError(run);
    }
    const now = new Date().toISOString();
    if (run.placed.size === checked.good) journal.add({ completedAt: now });
    else if (areAllAnswered(placing)) journal.add({ endedAt: now });
  } finally {
    watch.close();
    journal.close();
  }
}

function areAllAnswered({ run, checked, isUnclear, tally }: Placing): boolean {
  return !isUnclear && run.placed.size + tally.count('refused') + tally.count('skipped') === checked.good;
}

/** How often a command checks whether another one has cancelled its run, in milliseconds. */
const cancellationCheckInterval = 250;

type Watch = ReturnType<typeof watchCancellation>;

/** Notices when another command cancels the run. Also looks by itself, because a request may be waiting for its next attempt. */
function watchCancellation(run: Run, stop: AbortController) {
  /** The request IDs of the lines that another command may cancel too early to find their calls. */
  const late = new Map<number, string>();
  const answered = new Set<number>();
  /** Looks now. Once the run is cancelled, nothing more is sent. */
  const look = (): boolean => {
    run.isCancelled ||= isCancelled(run.file);
    if (run.isCancelled) stop.abort();
    // A command that starts to cancel from now on finds these calls in the journal, and the core has them.
    else for (const line of answered) late.delete(line);
    answered.clear();
    return run.isCancelled;
  };
  const checks = setInterval(look, cancellationCheckInterval);
  return {
    late,
    look,
    sending: (line: number, requestId: string) => late.set(line, requestId),
    /** @param mayBePlaced whether the core may have the call */
    answered: (line: number, mayBePlaced: boolean) => (mayBePlaced ? answered.add(line) : late.delete(line)),
    close: () => clearInterval(checks),
  };
}

/** What became of a line. */
type Fate =
  | { fate: 'placed'; call: PlacedCall }
  /** The core rejected this line. */
  | { fate: 'refused'; error: CallkeyError }
  /** The person must not be called. */
  | { fate: 'skipped'; error: CallkeyError }
  /** A proxy rejected the line. That says nothing about an earlier attempt, which may have placed the call. */
  | { fate: 'unknown'; error: CallkeyError }
  /** A refused key, an unreachable core or a bug stops the run. `word` goes to the journal if the call certainly wasn't placed. */
  | { fate: 'stop'; error: unknown; word?: 'refused' | 'unreached' };

async function send(client: CallkeyClient, campaignId: string, call: Call): Promise<Fate> {
  try {
    return { fate: 'placed', call: await client.place(campaignId, call) };
  } catch (error) {
    if (!(error instanceof CallkeyError)) return { fate: 'stop', error };
    const { kind, code, status = 500, isUnsent, isRepeat } = error;
    if (kind === 'notCallable') return { fate: 'skipped', error };
    if (kind === 'usage' || kind === 'conflict') return { fate: code === undefined ? 'unknown' : 'refused', error };
    if (isUnsent) return { fate: 'stop', error, word: 'unreached' };
    return { fate: 'stop', error, ...(!isRepeat && code !== undefined && status < 500 ? { word: 'refused' as const } : {}) };
  }
}

async function placeLine(placing: Placing, journal: RunJournal, watch: Watch, { line, call }: CallLine): Promise<void> {
  const { run, batch } = placing;
  const { client, output, progress } = batch;
  const requestId = call.requestId ?? lineRequestId(run.header, line);
  const ownId = call.requestId === undefined ? {} : { requestId: call.requestId };
  const digest = callDigest(call);
  // A command that cancels the run either finds this line in the journal, or this look finds that command.
  journal.add({ sent: line, ...ownId, call: digest });
  if (watch.look()) {
    if (!run.unsettled.has(line)) journal.add({ unreached: line });
    return;
  }
  watch.sending(line, requestId);
  const fate = await send(client, run.header.campaignId, { ...call, requestId });
  watch.answered(line, fate.fate !== 'refused' && fate.fate !== 'skipped');
  switch (fate.fate) {
    case 'placed': {
      const { contactId, placedAt, heldUntil, replayed } = fate.call;
      const placed = { line, ...ownId, contactId, placedAt, heldUntil, call: digest };
      run.placed.add(line);
      reportPlaced(output, placed, requestId, replayed);
      progress.step();
      journal.add(placed);
      return;
    }
    case 'skipped':
      journal.add({ refused: line });
      addSkipped(placing, line, requestId, fate.error);
      return;
    case 'refused':
      journal.add({ refused: line });
      addRefused(placing, line, requestId, fate.error);
      return;
    case 'unknown':
      placing.isUnclear = true;
      addRefused(placing, line, requestId, fate.error);
      return;
    case 'stop':
      // An earlier command may have sent this line, too.
      if (fate.word !== undefined && !run.unsettled.has(line) && !watch.look())
        journal.add(fate.word === 'refused' ? { refused: line } : { unreached: line });
      throw fate.error;
  }
}

function addRefused(placing: Placing, line: number, requestId: string, error: CallkeyError): void {
  placing.firstRefusal ??= error;
  const { code = null, message: detail } = error;
  placing.tally.add({ line, status: 'refused', requestId, code, detail });
  placing.tally.note(`line ${line}: rejected: ${detail}`);
}

/** Skipped lines don't count as placed or rejected, because the run did what it should. */
function addSkipped(
  { batch, tally, skipped }: Placing,
  line: number,
  requestId: string,
  { code = '', message: detail }: CallkeyError,
): void {
  skipped.set(code, (skipped.get(code) ?? 0) + 1);
  batch.progress.step();
  if (tally.add({ line, status: 'skipped', requestId, code, detail }) <= maxNotes) tally.note(`line ${line}: skipped: ${detail}`);
}

function reportSkipped(placing: Placing): void {
  const { batch, skipped, tally } = placing;
  if (skipped.size === 0) return;
  const reasons = [...skipped].map(([code, count]) => `${formatCount(count)} ${code}`).join(', ');
  const lines = counted(tally.count('skipped'), 'line');
  batch.output.note(`Skipped ${lines}: ${reasons}. To try them again, ${repeatAdvice(placing)}.`);
}

/** Cancels the calls sent before this command noticed the cancellation. The command that cancels may have ended before they arrived. */
async function cancelLate({ batch, run }: Placing, late: ReadonlyMap<number, string>): Promise<void> {
  const cancelled: CancelledLine[] = [];
  let failure: CallkeyError | undefined;
  for (const [line, requestId] of late) {
    try {
      const { contactId, cancelledAt } = await batch.client.cancel(run.header.campaignId, { requestId });
      cancelled.push({ line, status: 'cancelled', requestId, contactId, cancelledAt });
    } catch (error) {
      if (!(error instanceof CallkeyError)) throw error;
      if (error.code === 'call-not-found') continue;
      const message = `The run was cancelled while line ${line} was being sent, and callkey couldn't cancel its call: ${error.message} Run call cancel again.`;
      failure ??= new CallkeyError(error.kind, message, { code: error.code, cause: error });
    }
  }
  // Only now, because the calls are cancelled even if the journal can't be written.
  const journal = await openCancelJournal(run);
  for (const result of cancelled) journal.add(result);
  journal.close();
  if (failure) throw failure;
}

async function reportEarlier({ batch: { output, stop }, run }: Placing): Promise<void> {
  if (!output.forPrograms || (run.completedAt === null && run.placed.size === 0)) return;
  for await (const placed of placedLines(run)) {
    if (stop.signal.aborted) return;
    reportPlaced(output, placed, placed.requestId ?? lineRequestId(run.header, placed.line), true);
  }
}

function reportPlaced(output: Output, { line, contactId, placedAt, heldUntil }: PlacedLine, requestId: string, replayed: boolean): void {
  if (output.forPrograms) output.result({ line, status: 'placed', requestId, contactId, placedAt, heldUntil, replayed });
}

function formatProgress({ run, checked }: Placing): string {
  const placed = run.completedAt === null ? run.placed.size : checked.good;
  return `${formatCount(placed)} of ${counted(checked.good, 'line')} placed.`;
}

function resumeAdvice({ run, resume }: Placing): string {
  if (run.isCancelled) return '';
  return run.header.path === null ? 'To continue, pipe in the same input again.' : `To continue, run ${resume}.`;
}

/** Repeating a command that has --again would place every line again. */
function repeatAdvice({ run, again }: Placing): string {
  return `run the same command ${again || run.header.repetition !== '' ? 'without --again' : 'again'}`;
}

/** The number of calls that --dry-run shows on a terminal. A program gets all of them. */
const maxShown = 10;

/** Reports what the command would place and skip, based only on the file and the journals. Doesn't send anything or read a key. */
async function showPlacing(context: Context, campaignId: string, file: CallFile, options: FileOptions): Promise<void> {
  const { output } = context;
  const checked = await checkFile(context, file, options.skipInvalid);
  const { server, profileName } = await context.settings();
  const target = { server: server ?? '', profile: profileName, campaignId };
  // Throws the same error as placing the file would.
  const choice = await chooseRun(server === null ? [] : await readRuns(context.folders), target, file, checked, options);
  const continued = 'continued' in choice ? choice.continued : undefined;
  const placed = new LineSet();
  if (continued) for await (const { line } of placedLines(continued)) placed.add(line);
  const scope = continued?.header ?? { campaignId, content: file.content, repetition: '' };
  let shown = 0;
  for await (const { line, call } of goodLines(file, checked.bad)) {
    // With --again, request IDs are chosen only when the file is placed.
    const requestId = call.requestId ?? (options.again && !continued ? undefined : lineRequestId(scope, line));
    if (placed.has(line)) {
      if (output.forPrograms) output.result({ line, status: 'placed-before', requestId });
    } else if (output.forPrograms) output.result({ line, status: 'would-place', ...call, requestId });
    else if (shown++ < maxShown) {
      const { phone, name } = call.contact;
      output.note(`line ${line}: would call ${phone}${name === undefined ? '' : ` (${name})`}`);
    }
    if (output.lost.aborted) return;
  }
  if (shown > maxShown) output.note(`… and ${formatCount(shown - maxShown)} more. Add --json to see them all.`);
  const before = placed.size > 0 ? ` Skipped because already placed: ${formatCount(placed.size)}.` : '';
  output.note(
    `Would place ${formatCount(checked.good - placed.size)} of ${counted(checked.good + checked.bad.size, 'line')} in ${file.name}.${before} Nothing was sent. ` +
      'Only the server knows the do-not-call list and calling hours, so some of these lines may still be skipped.',
  );
}
