import type { CoreClient, NamedCall } from '../core-client.ts';
import { Failure, Interrupted } from '../failure.ts';
import type { Output } from '../output.ts';
import { thousands } from '../output.ts';
import type { CallLine } from './call-file.ts';
import { type Pace, placeLines } from './place-lines.ts';
import type { Progress } from './progress.ts';
import { appendTo, type PlacedLine, type Run, type RunJournal, requestIdOf } from './run-journal.ts';
import type { Stopping } from './stopping.ts';

/** What a run works with. */
export type Placing = {
  run: Run;
  lines: readonly CallLine[];
  client: CoreClient;
  pace: Pace;
  stopping: Stopping;
  output: Output;
  progress: Progress;
};

type Refusals = { count: number; first?: Failure };

/**
 * Places the lines of a run that are still to be placed, and tells of each that has been, earlier ones included.
 *
 * @throws Failure where lines were refused or the run had to stop; Interrupted
 */
export async function placeFile(placing: Placing): Promise<void> {
  const { run, lines, stopping, output, progress } = placing;
  for (const { line, call } of lines) tellEarlier(output, run, line, call.requestId);
  const refusals: Refusals = { count: 0 };
  const journal = appendTo(run);
  try {
    const remaining = lines.filter(({ line }) => !run.placed.has(line));
    await placeLines(remaining, placing.pace, stopping.controller, (line) => placeOne(placing, journal, line, refusals));
    if (run.completedAt === null && lines.every(({ line }) => run.placed.has(line))) journal.add({ completedAt: new Date().toISOString() });
  } catch (error) {
    // A request that a signal kept from being sent again failed for no other reason.
    if (stopping.signal() === undefined) throw error instanceof Failure ? stoppedBy(error, placing) : error;
  } finally {
    journal.close();
    progress.clear();
  }
  const signal = stopping.signal();
  if (signal !== undefined) throw new Interrupted(signal, `Stopped. ${stateOf(placing)} ${howToGoOn(run)}`);
  if (refusals.first) throw someRefused(refusals.count, refusals.first, placing);
  if (run.completedAt === null) output.note(stateOf(placing));
}

async function placeOne(
  { run, client, output, progress }: Placing,
  journal: RunJournal,
  { line, call }: CallLine,
  refusals: Refusals,
): Promise<void> {
  const named: NamedCall = { ...call, requestId: call.requestId ?? requestIdOf(run.header, line) };
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
function isOfThisLine(error: unknown): error is Failure {
  return error instanceof Failure && (error.kind === 'usage' || error.kind === 'conflict');
}

function tellEarlier(output: Output, run: Run, line: number, ownRequestId: string | undefined): void {
  const placed = run.placed.get(line);
  if (placed) tell(output, placed, ownRequestId ?? requestIdOf(run.header, line), true);
}

function tell(output: Output, { line, contactId, placedAt }: PlacedLine, requestId: string, replayed: boolean): void {
  if (output.forPrograms) output.result({ line, status: 'placed', requestId, contactId, placedAt, replayed });
}

function stateOf({ run, lines }: Placing): string {
  return `${thousands(run.placed.size)} of ${thousands(lines.length)} lines are placed.`;
}

function howToGoOn({ header }: Run): string {
  return header.path === null ? 'Go on by piping the same input in again.' : 'Go on with: callkey call resume';
}

function stoppedBy(failure: Failure, placing: Placing): Failure {
  return new Failure(failure.kind, `${failure.message}\nStopped. ${stateOf(placing)} ${howToGoOn(placing.run)}`, {
    code: failure.code,
    cause: failure,
  });
}

function someRefused(count: number, first: Failure, placing: Placing): Failure {
  return new Failure(first.kind, `${thousands(count)} lines were refused, for the reasons above. ${stateOf(placing)}`, {
    code: first.code,
    cause: first,
  });
}
