import { cancelFile, cancelRun } from '../../batch/cancel-run.ts';
import { openCallFile } from '../../batch/file/call-file.ts';
import type { Reading } from '../../batch/file/reading.ts';
import { openSource } from '../../batch/file/source.ts';
import type { Pace } from '../../batch/pool.ts';
import { createProgress, type Progress } from '../../batch/progress.ts';
import { readRuns, runName } from '../../batch/run-journal.ts';
import { CallkeyError } from '../../client/errors.ts';
import { filePolicy } from '../../client/retries.ts';
import { type Context, connect } from '../../context.ts';
import { interruptOnSignals } from '../../terminal/interrupt.ts';
import { shellCommand } from '../../terminal/shell-command.ts';
import { formatRun, runContext } from './call-runs.ts';

export async function callCancelRun(context: Context, campaignId: string | undefined, name: string, pace: Pace): Promise<void> {
  const runs = await readRuns(context.folders);
  const run = runs.find((candidate) => runName(candidate) === name);
  if (!run) throw new CallkeyError('notFound', `No run named ${name}.\n${runs.map(formatRun).join('\n')}`.trim());
  if (campaignId !== undefined && campaignId !== run.header.campaignId)
    throw new CallkeyError(
      'usage',
      `The run ${name} belongs to the campaign ${run.header.campaignId}. Remove the campaign from the command.`,
    );
  const again = shellCommand({ state: context.options.state }, 'call', 'cancel', '--run', name);
  const total = run.completedAt === null ? run.placed.size + run.unsettled.size : run.header.calls;
  await cancelBatch(runContext(context, run), run.header.campaignId, pace, total, again, (batch) => cancelRun(batch, run));
}

export async function callCancelFile(
  context: Context,
  campaignId: string,
  from: string,
  { pace, reading }: { pace: Pace; reading: Reading },
): Promise<void> {
  const source = await openSource(from, context.streams.stdin, context.folders);
  try {
    const file = await openCallFile(source, reading, 'cancel');
    for (const note of file.notes) context.output.note(note);
    const pairs = Object.entries(reading.columns).map(([column, header]) => `${column}=${header}`);
    const columns = pairs.length > 0 ? ['--columns', pairs.join()] : [];
    const again = shellCommand(context.options, 'call', 'cancel', campaignId, '--from', from, ...columns);
    await cancelBatch(context, campaignId, pace, file.lines, again, (batch) => cancelFile(batch, file));
  } finally {
    await source.close();
  }
}

type Cancelling = Parameters<typeof cancelFile>[0];

async function cancelBatch(
  context: Context,
  campaignId: string,
  pace: Pace,
  total: number,
  again: string,
  cancel: (batch: Cancelling) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  let progress: Progress | undefined;
  const retry = { ...filePolicy, until: stop.signal, onRetry: (reason: string) => progress?.waiting(reason) };
  const { client } = await connect(context, { retry, connections: pace.concurrency });
  try {
    progress = createProgress(context.streams.stderr, total, 0);
    const interrupt = interruptOnSignals(stop, () => {
      progress?.clear();
      context.output.note('Finishing the requests in flight. Press Ctrl-C again to stop immediately.');
    });
    const { output } = context;
    await cancel({ campaignId, client, pace, interrupt, output, progress, resumeAdvice: `To continue, run ${again}.` }).finally(
      interrupt.release,
    );
  } finally {
    await client.close();
  }
}
