import { CallkeyError } from '../client/errors.ts';
import { formatCount } from '../output.ts';
import type { Folders } from '../xdg.ts';
import type { CallFile, CheckedFile } from './call-file.ts';
import { deleteRun, newRepetition, type Run, type RunHeader, readRuns, startRun } from './run-journal.ts';

/** What a command wants to place. */
export type RunRequest = Omit<RunHeader, 'version' | 'repetition' | 'startedAt'>;
/** An earlier run to continue, or the runs that a new one replaces. */
type RunChoice = { continued: Run } | { replaced: Run[] };

export function runRequest(server: string, profile: string, campaignId: string, file: CallFile, checked: CheckedFile): RunRequest {
  const { path, content, reading } = file;
  const { good, bad, ownRequestIds } = checked;
  return { server, profile, campaignId, path, content, reading, calls: good, skipped: bad.size, ownRequestIds };
}

/** @throws CallkeyError `conflict`, see pickRun */
export async function chooseRun(folders: Folders, request: RunRequest, again: boolean): Promise<Run> {
  const choice = pickRun(await readRuns(folders), request, again);
  if ('continued' in choice) return choice.continued;
  const startedAt = new Date().toISOString();
  const run = await startRun(folders, { ...request, version: 1, repetition: again ? newRepetition() : '', startedAt });
  for (const replaced of choice.replaced) await deleteRun(replaced);
  return run;
}

/**
 * Continues the run of the same file in the same campaign, finished or not; with --again, only an unfinished one.
 *
 * @param runs newest first
 * @throws CallkeyError `conflict` where an earlier version of the file was placed in part: contacts might be called twice
 */
export function pickRun(runs: readonly Run[], request: RunRequest, again: boolean): RunChoice {
  const sameTarget = runs.filter(({ header }) => header.server === request.server && header.campaignId === request.campaignId);
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
  if (header.path === null || header.path !== request.path) return false;
  return completedAt === null || header.skipped > 0;
}

function readOtherwise({ header }: Run): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${header.path ?? 'This input'} was placed with other --columns or another --country: placing it now could call those contacts twice. ` +
      'Nothing was sent. Give the same options as then; or add --again to place every line as it is read now.',
    { code: 'file-changed' },
  );
}

function placedInPart({ header, placed, completedAt }: Run): CallkeyError {
  const total = header.calls + header.skipped;
  const count = completedAt === null ? placed.size : header.calls;
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since ${formatCount(count)} of its ${formatCount(total)} lines were placed: placing it now would call those contacts twice. ` +
      'Nothing was sent. Restore the file and run the same command again; or put the lines that are not placed in a file of their own; ' +
      'or add --again to give up the earlier run and place every line of the file as it is now.',
    { code: 'file-changed' },
  );
}
