import { hash } from 'node:crypto';
import { readFile, realpath, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type Cli, connect } from '../cli.ts';
import { errorCode, Failure } from '../failure.ts';
import { checkedCampaign } from '../identifiers.ts';
import { noteLastCall } from '../last-call.ts';
import { thousands } from '../output.ts';
import { patienceForFile } from '../retries.ts';
import { type BadLine, type CallFile, readCallFile } from '../run/call-file.ts';
import { chooseRun } from '../run/choose-run.ts';
import { placeFile } from '../run/place-file.ts';
import type { Pace } from '../run/place-lines.ts';
import { progressOn } from '../run/progress.ts';
import type { Run } from '../run/run-journal.ts';
import { stopOnSignals } from '../run/stopping.ts';

export type FileOptions = Pace & {
  skipInvalid: boolean;
  again: boolean;
  /** SHA-256 that the file has to have. */
  content?: string;
};

/** Places a call for each line of a file, once, however often it is stopped and run again. */
export async function placeFromFile(cli: Cli, campaign: string, from: string, options: FileOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const { bytes, path, name } = await readSource(cli, from);
  const content = hash('sha256', bytes);
  if (options.content !== undefined && options.content !== content) throw changed(name);
  const file = await readCallFile(bytes, name);
  reportBad(cli, file, options.skipInvalid, name);

  const stopping = stopOnSignals(() => {
    progress?.clear();
    cli.output.note('Stopping: calls under way are let finish. Ctrl-C again stops at once.');
  });
  let progress: ReturnType<typeof progressOn> | undefined;
  const patience = { ...patienceForFile, signal: stopping.controller.signal, onRetry: (reason: string) => progress?.waiting(reason) };
  const { server, settings, client } = await connect(cli, { patience, connections: options.concurrency });
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
    const run = await chooseRun(cli.folders, wanted, options.again);
    tellWhatIsDone(cli, run, file, name);
    if (run.completedAt === null) await noteLastCall(cli.folders, server, campaignId, { fromFile: true });
    progress = progressOn(cli.streams.stderr, file.good.length, run.placed.size);
    await placeFile({ run, lines: file.good, client, pace: options, stopping, output: cli.output, progress });
  } finally {
    stopping.release();
    await client.close();
  }
}

type Source = { bytes: Buffer /** Null where it cannot be read a second time. */; path: string | null; name: string };

async function readSource({ streams }: Cli, from: string): Promise<Source> {
  if (from === '-') return { bytes: await buffer(streams.stdin), path: null, name: 'Standard input' };
  try {
    const isFile = (await stat(from)).isFile();
    return { bytes: await readFile(from), path: isFile ? await realpath(from) : null, name: from };
  } catch (error) {
    throw new Failure('usage', `${from} cannot be read (${errorCode(error) ?? String(error)}).`, { cause: error });
  }
}

function changed(name: string): Failure {
  return new Failure(
    'conflict',
    `${name} has changed since its run was stopped. Nothing was sent. Put it back as it was, and resume then.`,
  );
}

/** @throws Failure `usage` where lines are wrong and not to be skipped */
function reportBad({ output }: Cli, { good, bad }: CallFile, skipInvalid: boolean, name: string): void {
  for (const line of bad) {
    if (output.forPrograms) output.result({ line: line.line, status: 'invalid', errors: line.errors });
    output.note(badLineText(line));
  }
  if (bad.length === 0) return;
  const count = `${thousands(bad.length)} of ${thousands(good.length + bad.length)} lines of ${name} are wrong.`;
  if (good.length === 0) throw new Failure('usage', `${count} Nothing was sent.`);
  if (!skipInvalid) throw new Failure('usage', `${count} Nothing was sent. Mend them, or add --skip-invalid to place the others.`);
  output.note(`${count} They are skipped.`);
}

function badLineText({ line, errors }: BadLine): string {
  return `line ${line}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ')}`;
}

function tellWhatIsDone({ output }: Cli, run: Run, { good }: CallFile, name: string): void {
  if (run.completedAt !== null) {
    output.note(`${name} was placed whole, at ${run.completedAt}; nothing is sent. To call everybody in it once more, add --again.`);
  } else if (run.placed.size > 0) {
    output.note(`Going on: ${thousands(run.placed.size)} of ${thousands(good.length)} lines were placed before.`);
  }
}
