import { readPhone } from '#contract/calls/phone.ts';
import { counted } from '#contract/text/count.ts';
import { isCompleteLine, readFirstCell } from '#contract/text/csv.ts';
import { auditEvent } from '../audit/audit.ts';
import { clockSkew } from '../deadlines.ts';
import { type Millis, oneDay } from '../instant.ts';
import type { Actor, ImportedNumber, ImportedNumbers } from '../model.ts';
import type { Ports } from '../ports/ports.ts';
import type { NumberImportStore } from '../ports/protection.ts';
import { detailsReader } from './do-not-call-line.ts';

type Pause = (ms: number) => Promise<void>;

/**
 * In ms: the minimum pause after a batch of numbers was moved to the do-not-call list. A pause also lasts at least as long as the batch
 * took, because SQLite's lock isn't fair: the longer a core has waited for the lock, the less often it tries to get it.
 */
const minPause = 20;

type InvalidLine = { line: number; message: string };

/** @property wrong the first invalid lines @property invalidLines the number of all invalid lines */
export type NumberImportResult = { added: number; known: number; wrong: InvalidLine[]; invalidLines: number };

/**
 * How many numbers of an unfinished import one row stores. A batch that moves only some of them to the do-not-call list has to write the
 * others to the row again, so a row can't be much larger.
 */
const numbersPerPart = 1_000;

const maxInvalidLines = 10_000;

/**
 * Imports a list of any length. If a line is invalid, or reading fails, nothing is imported. Once the whole list is stored, all of it will
 * be imported, even if this process is killed.
 *
 * @param pause waits for this many ms after each batch, so that other processes can write
 */
export async function importNumbers(
  ports: Ports,
  imports: NumberImportStore,
  actor: Actor,
  { lines, country, entry }: { lines: AsyncIterable<string>; country: string | undefined; entry: ImportedNumbers },
  pause: Pause,
): Promise<NumberImportResult> {
  const id = ports.randomness.id();
  await imports.begin(id, entry, ports.clock.now());
  const { numbers, wrong, invalidLines } = await storeParts(imports, id, lines, country, entry.createdAt).catch(async (error: unknown) => {
    await imports.discard(id).catch(() => undefined);
    throw error;
  });
  if (invalidLines > 0 || numbers === 0) {
    await imports.discard(id);
    return { added: 0, known: 0, wrong, invalidLines };
  }
  const subject = { kind: 'do-not-call', id, name: counted(numbers, 'number') } as const;
  await imports.commit(id, ports.clock.now(), auditEvent(ports, actor, 'do-not-call.imported', subject, entry.owner));
  const moved = await moveNumbers(ports, imports, id, pause);
  ports.onListed();
  return { ...moved, wrong, invalidLines };
}

/**
 * In ms. A command needs a few minutes for a million numbers. If it's still running after this time, a core also starts moving the numbers,
 * which does no harm.
 */
const abandonedAfter = 10 * 60_000;

/**
 * Finishes committed imports whose process was killed. These include imports whose start is in the future, because the clock was ahead
 * then.
 *
 * @returns the number of new entries
 */
export async function finishImports(ports: Ports, imports: NumberImportStore, pause: Pause): Promise<number> {
  const now = ports.clock.now();
  let added = 0;
  for (const { id, startedAt, isCommitted } of await imports.list()) {
    const isAbandoned = startedAt < now - abandonedAfter || startedAt > now + clockSkew.toMillis();
    if (isCommitted && isAbandoned) added += (await moveNumbers(ports, imports, id, pause)).added;
  }
  return added;
}

/**
 * Deletes imports that were never committed and were started more than a day ago, or that seem to start more than a day from now because
 * the clock was ahead when they were started.
 */
export async function discardImports(imports: NumberImportStore, now: Millis): Promise<void> {
  for (const { id, startedAt, isCommitted } of await imports.list()) {
    if (!isCommitted && Math.abs(now - startedAt) > oneDay) await imports.discard(id);
  }
}

async function moveNumbers(ports: Ports, imports: NumberImportStore, id: string, pause: Pause) {
  const moved = { added: 0, known: 0 };
  for (;;) {
    const step = await imports.moveBatch(id, () => ports.randomness.id(), ports.clock.now());
    if (step === null) break;
    moved.added += step.added;
    moved.known += step.known;
    await pause(Math.max(step.duration, minPause));
  }
  await imports.finish(id);
  return moved;
}

async function storeParts(imports: NumberImportStore, id: string, lines: AsyncIterable<string>, country: string | undefined, now: Millis) {
  const part = new Map<string, ImportedNumber>();
  const wrong: InvalidLine[] = [];
  let [line, numbers, invalidLines, parts] = [0, 0, 0, 0];
  let readDetails: ReturnType<typeof detailsReader> = () => ({});
  const store = async () => {
    if (part.size > 0 && invalidLines === 0) await imports.addPart(id, parts++, [...part.values()]);
    numbers += part.size;
    part.clear();
  };
  for await (const text of lines) {
    line++;
    const cell = readFirstCell(text);
    const isHeader = line === 1 && !/\d/.test(cell);
    if (isHeader) readDetails = detailsReader(text);
    if (isHeader || cell === '' || isCompleteLine(text)) continue;
    const read = readPhone(cell, { country, accept: 'possible' });
    const details = 'reason' in read ? read.reason : readDetails(text);
    if ('reason' in read || typeof details === 'string') {
      invalidLines++;
      if (wrong.length < maxInvalidLines) wrong.push({ line, message: String(details) });
      continue;
    }
    const { phone } = read;
    // Keep the entry that lasts longest, because an exported list of a partner can contain a number several times, once for each account.
    const isLongest = getEnd(details) > getEnd(part.get(phone) ?? { endsAt: now });
    if (isLongest) part.set(phone, { phone, ...details });
    if (part.size >= numbersPerPart) await store();
  }
  await store();
  return { numbers, wrong, invalidLines };
}

function getEnd({ endsAt }: Pick<ImportedNumber, 'endsAt'>): number {
  return endsAt ?? Number.POSITIVE_INFINITY;
}
