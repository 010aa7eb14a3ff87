import { counted, formatCount } from '#contract/text/count.ts';
import { checkFile } from '../../batch/check-report.ts';
import { chooseRun, runRequest } from '../../batch/choose-run.ts';
import { type CallFile, type CheckedFile, openCallFile } from '../../batch/file/call-file.ts';
import type { Reading } from '../../batch/file/reading.ts';
import { openSource } from '../../batch/file/source.ts';
import { placeRun } from '../../batch/place-run.ts';
import type { Pace } from '../../batch/pool.ts';
import { createProgress, type Progress } from '../../batch/progress.ts';
import type { Run } from '../../batch/run-journal.ts';
import { CallkeyError } from '../../client/errors.ts';
import { filePolicy } from '../../client/retries.ts';
import { type Context, connect } from '../../context.ts';
import { rememberLastCall } from '../../state/last-call.ts';
import { interruptOnSignals } from '../../terminal/interrupt.ts';
import { shellCommand } from '../../terminal/shell-command.ts';
import { dryRun } from './dry-run.ts';

type FileOptions = Pace & {
  skipInvalid: boolean;
  again: boolean;
  dryRun: boolean;
  reading: Reading;
  /** The run that `call resume` continues. The file must not have changed since. */
  resumed?: Run;
};

/** Places one call for each line of a file, even if the command is stopped and run again. */
export async function callPlaceFile(context: Context, campaignId: string, from: string, options: FileOptions): Promise<void> {
  if (from === '-' && context.streams.stdin.isTTY) context.output.note('Reading calls from the terminal. Press Ctrl-D to finish.');
  const source = await openSource(from, context.streams.stdin, context.folders);
  try {
    const file = await openCallFile(source, options.reading);
    if (options.resumed && options.resumed.header.content !== file.content) throw fileChanged(file.name, formatResumeCommand(context));
    for (const note of file.notes) context.output.note(note);
    if (options.dryRun) await dryRun(context, campaignId, file, options);
    else await placeFile(context, campaignId, file, options);
  } finally {
    await source.close();
  }
}

async function placeFile(context: Context, campaignId: string, file: CallFile, options: FileOptions): Promise<void> {
  const stop = new AbortController();
  let progress: Progress | undefined;
  const retry = { ...filePolicy, until: stop.signal, onRetry: (reason: string) => progress?.waiting(reason) };
  // Connects before the check, which may take a while, so that a missing key is reported immediately.
  const { server, settings, client } = await connect(context, { retry, connections: options.concurrency });
  try {
    const checked = await checkFile(context, file, options.skipInvalid);
    const request = runRequest(server, settings.profileName, campaignId, file, checked);
    const run = await chooseRun(context.folders, request, file, checked, options);
    noteEarlierWork(context, run, checked, file.name);
    if (run.completedAt === null) await rememberLastCall(context, server, campaignId, { fromFile: true });
    progress = createProgress(context.streams.stderr, checked.good, run.placed.size);
    const interrupt = interruptOnSignals(stop, () => {
      progress?.clear();
      context.output.note('Finishing the calls in flight. Press Ctrl-C again to stop immediately.');
    });
    const batch = { run, file, checked, client, pace: options, again: options.again, interrupt, output: context.output, progress };
    await placeRun({ ...batch, resumeCommand: formatResumeCommand(context) }).finally(interrupt.release);
  } finally {
    await client.close();
  }
}

/** Builds the command that resumes a run. The journal already records the server and the profile. */
function formatResumeCommand({ options: { state } }: Context): string {
  return shellCommand({ state }, 'call', 'resume');
}

function fileChanged(name: string, resumeCommand: string): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${name} has changed since its run was stopped. Nothing was sent. Restore the file, then run ${resumeCommand} again.`,
    { code: 'file-changed' },
  );
}

function noteEarlierWork({ output }: Context, run: Run, { good }: CheckedFile, name: string): void {
  if (run.completedAt !== null) {
    output.note(`${name} was already placed in full at ${run.completedAt}. Nothing was sent. To place every line again, add --again.`);
  } else if (run.placed.size > 0) {
    output.note(`Resuming: ${formatCount(run.placed.size)} of ${counted(good, 'line')} already placed.`);
  }
}
