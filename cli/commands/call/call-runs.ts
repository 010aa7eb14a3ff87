import { formatCount } from '#contract/text/count.ts';
import { deleteRun, type Run, readRuns, runName } from '../../batch/run-journal.ts';
import { CallkeyError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { diskError } from '../../state/durable-file.ts';

/** Lists the files placed from this machine, newest first. */
export async function callRuns({ folders, output }: Context): Promise<void> {
  const runs = await readRuns(folders);
  output.answer(
    { runs: runs.map(runView) },
    runs.length === 0 ? 'No files have been placed from this machine.' : runs.map(runText).join('\n'),
  );
}

/** Discards runs, but not the calls that they placed. */
export async function callRunsDiscard({ folders, output }: Context, names: readonly string[]): Promise<void> {
  const runs = await readRuns(folders);
  const chosen = names.map((name) => {
    const run = runs.find((candidate) => runName(candidate) === name);
    if (run) return run;
    throw new CallkeyError('notFound', `No run named ${name} found. To list runs, run callkey call runs.`);
  });
  for (const run of chosen) {
    await deleteRun(run).catch((error: unknown) => {
      throw diskError(error, `Couldn't delete ${run.file}`);
    });
  }
  output.answer({ discarded: names }, chosen.map(discardedText).join('\n'));
}

function discardedText(run: Run): string {
  const what = `Discarded ${runName(run)}.`;
  if (run.completedAt !== null) return what;
  const placed = `Calls already placed (${formatCount(run.placed.size)}) stay placed.`;
  // Placing the same file again creates the same request IDs. But the request IDs of an --again run are lost with its journal.
  return run.header.repetition === '' || run.header.ownRequestIds
    ? `${what} ${placed} If you place the same file again, only the remaining lines are placed.`
    : `${what} ${placed} If you place the file with --again, those contacts are called again.`;
}

function runView(run: Run) {
  const { path, campaignId, server, calls, startedAt } = run.header;
  return { run: runName(run), path, campaignId, server, calls, placed: placedCount(run), startedAt, completedAt: run.completedAt };
}

/** Formats a run as a line, the same in every list of runs. */
export function runText(run: Run): string {
  const { path, campaignId, calls, startedAt } = run.header;
  const state =
    run.completedAt === null
      ? `${formatCount(placedCount(run))} of ${formatCount(calls)} placed, started ${startedAt}`
      : `all ${formatCount(calls)} placed, finished ${run.completedAt}`;
  return `${runName(run)}  ${path ?? 'standard input'}  campaign ${campaignId}  ${state}`;
}

function placedCount({ header, placed, completedAt }: Run): number {
  return completedAt === null ? placed.size : header.calls;
}
