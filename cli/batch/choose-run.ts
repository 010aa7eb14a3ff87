import { CallkeyError } from '../client/errors.ts';
import { counted, formatCount } from '../output.ts';
import type { Folders } from '../xdg.ts';
import { type CallFile, type CheckedFile, goodLines } from './call-file.ts';
import { FirstLines, markOf } from './line-numbers.ts';
import { callDigest, deleteRun, earlierLines, newRepetition, type Run, type RunHeader, readRuns, startRun } from './run-journal.ts';

/** What a command wants to place. */
export type RunRequest = Omit<RunHeader, 'version' | 'repetition' | 'startedAt'>;
/** An earlier run to continue, or the runs that a new one replaces. */
type RunChoice = { continued: Run } | { replaced: Run[] };

export function runRequest(server: string, profile: string, campaignId: string, file: CallFile, checked: CheckedFile): RunRequest {
  const { path, content, reading } = file;
  const { good, bad, ownRequestIds } = checked;
  return { server, profile, campaignId, path, content, reading, calls: good, skipped: bad.size, ownRequestIds };
}

/** @throws CallkeyError `conflict`, see decideRun */
export async function chooseRun(folders: Folders, request: RunRequest, file: CallFile, checked: CheckedFile, again: boolean): Promise<Run> {
  const choice = await decideRun(await readRuns(folders), request, file, checked, again);
  if ('continued' in choice) return choice.continued;
  const startedAt = new Date().toISOString();
  const run = await startRun(folders, { ...request, version: 1, repetition: again ? newRepetition() : '', startedAt });
  for (const replaced of choice.replaced) await deleteRun(replaced);
  return run;
}

/** @throws CallkeyError `conflict` where contacts might be called twice: see pickRun, and lines that this path had when it was placed last */
export async function decideRun(
  runs: readonly Run[],
  request: RunRequest,
  file: CallFile,
  checked: CheckedFile,
  again: boolean,
): Promise<RunChoice> {
  const choice = pickRun(runs, request, again);
  const before = 'continued' in choice || again ? undefined : placedBefore(runs, request);
  if (before) await refuseSameLines(before, file, checked);
  return choice;
}

/**
 * Continues the run of the same file in the same campaign, finished or not; with --again, only an unfinished one.
 *
 * @param runs newest first
 * @throws CallkeyError `conflict` where an earlier version of the file was placed in part: contacts might be called twice
 */
export function pickRun(runs: readonly Run[], request: RunRequest, again: boolean): RunChoice {
  const sameTarget = runs.filter((run) => isOfTarget(run, request));
  const sameFile = sameTarget.filter(({ header }) => header.content === request.content && isReadAlike(header, request));
  const continued = sameFile.find((run) => run.completedAt === null) ?? (again ? undefined : sameFile[0]);
  if (continued) return { continued };

  const replaced = sameTarget.filter((run) => isEarlierVersion(run, request));
  if (replaced[0] && !again) throw replaced[0].header.content === request.content ? readOtherwise(replaced[0]) : placedInPart(replaced[0]);
  return { replaced };
}

function isReadAlike(one: RunRequest, other: RunRequest): boolean {
  return JSON.stringify(one.reading) === JSON.stringify(other.reading);
}

function isEarlierVersion({ header, completedAt }: Run, request: RunRequest): boolean {
  if (header.ownRequestIds && request.ownRequestIds) return false;
  // Its lines have the same request ids, and would be other calls.
  if (header.content === request.content) return !isReadAlike(header, request);
  return completedAt === null && header.path !== null && header.path === request.path;
}

/** The run that placed what the path held last. Its lines tell an edited file from another one: a daily export may have the same name. */
function placedBefore(runs: readonly Run[], request: RunRequest): Run | undefined {
  const before = runs.find((run) => isOfTarget(run, request) && run.header.path !== null && run.header.path === request.path);
  return before && !(before.header.ownRequestIds && request.ownRequestIds) ? before : undefined;
}

async function refuseSameLines(before: Run, file: CallFile, { bad }: CheckedFile): Promise<void> {
  const lines = new FirstLines(before.header.calls);
  for await (const { line, call } of earlierLines(before)) {
    if (call !== undefined) lines.add(markOf(Buffer.from(call, 'hex')), line);
  }
  for await (const { line, call } of goodLines(file, bad)) {
    const earlier = lines.find(markOf(Buffer.from(callDigest(call), 'hex')));
    if (earlier !== undefined) throw placedAlready(before, line, earlier);
  }
}

function isOfTarget({ header }: Run, { server, campaignId }: RunRequest): boolean {
  return header.server === server && header.campaignId === campaignId;
}

function readOtherwise({ header }: Run): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${header.path ?? 'This input'} was placed with other --columns or another --country: placing it now could call those contacts twice. ` +
      'Nothing was sent. Give the same options as then; or add --again to place every line as it is read now.',
    { code: 'file-changed' },
  );
}

function placedAlready({ header, completedAt }: Run, line: number, earlier: number): CallkeyError {
  const was = line === earlier ? '' : `, where it was line ${earlier}`;
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since it was placed, at ${completedAt}, and line ${line} was in it then${was}: placing it now would call that contact twice. ` +
      'Nothing was sent. Put the lines that are not placed in a file of their own; or add --again to place every line of the file as it is now.',
    { code: 'file-changed' },
  );
}

function placedInPart({ header, placed }: Run): CallkeyError {
  const total = header.calls + header.skipped;
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since ${formatCount(placed.size)} of its ${counted(total, 'line')} ${placed.size === 1 ? 'was' : 'were'} placed: placing it now would call those contacts twice. ` +
      'Nothing was sent. Restore the file and run the same command again; or put the lines that are not placed in a file of their own; ' +
      'or add --again to give up the earlier run and place every line of the file as it is now.',
    { code: 'file-changed' },
  );
}
