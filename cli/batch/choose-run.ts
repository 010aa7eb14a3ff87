import { randomUUID } from 'node:crypto';
import { counted, formatCount } from '#contract/text/count.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Folders } from '../state/folders.ts';
import type { CallFile } from './call-file.ts';
import { type CheckedFile, goodLines } from './check-file.ts';
import { type Fingerprint, FirstLines, LineSet, toFingerprint } from './long-file.ts';
import { callDigest, cancelledLines, endRun, hasEnded, placedLines, type Run, type RunHeader, readRuns, startRun } from './run-journal.ts';

/** The file that a command is about to place, and how. */
export type RunRequest = Omit<RunHeader, 'version' | 'repetition' | 'startedAt'>;
/** Either an earlier run to continue, or the runs that a new run replaces, so that they're no longer resumed. */
type RunChoice = { continued: Run } | { replaced: Run[] };
/** @property resumed if set, only this run may be continued; otherwise, the file determines the run */
type RunOptions = { again: boolean; resumed?: Run };

type Target = Pick<RunHeader, 'server' | 'profile' | 'campaignId'>;

function toRequest(target: Target, { path, content, reading }: CallFile, { good, bad, ownRequestIds }: CheckedFile): RunRequest {
  return { ...target, path, content, reading, calls: good, skipped: bad.size, ownRequestIds };
}

/** Returns the run to continue, or starts a new one. @throws CallkeyError `conflict`: see chooseRun */
export async function openRun(folders: Folders, target: Target, file: CallFile, checked: CheckedFile, options: RunOptions): Promise<Run> {
  const choice = await chooseRun(await readRuns(folders), target, file, checked, options);
  if ('continued' in choice) return choice.continued;
  const repetition = options.again ? randomUUID() : '';
  const header = { ...toRequest(target, file, checked), version: 1 as const, repetition, startedAt: new Date().toISOString() };
  const run = await startRun(folders, header);
  for (const replaced of choice.replaced) if (!hasEnded(replaced)) endRun(replaced);
  return run;
}

/**
 * Chooses which run to continue or replace.
 *
 * @throws CallkeyError `conflict` if contacts might be called twice (see pickRun), or if an earlier run of the campaign has placed some of
 * the lines
 */
export async function chooseRun(
  runs: readonly Run[],
  target: Target,
  file: CallFile,
  checked: CheckedFile,
  { again, resumed }: RunOptions,
): Promise<RunChoice> {
  const request = toRequest(target, file, checked);
  const choice = pickRun(resumed ? runs.filter((run) => run.file === resumed.file) : runs, request, again);
  const continued = 'continued' in choice ? choice.continued : undefined;
  if (!again && !isRepetition(continued)) await rejectPlacedLines(runsToCompare(runs, request, continued), continued, file, checked);
  return choice;
}

/** How an earlier run's file is related to this one: `edited` means that the file at the same path has other content now. */
type Relation = 'same' | 'read differently' | 'edited' | 'other';
type State = 'stopped' | 'ended' | 'cancelled';
/** What a command does about an earlier run. `replace` ends it, so that it's no longer resumed. `refuse` depends on whether it has placed anything. */
type Action = 'continue' | 'refuse' | 'replace' | 'ignore';

/**
 * What a command does about an earlier run at the same server and in the same campaign, first without --again, then with it.
 *
 * If the same file is read differently, its lines get the same request IDs, but can mean different calls. The core remembers the calls of a
 * cancelled run: sending the same request IDs again would place nothing.
 */
const actions: Readonly<Record<Relation, Readonly<Record<State, readonly [Action, Action]>>>> = {
  same: { stopped: ['continue', 'continue'], ended: ['continue', 'ignore'], cancelled: ['refuse', 'ignore'] },
  'read differently': { stopped: ['refuse', 'replace'], ended: ['refuse', 'replace'], cancelled: ['ignore', 'ignore'] },
  edited: { stopped: ['refuse', 'replace'], ended: ['ignore', 'ignore'], cancelled: ['ignore', 'ignore'] },
  other: { stopped: ['ignore', 'ignore'], ended: ['ignore', 'ignore'], cancelled: ['ignore', 'ignore'] },
};

