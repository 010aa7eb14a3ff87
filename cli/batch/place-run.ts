import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Call } from '../client/types.ts';
import { type Interrupt, Interrupted } from '../interrupt.ts';
import type { Output } from '../output.ts';
import { formatCount } from '../output.ts';
import type { CallLine } from './call-file.ts';
import { type Pace, runPool } from './pool.ts';
import type { Progress } from './progress.ts';
import { lineRequestId, openJournal, type PlacedLine, type Run, type RunJournal } from './run-journal.ts';

/** A run, and what it needs. */
type Batch = {
  run: Run;
  lines: readonly CallLine[];
  client: CallkeyClient;
  pace: Pace;
  interrupt: Interrupt;
  output: Output;
  progress: Progress;
};

type Refusals = { count: number; first?: CallkeyError };

/**
 * Places the lines that are not placed yet, and reports every placed line, earlier ones included.
 *
 * @throws CallkeyError where the core refused lines or the run had to stop; Interrupted after a signal
 */
export async function placeRun(batch: Batch): Promise<void> {
  const { run, lines, interrupt, output, progress } = batch;
  for (const { line, call } of lines) reportEarlier(output, run, line, call.requestId);
  const refusals: Refusals = { count: 0 };
  const journal = openJournal(run);
  try {
    const remaining = lines.filter(({ line }) => !run.placed.has(line));
    await runPool(remaining, batch.pace, interrupt.controller, (line) => placeLine(batch, journal, line, refusals));
    if (run.completedAt === null && lines.every(({ line }) => run.placed.has(line))) journal.add({ completedAt: new Date().toISOString() });
  } catch (error) {
    // After a signal, a request fails because it may not be retried; the signal is the reason to report.
    if (interrupt.signal() === undefined) throw error instanceof CallkeyError ? stoppedBy(error, batch) : error;
  } finally {
    journal.close();
    progress.clear();
  }
  const signal = interrupt.signal();
  if (signal !== undefined) throw new Interrupted(signal, `Stopped. ${stateOf(batch)} ${resumeAdvice(run)}`);
  if (refusals.first) throw someRefused(refusals.count, refusals.first, batch);
  if (run.completedAt === null) output.note(stateOf(batch));
}

async function placeLine(
  { run, client, output, progress }: Batch,
  journal: RunJournal,
  { line, call }: CallLine,
  refusals: Refusals,
): Promise<void> {
  const identified: Call = { ...call, requestId: call.requestId ?? lineRequestId(run.header, line) };
  try {
    const { requestId, contactId, placedAt, replayed } = await client.place(run.header.campaignId, identified);
    const placed = { line, contactId, placedAt };
    journal.add(placed);
    run.placed.set(line, placed);
    reportPlaced(output, placed, requestId, replayed);
    progress.step();
  } catch (error) {
    if (!concernsOneLine(error)) throw error;
    refusals.count++;
    refusals.first ??= error;
    if (output.forPrograms)
      output.result({ line, status: 'refused', requestId: identified.requestId, code: error.code ?? null, detail: error.message });
    progress.clear();
    output.note(`line ${line}: refused: ${error.message}`);
  }
}

/** A wrong line does not stop the others; a refused key or an unreachable core does. */
function concernsOneLine(error: unknown): error is CallkeyError {
  return error instanceof CallkeyError && (error.kind === 'usage' || error.kind === 'conflict');
}

function reportEarlier(output: Output, run: Run, line: number, ownRequestId: string | undefined): void {
  const placed = run.placed.get(line);
  if (placed) reportPlaced(output, placed, ownRequestId ?? lineRequestId(run.header, line), true);
}

function reportPlaced(output: Output, { line, contactId, placedAt }: PlacedLine, requestId: string, replayed: boolean): void {
  if (output.forPrograms) output.result({ line, status: 'placed', requestId, contactId, placedAt, replayed });
}

function stateOf({ run, lines }: Batch): string {
  return `${formatCount(run.placed.size)} of ${formatCount(lines.length)} lines are placed.`;
}

function resumeAdvice({ header }: Run): string {
  return header.path === null ? 'Pipe the same input in again to go on.' : 'Run callkey call resume to go on.';
}

function stoppedBy(error: CallkeyError, batch: Batch): CallkeyError {
  return new CallkeyError(error.kind, `${error.message}\nStopped. ${stateOf(batch)} ${resumeAdvice(batch.run)}`, {
    code: error.code,
    cause: error,
  });
}

function someRefused(count: number, first: CallkeyError, batch: Batch): CallkeyError {
  return new CallkeyError(first.kind, `The server refused ${formatCount(count)} lines, for the reasons above. ${stateOf(batch)}`, {
    code: first.code,
    cause: first,
  });
}
