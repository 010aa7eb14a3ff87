import { counted, formatCount } from '#contract/text/count.ts';
import { checkFile } from '../../batch/check-report.ts';
import { decideRun, runRequest } from '../../batch/choose-run.ts';
import { type CallFile, type CallLine, goodLines } from '../../batch/file/call-file.ts';
import { LineSet } from '../../batch/file/line-numbers.ts';
import { earlierLines, lineRequestId, type Run, readRuns } from '../../batch/run-journal.ts';
import { type Context, loadSettings } from '../../context.ts';

type DryRunOptions = { skipInvalid: boolean; again: boolean };

/** The number of calls shown on a terminal. A program gets all of them. */
const maxShown = 10;

/** Reports what the command would place and skip, based only on the file and the journals. Doesn't send anything or read a key. */
export async function dryRun(context: Context, campaignId: string, file: CallFile, options: DryRunOptions): Promise<void> {
  const { output } = context;
  const checked = await checkFile(context, file, options.skipInvalid);
  const { server, profileName } = await loadSettings(context);
  const request = runRequest(server ?? '', profileName, campaignId, file, checked);
  // Throws the same error as placing the file would.
  const choice = await decideRun(server === null ? [] : await readRuns(context.folders), request, file, checked, options);
  const placed = 'continued' in choice ? await readPlacedLines(choice.continued) : new LineSet();
  const header = 'continued' in choice ? choice.continued.header : { ...request, version: 1 as const, repetition: '', startedAt: '' };
  let shown = 0;
  for await (const line of goodLines(file, checked.bad)) {
    // With --again, request IDs are chosen only when the file is placed.
    const requestId = line.call.requestId ?? (options.again && !('continued' in choice) ? undefined : lineRequestId(header, line.line));
    if (placed.has(line.line)) {
      if (output.forPrograms) output.result({ line: line.line, status: 'placed-before', requestId });
    } else if (output.forPrograms) output.result({ line: line.line, status: 'would-place', ...line.call, requestId });
    else if (shown++ < maxShown) output.note(formatCall(line));
    if (output.lost.aborted) return;
  }
  if (shown > maxShown) output.note(`… and ${formatCount(shown - maxShown)} more. Add --json to see them all.`);
  const unknown = 'Only the server knows the do-not-call list and calling hours, so some of these lines may still be skipped.';
  const before = placed.size > 0 ? ` Skipped because already placed: ${formatCount(placed.size)}.` : '';
  output.note(
    `Would place ${formatCount(checked.good - placed.size)} of ${counted(checked.good + checked.bad.size, 'line')} in ${file.name}.${before} Nothing was sent. ${unknown}`,
  );
}

async function readPlacedLines(run: Run): Promise<LineSet> {
  const placed = new LineSet();
  for await (const { line } of earlierLines(run)) placed.add(line);
  return placed;
}

function formatCall({ line, call: { contact } }: CallLine): string {
  return `line ${line}: would call ${contact.phone}${contact.name === undefined ? '' : ` (${contact.name})`}`;
}
