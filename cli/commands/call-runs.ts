import type { Command } from 'commander';
import { formatCount } from '#contract/text/count.ts';
import type { Run } from '../batch/run-journal.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { Context, WithContext } from '../connection/context.ts';
import { addPaceOptions, examples, type PaceOptions, shellCommand, toPace } from '../terminal/help.ts';

// Loaded when a command runs, because help doesn't need it.
const loadJournals = () => import('../batch/run-journal.ts');

export function addRuns(call: Command, withContext: WithContext): void {
  const runs = call
    .command('runs')
    .description('list the files placed from this machine')
    .addHelpText('after', examples('callkey call runs', 'callkey call runs discard 5f3a9c01'))
    .action(() => withContext(listRuns));
  runs
    .command('discard')
    .argument('<run...>', 'runs to discard')
    .description("discard runs so that resume no longer offers them; their calls aren't cancelled")
    .addHelpText('after', examples('callkey call runs discard 5f3a9c01'))
    .action((names: string[]) => withContext((context) => discardRuns(context, names)));
}

/** Lists the files placed from this machine, newest first. */
async function listRuns({ folders, output }: Context): Promise<void> {
  const { cancelledLines, formatRun, readRuns, runName } = await loadJournals();
  const runs = await readRuns(folders);
  const views = runs.map(async (run) => {
    const { path, campaignId, server, calls, startedAt } = run.header;
    const { completedAt } = run;
    const placed = completedAt === null ? run.placed.size : calls;
    const cancelled = (await cancelledLines(run)).size;
    return { run: runName(run), path, campaignId, server, calls, placed, cancelled, startedAt, completedAt };
  });
  const text = runs.length === 0 ? 'No files have been placed from this machine.' : runs.map(formatRun).join('\n');
  output.answer({ runs: await Promise.all(views) }, text);
}

/** Discards runs, but not the calls that they placed. */
async function discardRuns({ folders, output, options }: Context, names: readonly string[]): Promise<void> {
  const { deleteRun, readRuns, runName } = await loadJournals();
  const { diskError } = await import('../state/durable-file.ts');
  const runs = await readRuns(folders);
  const chosen = names.map((name) => {
    const run = runs.find((candidate) => runName(candidate) === name);
    if (run?.isCancelled) throw cannotDiscardError(name);
    if (run) return { name, run };
    throw new CallkeyError('notFound', `No run named ${name}. List them with: ${shellCommand({ state: options.state }, 'call', 'runs')}`);
  });
  for (const { run } of chosen) {
    await deleteRun(run.file).catch((error: unknown) => {
      throw diskError(error, `Couldn't delete ${run.file}`);
    });
  }
  output.answer({ discarded: names }, chosen.map(({ name, run }) => formatDiscarded(name, run)).join('\n'));
}

/** Returns the error for discarding a cancelled run. Without its journal, placing its file again would call no one: see `actions`. */
function cannotDiscardError(name: string): CallkeyError {
  const message = `The run ${name} was cancelled. It can't be discarded, because callkey needs it to place the same file again with new request IDs.`;
  return new CallkeyError('conflict', message, { code: 'run-cancelled' });
}

function formatDiscarded(name: string, { header, placed, completedAt }: Run): string {
  const what = `Discarded ${name}.`;
  if (completedAt !== null) return what;
  const notCancelled = `Calls already placed (${formatCount(placed.size)}) aren't cancelled.`;
  // Placing the same file again creates the same request IDs. But the request IDs of an --again run are lost with its journal.
  return header.repetition === '' || header.ownRequestIds
    ? `${what} ${notCancelled} If you place the same file again, only the remaining lines will be placed.`
    : `${what} ${notCancelled} If you place the file with --again, those contacts will be called again.`;
}

export function addResume(call: Command, withContext: WithContext): void {
  addPaceOptions(call.command('resume').argument('[run]', 'run to resume, if several were stopped'))
    .description('resume a stopped run, without placing any line twice')
    .addHelpText('after', examples('callkey call resume'))
    .action((name: string | undefined, pace: PaceOptions) => withContext((context) => resume(context, name, pace)));
}

/** Continues a stopped run with what its journal says (batch/run-journal.ts). Reads its file again, which must not have changed. */
async function resume(context: Context, name: string | undefined, pace: PaceOptions): Promise<void> {
  const resumed = await selectRun(context, name);
  if (!resumed) {
    context.output.note('Nothing to resume.');
    return;
  }
  const { campaignId, path, reading, skipped } = resumed.header;
  if (path === null)
    throw usageError(
      `That run came from standard input, which can't be read again. Pipe in the same input with the same options: ${shellCommand(context.options, 'call', 'place', campaignId, '--from', '-')}`,
    );
  const [{ placeFile }, { contextOfRun }] = await Promise.all([import('../batch/place-file.ts'), import('../connection/context.ts')]);
  const options = { pace: toPace(pace), skipInvalid: skipped > 0, again: false, dryRun: false, reading, resumed };
  await placeFile(contextOfRun(context, resumed.header), campaignId, path, options);
}

async function selectRun({ folders, options }: Context, name: string | undefined): Promise<Run | undefined> {
  const { formatRun, hasEnded, readRuns, runName } = await loadJournals();
  const runs = (await readRuns(folders)).filter(({ completedAt, isCancelled }) => completedAt === null && !isCancelled);
  if (name !== undefined) {
    const named = runs.find((run) => runName(run) === name);
    if (!named) throw new CallkeyError('notFound', `No stopped run named ${name}.\n${runs.map(formatRun).join('\n')}`.trim());
    return named;
  }
  const stopped = runs.filter((run) => !hasEnded(run));
  if (stopped.length > 1) {
    const command = shellCommand({ state: options.state }, 'call', 'resume', 'RUN');
    throw usageError(`Several runs were stopped. Choose one: ${command}\n${stopped.map(formatRun).join('\n')}`);
  }
  return stopped[0];
}
