import type { Pace } from '../../batch/pool.ts';
import { hasEnded, type Run, readRuns, runName } from '../../batch/run-journal.ts';
import { CallkeyError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { shellCommand } from '../../terminal/shell-command.ts';
import { callPlaceFile } from './call-place-file.ts';
import { formatRun, runContext } from './call-runs.ts';

/**
 * Continues a stopped run. Gets the run's file, campaign, server, profile and placed lines from the journals in
 * $XDG_STATE_HOME/callkey/runs/ (batch/run-journal.ts), then reads the file again. The file must not have changed.
 */
export async function callResume(context: Context, name: string | undefined, pace: Pace): Promise<void> {
  const incomplete = (await readRuns(context.folders)).filter(({ completedAt, isCancelled }) => completedAt === null && !isCancelled);
  const run = selectRun(incomplete, name);
  if (!run) {
    context.output.note('Nothing to resume.');
    return;
  }
  const { campaignId, path, reading, skipped } = run.header;
  if (path === null)
    throw new CallkeyError(
      'usage',
      `That run came from standard input, which can't be read again. Pipe in the same input with the same options: ${shellCommand(context.options, 'call', 'place', campaignId, '--from', '-')}`,
    );
  await callPlaceFile(runContext(context, run), campaignId, path, {
    ...pace,
    skipInvalid: skipped > 0,
    again: false,
    dryRun: false,
    reading,
    resumed: run,
  });
}

function selectRun(runs: readonly Run[], name: string | undefined): Run | undefined {
  if (name !== undefined) {
    const named = runs.find((run) => runName(run) === name);
    if (!named) throw new CallkeyError('notFound', `No stopped run named ${name}.\n${runs.map(formatRun).join('\n')}`.trim());
    return named;
  }
  const stopped = runs.filter((run) => !hasEnded(run));
  if (stopped.length > 1)
    throw new CallkeyError('usage', `Several runs were stopped. Choose one: callkey call resume RUN\n${stopped.map(formatRun).join('\n')}`);
  return stopped[0];
}
