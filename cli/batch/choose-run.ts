import { CallkeyError } from '../client/errors.ts';
import { formatCount } from '../output.ts';
import type { Folders } from '../xdg.ts';
import { deleteRun, newRepetition, type Run, type RunHeader, readRuns, startRun } from './run-journal.ts';

/** What a command wants to place. */
export type RunRequest = Omit<RunHeader, 'version' | 'repetition' | 'startedAt'>;
/** An earlier run to continue, or the runs that a new one replaces. */
type RunChoice = { continued: Run } | { replaced: Run[] };

/** @throws CallkeyError `conflict`, see pickRun */
export async function chooseRun(folders: Folders, request: RunRequest, again: boolean): Promise<Run> {
  const choice = pickRun(await readRuns(folders), request, again);
  if ('continued' in choice) return choice.continued;
  for (const run of choice.replaced) await deleteRun(run);
  return startRun(folders, {
    ...request,
    version: 1,
    repetition: again ? newRepetition() : '',
    startedAt: new Date().toISOString(),
  });
}

/**
 * Continues the run of the same file in the same campaign, finished or not; with --again, only an unfinished one.
 *
 * @param runs newest first
 * @throws CallkeyError `conflict` where an earlier version of the file was placed in part: contacts might be called twice
 */
export function pickRun(runs: readonly Run[], request: RunRequest, again: boolean): RunChoice {
  const sameTarget = runs.filter(({ header }) => header.server === request.server && header.campaignId === request.campaignId);
  const sameFile = sameTarget.filter(({ header }) => header.content === request.content);
  const continued = sameFile.find((run) => run.completedAt === null) ?? (again ? undefined : sameFile[0]);
  if (continued) return { continued };

  const replaced = sameTarget.filter((run) => isEarlierVersion(run, request));
  if (replaced[0] && !again) throw placedInPart(replaced[0]);
  return { replaced };
}

function isEarlierVersion({ header, completedAt }: Run, request: RunRequest): boolean {
  if (header.path === null || header.path !== request.path || header.content === request.content) return false;
  if (header.ownRequestIds && request.ownRequestIds) return false;
  return completedAt === null || header.skipped > 0;
}

function placedInPart({ header, placed }: Run): CallkeyError {
  const total = header.calls + header.skipped;
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since ${formatCount(placed.size)} of its ${formatCount(total)} lines were placed: placing it now would call those contacts twice. ` +
      'Nothing was sent. Restore the file and run the same command again; or put the lines that are not placed in a file of their own; ' +
      'or add --again to give up the earlier run and place every line of the file as it is now.',
  );
}
