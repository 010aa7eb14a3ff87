import { CallkeyError } from '../client/errors.ts';
import { formatCount } from '../output.ts';
import type { Folders } from '../xdg.ts';
import { deleteRun, newRepetition, type Run, type RunHeader, readRuns, startRun } from './run-journal.ts';

/** What a command wants placed: a run that is yet to be found or begun. */
export type RunRequest = Omit<RunHeader, 'version' | 'repetition' | 'startedAt'>;

/**
 * Goes on with the run of just this file in this campaign, or begins one. A file that has been placed whole is placed once more only
 * when that is asked for.
 *
 * @throws Failure `conflict` where an earlier version of the file was placed in part, so that people might be called twice
 */
export async function chooseRun(folders: Folders, wanted: RunRequest, again: boolean): Promise<Run> {
  const runs = (await readRuns(folders)).filter(({ header }) => header.server === wanted.server && header.campaignId === wanted.campaignId);
  const ofThisFile = runs.filter(({ header }) => header.content === wanted.content);
  const unfinished = ofThisFile.find((run) => run.completedAt === null);
  if (unfinished) return unfinished;
  const finished = ofThisFile[0];
  if (finished && !again) return finished;

  const inTheWay = runs.filter((run) => isEarlierVersion(run, wanted));
  if (inTheWay[0] && !again) throw placedInPart(inTheWay[0]);
  for (const run of inTheWay) await deleteRun(run);
  return startRun(folders, {
    ...wanted,
    version: 1,
    repetition: again ? newRepetition() : '',
    startedAt: new Date().toISOString(),
  });
}

function isEarlierVersion({ header, completedAt }: Run, wanted: RunRequest): boolean {
  if (header.path === null || header.path !== wanted.path || header.content === wanted.content) return false;
  if (header.ownRequestIds && wanted.ownRequestIds) return false;
  return completedAt === null || header.skipped > 0;
}

function placedInPart({ header, placed }: Run): CallkeyError {
  const total = header.calls + header.skipped;
  return new CallkeyError(
    'conflict',
    `${header.path} has changed since ${formatCount(placed.size)} of its ${formatCount(total)} lines were placed: placing it now would call those people twice. ` +
      'Nothing was sent. Put the file back as it was and run this again; or put the lines that are still to be placed in a file of their own; ' +
      'or add --again to give the earlier run up and place every line of the file as it is now.',
  );
}