/**
 * Decides by the table above. A stopped run is continued rather than one that has ended, and either of them rather than refusing the file.
 *
 * @param runs newest first
 * @throws CallkeyError `conflict` if the file's run was cancelled, or if an earlier version of the file was placed, at least partly, because
 * contacts might be called twice
 */
export function pickRun(runs: readonly Run[], request: RunRequest, again: boolean): RunChoice {
  const sameTarget = runs.filter(({ header }) => header.server === request.server && header.campaignId === request.campaignId);
  const withAction = (action: Action) =>
    sameTarget.filter((run) => actions[toRelation(run.header, request)][toState(run)][again ? 1 : 0] === action);
  const toContinue = withAction('continue');
  const continued = toContinue.find((run) => !hasEnded(run)) ?? toContinue[0];
  if (continued) return { continued };
  const refused = withAction('refuse');
  const cancelled = refused.find(({ isCancelled }) => isCancelled);
  if (cancelled) throw cancelledError(cancelled);
  const placed = refused.find(hasPlaced);
  if (placed) throw placed.header.content === request.content ? differentOptionsError(placed) : partiallyPlacedError(placed);
  return { replaced: [...refused, ...withAction('replace')] };
}

function toRelation(header: RunHeader, request: RunRequest): Relation {
  if (header.content === request.content && isReadTheSame(header, request)) return 'same';
  // The core recognizes the lines by their own request IDs.
  if (header.ownRequestIds && request.ownRequestIds) return 'other';
  if (header.content === request.content) return 'read differently';
  return header.path !== null && header.path === request.path ? 'edited' : 'other';
}

function toState(run: Run): State {
  if (run.isCancelled) return 'cancelled';
  return hasEnded(run) ? 'ended' : 'stopped';
}

function isReadTheSame(a: RunRequest, b: RunRequest): boolean {
  return JSON.stringify(a.reading) === JSON.stringify(b.reading);
}

/** Whether a run has placed anything, or may have. If not, it can't conflict with another run. */
function hasPlaced({ completedAt, placed, unsettled }: Run): boolean {
  return completedAt !== null || placed.size > 0 || unsettled.size > 0;
}

/** Whether a run was started with --again, to place lines again. */
function isRepetition(run: Run | undefined): boolean {
  return run !== undefined && run.header.repetition !== '';
}

/** Returns the runs to compare with. File names don't matter: a file may have been copied, renamed, extended or re-encoded. */
function runsToCompare(runs: readonly Run[], request: RunRequest, continued: Run | undefined): Run[] {
  // All of its lines are already placed, so there's nothing to compare.
  if (continued && continued.completedAt !== null) return [];
  // The server's address doesn't matter either, because one core can have several.
  const otherRuns = runs.filter((run) => run !== continued && run.header.campaignId === request.campaignId && hasPlaced(run));
  return otherRuns.filter((run) => !isRecognized(run, request));
}

/** Whether the core recognizes lines that were already placed by their request IDs. */
function isRecognized(run: Run, request: RunRequest): boolean {
  const { header } = run;
  if (header.ownRequestIds && request.ownRequestIds) return true;
  return header.content === request.content && isReadTheSame(header, request) && !isRepetition(run);
}

/** The lines that earlier runs have placed: how many, and where the first few were. `isCertain`: all of them got a response. */
type PlacedLines = { count: number; first: { line: number; run: Run; earlier: number }[]; isCertain: boolean };

const maxNamed = 5;

