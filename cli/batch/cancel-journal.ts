import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { parseJson } from '#contract/text/json.ts';
import { syncFolder } from '../state/durable-file.ts';
import { LineSet } from './file/line-numbers.ts';
import { appendTo, type Journal, readLines } from './journal-file.ts';

/**
 * The result for one line of a cancelled run, as it's printed. A line with a result isn't tried again, even if its call had already been
 * dialed, unless the result is `not-placed`.
 */
const cancelledLineSchema = z.object({
  line: z.number().int(),
  status: z.enum(['cancelled', 'too-late', 'not-placed']),
  requestId: z.string().optional(),
  contactId: z.string().optional(),
  cancelledAt: z.string().optional(),
  detail: z.string().optional(),
});
export type CancelledLine = z.infer<typeof cancelledLineSchema>;

type JournaledRun = { file: string };

/** Returns the path of the cancellation's journal, which is next to the run's own. As long as this file exists, the run isn't resumed. */
export function cancelJournalPath({ file }: JournaledRun): string {
  return file.replace(/\.jsonl$/, '.cancelled');
}

export function isCancelled(run: JournaledRun): boolean {
  return existsSync(cancelJournalPath(run));
}

/** Opens the cancellation's journal. A command that's still placing the run stops when it finds this file. @throws CallkeyError `failed` */
export async function openCancelJournal(run: JournaledRun): Promise<Journal<CancelledLine>> {
  const journal = appendTo<CancelledLine>(cancelJournalPath(run));
  await syncFolder(dirname(run.file));
  return journal;
}

/** Returns the results so far. Each line has only one, except that a line that was `not-placed` may have another. */
export async function* readCancelledLines(run: JournaledRun): AsyncGenerator<CancelledLine> {
  if (!isCancelled(run)) return;
  const seen = new LineSet();
  for await (const text of readLines(cancelJournalPath(run))) {
    const entry = cancelledLineSchema.safeParse(parseJson(text)).data;
    if (!entry || seen.has(entry.line)) continue;
    if (entry.status !== 'not-placed') seen.add(entry.line);
    yield entry;
  }
}

/** Returns the lines whose calls were cancelled; with `not-placed`, also those that were never placed. */
export async function cancelledLines(run: JournaledRun, ...more: 'not-placed'[]): Promise<LineSet> {
  const lines = new LineSet();
  const statuses: readonly CancelledLine['status'][] = ['cancelled', ...more];
  for await (const { line, status } of readCancelledLines(run)) if (statuses.includes(status)) lines.add(line);
  return lines;
}
