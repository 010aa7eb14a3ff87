import { hash } from 'node:crypto';
import { readFile, realpath, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type BadLine, type CallFile, readCallFile } from '../batch/call-file.ts';
import { chooseRun } from '../batch/choose-run.ts';
import type { Pace } from '../batch/place-lines.ts';
import { placeRun } from '../batch/place-run.ts';
import { createProgress } from '../batch/progress.ts';
import type { Run } from '../batch/run-journal.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { filePolicy } from '../client/retries.ts';
import { type Context, connect } from '../context.ts';
import { checkedCampaign } from '../identifiers.ts';
import { interruptOnSignals } from '../interrupt.ts';
import { noteLastCall } from '../last-call.ts';
import { formatCount } from '../output.ts';

export type FileOptions = Pace & {
  skipInvalid: boolean;
  again: boolean;
  /** SHA-256 that the file has to have. */
  content?: string;
};

/** Places a call for each line of a file, once, however often it is stopped and run again. */
export async function callPlaceFile(context: Context, campaign: string, from: string, options: FileOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const { bytes, path, name } = await readSource(context, from);
  const content = hash('sha256', bytes);
  if (options.content !== undefined && options.content !== content) throw changed(name);
  const file = await readCallFile(bytes, name);
  reportBad(context, file, options.skipInvalid, name);

  const interrupt = interruptOnSignals(() => {
    progress?.clear();
    context.output.note('Stopping: calls under way are let finish. Ctrl-C again stops at once.');
  });
  let progress: ReturnType<typeof createProgress> | undefined;
  const patience = { ...filePolicy, signal: interrupt.controller.signal, onRetry: (reason: string) => progress?.waiting(reason) };
  const { server, settings, client } = await connect(context, { patience, connections: options.concurrency });
  try {
    const wanted = {
      server,
      profile: settings.profileName,
      campaignId,
      path,
      content,
      calls: file.good.length,
      skipped: file.bad.length,
      ownRequestIds: file.good.every(({ call }) => call.requestId !== undefined),
    };
    const run = await chooseRun(context.folders, wanted, options.again);
    tellWhatIsDone(context, run, file, name);
    if (run.completedAt === null) await noteLastCall(context.folders, server, campaignId, { fromFile: true });
    progress = createProgress(context.streams.stderr, file.good.length, run.placed.size);
    await placeRun({ run, lines: file.good, client, pace: options, interrupt, output: context.output, progress });
  } finally {
    interrupt.release();
    await client.close();
  }
}

type Source = { bytes: Buffer /** Null where it cannot be read a second time. */; path: string | null; name: string };

async function readSource({ streams }: Context, from: string): Promise<Source> {
  if (from === '-') return { bytes: await buffer(streams.stdin), path: null, name: 'Standard input' };
  try {
    const isFile = (await stat(from)).isFile();
    return { bytes: await readFile(from), path: isFile ? await realpath(from) : null, name: from };
  } catch (error) {
    throw new CallkeyError('usage', `${from} cannot be read (${errorCode(error) ?? String(error)}).`, { cause: error });
  }
}

function changed(name: string): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${name} has changed since its run was stopped. Nothing was sent. Put it back as it was, and resume then.`,
  );
}

/** @throws Failure `usage` where lines are wrong and not to be skipped */
function reportBad({ output }: Context, { good, bad }: CallFile, skipInvalid: boolean, name: string): void {
  for (const line of bad) {
    if (output.forPrograms) output.result({ line: line.line, status: 'invalid', errors: line.errors });
    output.note(badLineText(line));
  }
  if (bad.length === 0) return;
  const count = `${formatCount(bad.length)} of ${formatCount(good.length + bad.length)} lines of ${name} are wrong.`;
  if (good.length === 0) throw new CallkeyError('usage', `${count} Nothing was sent.`);
  if (!skipInvalid) throw new CallkeyError('usage', `${count} Nothing was sent. Mend them, or add --skip-invalid to place the others.`);
  output.note(`${count} They are skipped.`);
}

function badLineText({ line, errors }: BadLine): string {
  return `line ${line}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ')}`;
}

function tellWhatIsDone({ output }: Context, run: Run, { good }: CallFile, name: string): void {
  if (run.completedAt !== null) {
    output.note(`${name} was placed whole, at ${run.completedAt}; nothing is sent. To call everybody in it once more, add --again.`);
  } else if (run.placed.size > 0) {
    output.note(`Going on: ${formatCount(run.placed.size)} of ${formatCount(good.length)} lines were placed before.`);
  }
}