/** Keeps only this file's fingerprints in memory, and reads the journals line by line, since they can be many times longer. */
async function rejectPlacedLines(runs: readonly Run[], continued: Run | undefined, file: CallFile, { bad }: CheckedFile): Promise<void> {
  if (runs.length === 0) return;
  const lines = new FirstLines(file.lines);
  for await (const { line, call } of goodLines(file, bad, continued?.placed)) lines.add(digestFingerprint(callDigest(call)), line);
  const placedLines = new LineSet();
  const first: PlacedLines['first'] = [];
  let isCertain = true;
  for (const run of runs) {
    const cancelled = await cancelledLines(run, 'not-placed');
    for await (const { line: earlier, call } of linesToCompare(run)) {
      const line = lines.find(digestFingerprint(call));
      if (line === undefined || placedLines.has(line) || cancelled.has(earlier)) continue;
      placedLines.add(line);
      if (run.unsettled.has(earlier)) isCertain = false;
      first.push({ line, run, earlier });
      if (first.length > maxNamed) first.sort((a, b) => a.line - b.line).pop();
    }
  }
  if (placedLines.size === 0) return;
  throw alreadyPlacedError(file.name, { count: placedLines.size, first: first.sort((a, b) => a.line - b.line), isCertain });
}

function digestFingerprint(digest: string): Fingerprint {
  return toFingerprint(Buffer.from(digest, 'hex'));
}

/** Returns the lines that a run has placed, or may have. */
async function* linesToCompare(run: Run): AsyncGenerator<{ line: number; call: string }> {
  yield* placedLines(run);
  for (const [line, { call }] of run.unsettled) yield { line, call };
}

/** Returns the error for placing a cancelled run again: see `actions`. */
export function cancelledError({ header }: Run): CallkeyError {
  return new CallkeyError(
    'conflict',
    `The run that placed ${header.path ?? 'this input'} was cancelled. To place every line again, add --again.`,
    { code: 'run-cancelled' },
  );
}

function differentOptionsError({ header }: Run): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${header.path ?? 'This input'} was already placed with different --columns, --country or --zone options, so placing it now could call the same contacts twice. ` +
      'Nothing was sent. Use the same options as before, or add --again to place every line with the new options.',
    { code: 'file-changed' },
  );
}

function alreadyPlacedError(name: string, { count, first, isCertain }: PlacedLines): CallkeyError {
  const named = first.map(({ line, run, earlier }) => {
    const noResponse = run.unsettled.has(earlier) ? ', no response' : '';
    return `line ${line} (line ${earlier} of ${run.header.path ?? 'standard input'}, ${run.header.startedAt}${noResponse})`;
  });
  const more = count > first.length ? `, and ${formatCount(count - first.length)} more` : '';
  const contacts = count === 1 ? 'that contact' : 'those contacts';
  const verb = count === 1 ? 'was' : 'were';
  const [were, would] = isCertain ? [`${verb} placed before`, 'would'] : [`${verb}, or may have been, placed before`, 'could'];
  return new CallkeyError(
    'conflict',
    `${name} has ${counted(count, 'line')} that ${were}: ${named.join(', ')}${more}. Placing ${count === 1 ? 'it' : 'them'} again ${would} call ${contacts} twice. ` +
      'Nothing was sent. Put the other lines in a separate file, or add --again to place every line in the file.',
    { code: 'file-changed' },
  );
}

function partiallyPlacedError({ header, placed, unsettled }: Run): CallkeyError {
  const total = header.calls + header.skipped;
  const count = placed.size + unsettled.size;
  const [what, would] = unsettled.size > 0 ? ['placed or sent without a response', 'could'] : ['placed', 'would'];
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since ${formatCount(count)} of its ${counted(total, 'line')} ${count === 1 ? 'was' : 'were'} ${what}, so placing it now ${would} call those contacts twice. ` +
      'Nothing was sent. Restore the file and run the same command again, put the remaining lines in a separate file, ' +
      'or add --again to abandon the earlier run and place every line in the file.',
    { code: 'file-changed' },
  );
}
