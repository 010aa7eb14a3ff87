import { formatCount } from '#contract/text/count.ts';
import { cancelledLines } from '../../batch/cancel-journal.ts';
import { deleteRun, type Run, readRuns, runName } from '../../batch/run-journal.ts';
import { CallkeyError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { checkedServer } from '../../settings.ts';
import { diskError } from '../../state/durable-file.ts';

/** Lists the files placed from this machine, newest first. */
export async function callRuns({ folders, output }: Context): Promise<void> {
  const runs = await readRuns(folders);
  const views = await Promise.all(runs.map(runView));
  output.answer({ runs: views }, runs.length === 0 ? 'No files have been placed from this machine.' : runs.map(formatRun).join('\n'));
}

/** Discards runs, but not the calls that they placed. */
export async function callRunsDiscard({ folders, output }: Context, names: readonly string[]): Promise<void> {
  const runs = await readRuns(folders);
  const chosen = names.map((name) => {
    const run = runs.find((candidate) => runName(candidate) === name);
    if (run?.isCancelled) throw cannotDiscardError(name);
    if (run) return run;
    throw new CallkeyError('notFound', `No run named ${name}. List them with: callkey call runs`);
  });
  for (const run of chosen) {
    await deleteRun(run).catch((error: unknown) => {
      throw diskError(error, `Couldn't delete ${run.file}`);
    });
  }
  output.answer({ discarded: names }, chosen.map(formatDiscarded).join('\n'));
}

/**
 * Returns the error for discarding a cancelled run. Without its journal, placing the file again would send the same request IDs, which the
 * core knows as cancelled, so no one would be called.
 */
function cannotDiscardError(name: string): CallkeyError {
  const message = `The run ${name} was cancelled. It can't be discarded, because callkey needs it to place the same file again with new request IDs.`;
  return new CallkeyError('conflict', message, { code: 'run-cancelled' });
}

/** Returns the context of a command that continues a run: with its server and profile. @throws CallkeyError `usage` */
export function runContext(context: Context, { header: { server, profile } }: Run): Context {
  if (context.options.server !== undefined && checkedServer(context.options.server) !== server)
    throw new CallkeyError('usage', `That run used the server ${server}. Remove --server.`);
  return { ...context, options: { ...context.options, server, profile: context.options.profile ?? profile } };
}

function formatDiscarded(run: Run): string {
  const what = `Discarded ${runName(run)}.`;
  if (run.completedAt !== null) return what;
  const placed = `Calls already placed (${formatCount(run.placed.size)}) aren't cancelled.`;
  // Placing the same file again creates the same request IDs. But the request IDs of an --again run are lost with its journal.
  return run.header.repetition === '' || run.header.ownRequestIds
    ? `${what} ${placed} If you place the same file again, only the remaining lines will be placed.`
    : `${what} ${placed} If you place the file with --again, those contacts will be called again.`;
}

async function runView(run: Run) {
  const { path, campaignId, server, calls, startedAt } = run.header;
  const cancelled = (await cancelledLines(run)).size;
  return {
    run: runName(run),
    path,
    campaignId,
    server,
    calls,
    placed: placedCount(run),
    cancelled,
    startedAt,
    completedAt: run.completedAt,
  };
}

/** Formats a run as a line, the same in every list of runs. */
export function formatRun(run: Run): string {
  const { path, campaignId, calls, startedAt } = run.header;
  const placed = run.completedAt === null ? `${formatCount(placedCount(run))} of ${formatCount(calls)}` : `all ${formatCount(calls)}`;
  const end = run.completedAt ?? run.endedAt;
  const state = `${placed} placed, ${end === null ? `started ${startedAt}` : `finished ${end}`}`;
  const cancelled = run.isCancelled ? ', cancelled' : '';
  return `${runName(run)}  ${path ?? 'standard input'}  campaign ${campaignId}  ${state}${cancelled}`;
}

function placedCount({ header, placed, completedAt }: Run): number {
  return completedAt === null ? placed.size : header.calls;
}
