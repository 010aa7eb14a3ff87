import type { Cli } from '../cli.ts';
import { Failure } from '../failure.ts';
import { thousands } from '../output.ts';
import type { Pace } from '../run/place-lines.ts';
import { type Run, readRuns, runName } from '../run/run-journal.ts';
import { checkedServer } from '../settings.ts';
import { placeFromFile } from './call-place-file.ts';

/** Goes on with a run that was stopped, with the file, campaign, server and profile that it was begun with. */
export async function callResume(cli: Cli, name: string | undefined, pace: Pace): Promise<void> {
  const unfinished = (await readRuns(cli.folders)).filter(({ completedAt }) => completedAt === null);
  const run = choose(unfinished, name);
  if (!run) {
    cli.output.note('There is nothing to resume.');
    return;
  }
  const { server, profile, campaignId, path, skipped } = run.header;
  if (path === null)
    throw new Failure(
      'usage',
      `That run was read from standard input. Pipe the same input in again: callkey call place ${campaignId} --from -`,
    );
  if (cli.options.server !== undefined && checkedServer(cli.options.server) !== server) {
    throw new Failure('usage', `That run was begun at ${server}, and goes on there. Leave --server out.`);
  }
  const options = { ...cli.options, server, profile: cli.options.profile ?? profile };
  await placeFromFile({ ...cli, options }, campaignId, path, {
    ...pace,
    skipInvalid: skipped > 0,
    again: false,
    content: run.header.content,
  });
}

function choose(runs: readonly Run[], name: string | undefined): Run | undefined {
  if (name !== undefined) {
    const named = runs.find((run) => runName(run) === name);
    if (!named) throw new Failure('notFound', `No run ${name} is there to resume. ${list(runs)}`);
    return named;
  }
  if (runs.length > 1) throw new Failure('usage', `Several runs were stopped. Name one: callkey call resume RUN\n${list(runs)}`);
  return runs[0];
}

function list(runs: readonly Run[]): string {
  return runs
    .map((run) => {
      const { path, campaignId, calls, startedAt } = run.header;
      const state = `${thousands(run.placed.size)} of ${thousands(calls)} placed, begun ${startedAt}`;
      return `${runName(run)}  ${path ?? 'standard input'}  campaign ${campaignId}  ${state}`;
    })
    .join('\n');
}
