import type { Pace } from '../batch/place-lines.ts';
import { type Run, readRuns, runName } from '../batch/run-journal.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { formatCount } from '../output.ts';
import { checkedServer } from '../settings.ts';
import { callPlaceFile } from './call-place-file.ts';

/** Goes on with a run that was stopped, with the file, campaign, server and profile that it was begun with. */
export async function callResume(context: Context, name: string | undefined, pace: Pace): Promise<void> {
  const unfinished = (await readRuns(context.folders)).filter(({ completedAt }) => completedAt === null);
  const run = choose(unfinished, name);
  if (!run) {
    context.output.note('There is nothing to resume.');
    return;
  }
  const { server, profile, campaignId, path, skipped } = run.header;
  if (path === null)
    throw new CallkeyError(
      'usage',
      `That run was read from standard input. Pipe the same input in again: callkey call place ${campaignId} --from -`,
    );
  if (context.options.server !== undefined && checkedServer(context.options.server) !== server) {
    throw new CallkeyError('usage', `That run was begun at ${server}, and goes on there. Leave --server out.`);
  }
  const options = { ...context.options, server, profile: context.options.profile ?? profile };
  await callPlaceFile({ ...context, options }, campaignId, path, {
    ...pace,
    skipInvalid: skipped > 0,
    again: false,
    content: run.header.content,
  });
}

function choose(runs: readonly Run[], name: string | undefined): Run | undefined {
  if (name !== undefined) {
    const named = runs.find((run) => runName(run) === name);
    if (!named) throw new CallkeyError('notFound', `No run ${name} is there to resume. ${list(runs)}`);
    return named;
  }
  if (runs.length > 1) throw new CallkeyError('usage', `Several runs were stopped. Name one: callkey call resume RUN\n${list(runs)}`);
  return runs[0];
}

function list(runs: readonly Run[]): string {
  return runs
    .map((run) => {
      const { path, campaignId, calls, startedAt } = run.header;
      const state = `${formatCount(run.placed.size)} of ${formatCount(calls)} placed, begun ${startedAt}`;
      return `${runName(run)}  ${path ?? 'standard input'}  campaign ${campaignId}  ${state}`;
    })
    .join('\n');
}
