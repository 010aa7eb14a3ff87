import type { CoreClient, NamedCall } from '../client/core-client.ts';
import { CallkeyError, Interrupted } from '../client/errors.ts';
import type { Interrupt } from '../interrupt.ts';
import type { Output } from '../output.ts';
import { formatCount } from '../output.ts';
import type { CallLine } from './call-file.ts';
import { type Pace, placeLines } from './place-lines.ts';
import type { Progress } from './progress.ts';
import { lineRequestId, openJournal, type PlacedLine, type Run, type RunJournal } from './run-journal.ts';

/** What a run works with. */
export type Batch = {
  run: Run;
  lines: readonly CallLine[];
  client: CoreClient;
  pace: Pace;
  interrupt: Interrupt;
  output: Output;
  progress: Progress;
};

type Refusals = { count: number; first?: CallkeyError };

/**
 * Places the lines of a run that are still to be placed, and tells of each that has been, earlier ones included.
 *
 * @throws Failure where lines were refused or the run had to stop; Interrupted
 */
export async function placeRun(batch: Batch): Promise<void> {
  const { run, lines, interrupt, output, progress } = batch;
  for (const { line, call } of lines) tellEarlier(output, run, line, call.requestId);
  const refusals: Refusals = { count: 0 };
  const journal = openJournal(run);
  try {
    const remaining = lines.filter(({ line }) => !run.placed.has(line));
    await placeLines(remaining, batch.pace, interrupt.controller, (line) => placeLine(batch, journal, line, refusals));
    if (run.completedAt === null && lines.every(({ line }) => run.placed.has(line))) journal.add({ completedAt: new Date().toISOString() });
  } catch (error) {
    // A request that a signal kept from being sent again failed for no other reason.
    if (interrupt.signal() === undefined) throw error instanceof CallkeyError ? stoppedBy(error, batch) : error;
  } finally {
    journal.close();
    progress.clear();
  }
  const signal = interrupt.signal();
  if (signal !== undefined) throw new Interrupted(signal, `Stopped. ${stateOf(batch)} ${howToGoOn(run)}`);
  if (refusals.first) throw someRefused(refusals.count, refusals.first, batch);
  if (run.completedAt === null) output.note(stateOf(batch));
}

async function placeLine(
  { run, client, output, progress }: Batch,
  journal: RunJournal,
  { line, call }: CallLine,
  refusals: Refusals,
): Promise<void> {
  const named: NamedCall = { ...call, requestId: call.requestId ?? lineRequestId(run.header, line) };
  try {
    const { requestId, contactId, placedAt, replayed } = await client.place(run.header.campaignId, named);
    const placed = { line, contactId, placedAt };
    journal.add(placed);
    run.placed.set(line, placed);
    tell(output, placed, requestId, replayed);
    progress.step();
  } catch (error) {
    if (!isOfThisLine(error)) throw error;
    refusals.count++;
    refusals.first ??= error;
    if (output.forPrograms)
      output.result({ line, status: 'refused', requestId: named.requestId, code: error.code ?? null, detail: error.message });
    progress.clear();
    output.note(`line ${line}: refused: ${error.message}`);
  }
}

/** A wrong line is no reason to hold up the others; a refused key or an unreachable core is. */
function isOfThisLine(error: unknown): error is CallkeyError {
  return error instanceof CallkeyError && (error.kind === 'usage' || error.kind === 'conflict');
}

function tellEarlier(output: Output, run: Run, line: number, ownRequestId: string | undefined): void {
  const placed = run.placed.get(line);
  if (placed) tell(output, placed, ownRequestId ?? lineRequestId(run.header, line), true);
}

function tell(output: Output, { line, contactId, placedAt }: PlacedLine, requestId: string, replayed: boolean): void {
  if (output.forPrograms) output.result({ line, status: 'placed', requestId, contactId, placedAt, replayed });
}

function stateOf({ run, lines }: Batch): string {
  return `${formatCount(run.placed.size)} of ${formatCount(lines.length)} lines are placed.`;
}

function howToGoOn({ header }: Run): string {
  return header.path === null ? 'Go on by piping the same input in again.' : 'Go on with: callkey call resume';
}

function stoppedBy(failure: CallkeyError, batch: Batch): CallkeyError {
  return new CallkeyError(failure.kind, `${failure.message}\nStopped. ${stateOf(batch)} ${howToGoOn(batch.run)}`, {
    code: failure.code,
    cause: failure,
  });
}

function someRefused(count: number, first: CallkeyError, batch: Batch): CallkeyError {
  return new CallkeyError(first.kind, `${formatCount(count)} lines were refused, for the reasons above. ${stateOf(batch)}`, {
    code: first.code,
    cause: first,
  });
}
