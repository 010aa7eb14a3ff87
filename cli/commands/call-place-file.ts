import { hash } from 'node:crypto';
import { readFile, realpath, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type BadLine, type CallFile, readCallFile } from '../batch/call-file.ts';
import { chooseRun } from '../batch/choose-run.ts';
import { placeRun } from '../batch/place-run.ts';
import type { Pace } from '../batch/pool.ts';
import { createProgress } from '../batch/progress.ts';
import type { Run } from '../batch/run-journal.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { filePolicy } from '../client/retries.ts';
import { type Context, connect } from '../context.ts';
import { checkedCampaign } from '../identifiers.ts';
import { interruptOnSignals } from '../interrupt.ts';
import { writeLastCall } from '../last-call.ts';
import { formatCount } from '../output.ts';

type FileOptions = Pace & {
  skipInvalid: boolean;
  again: boolean;
  /** SHA-256 of the file that `call resume` expects. */
  content?: string;
};

/** Places one call for each line of a file, also where the command is stopped and run again. */
export async function callPlaceFile(context: Context, campaign: string, from: string, options: FileOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const { bytes, path, name } = await readSource(context, from);
  const content = hash('sha256', bytes);
  if (options.content !== undefined && options.content !== content) throw fileChanged(name);
  const file = readCallFile(bytes, name);
  reportBadLines(context, file, options.skipInvalid, name);

  const interrupt = interruptOnSignals(() => {
    progress?.clear();
    context.output.note('Stopping after the calls in flight. Press Ctrl-C again to stop at once.');
  });
  let progress: ReturnType<typeof createProgress> | undefined;
  const retry = { ...filePolicy, until: interrupt.controller.signal, onRetry: (reason: string) => progress?.waiting(reason) };
  const { server, settings, client } = await connect(context, { retry, connections: options.concurrency });
  try {
    const request = {
      server,
      profile: settings.profileName,
      campaignId,
      path,
      content,
      calls: file.good.length,
      skipped: file.bad.length,
      ownRequestIds: file.good.every(({ call }) => call.requestId !== undefined),
    };
    const run = await chooseRun(context.folders, request, options.again);
    noteEarlierWork(context, run, file, name);
    if (run.completedAt === null) await writeLastCall(context.folders, server, campaignId, { fromFile: true });
    progress = createProgress(context.streams.stderr, file.good.length, run.placed.size);
    await placeRun({ run, lines: file.good, client, pace: options, interrupt, output: context.output, progress });
  } finally {
    interrupt.release();
    await client.close();
  }
}

/** `path` is null where the source cannot be read a second time. */
type Source = { bytes: Buffer; path: string | null; name: string };

async function readSource({ streams }: Context, from: string): Promise<Source> {
  if (from === '-') return { bytes: await buffer(streams.stdin), path: null, name: 'Standard input' };
  try {
    const isFile = (await stat(from)).isFile();
    return { bytes: await readFile(from), path: isFile ? await realpath(from) : null, name: from };
  } catch (error) {
    throw new CallkeyError('usage', `Could not read ${from} (${errorCode(error) ?? String(error)}). Check its name and permissions.`, {
      cause: error,
    });
  }
}

function fileChanged(name: string): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${name} has changed since its run was stopped. Nothing was sent. Restore the file, then run callkey call resume again.`,
  );
}

/** @throws CallkeyError `usage` where lines are wrong, unless --skip-invalid leaves some to place */
function reportBadLines({ output }: Context, { good, bad }: CallFile, skipInvalid: boolean, name: string): void {
  for (const line of bad) {
    if (output.forPrograms) output.result({ line: line.line, status: 'invalid', errors: line.errors });
    output.note(badLineText(line));
  }
  if (bad.length === 0) return;
  const count = `${formatCount(bad.length)} of ${formatCount(good.length + bad.length)} lines of ${name} are wrong.`;
  if (good.length === 0) throw new CallkeyError('usage', `${count} Nothing was sent. Correct them and run the command again.`);
  if (!skipInvalid) throw new CallkeyError('usage', `${count} Nothing was sent. Correct them, or add --skip-invalid to place the others.`);
  output.note(`${count} Skipping them.`);
}

function badLineText({ line, errors }: BadLine): string {
  return `line ${line}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ')}`;
}

function noteEarlierWork({ output }: Context, run: Run, { good }: CallFile, name: string): void {
  if (run.completedAt !== null) {
    output.note(`${name} was placed whole, at ${run.completedAt}. Nothing was sent. Add --again to place every line once more.`);
  } else if (run.placed.size > 0) {
    output.note(`Resuming: ${formatCount(run.placed.size)} of ${formatCount(good.length)} lines were placed before.`);
  }
}
