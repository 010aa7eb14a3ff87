import { hash } from 'node:crypto';
import { appendFileSync, closeSync, createReadStream, existsSync, fsyncSync, openSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { formatCount } from '#contract/text/count.ts';
import { parseJson } from '#contract/text/json.ts';
import { CallkeyError } from '../client/errors.ts';
import {
  appendDurably,
  diskError,
  listIfExists,
  privateFile,
  stateAdvice,
  syncFolder,
  unreadableError,
  writeDurably,
} from '../state/durable-file.ts';
import type { Folders } from '../state/folders.ts';
import { keepHeapSmall, LineSet } from './long-file.ts';
import { readingSchema } from './reading.ts';

/**
 * A run places one file in one campaign. Its journal, $XDG_STATE_HOME/callkey/runs/*.jsonl, contains this header, entries for each sent
 * line and an end entry. It contains line numbers and digests, but no phone numbers or names.
 */
const headerSchema = z.object({
  version: z.literal(1),
  server: z.string(),
  profile: z.string(),
  campaignId: z.string(),
  /** Null for standard input. */
  path: z.string().nullable(),
  /** SHA-256 of the file. */
  content: z.string(),
  /** How the file is read. */
  reading: readingSchema,
  /** Empty the first time a file is placed in a campaign; random with --again. */
  repetition: z.string(),
  /** The number of lines to place, and the number of invalid lines skipped. */
  calls: z.number().int(),
  skipped: z.number().int(),
  /** Whether every line has its own request ID. If so, the core recognizes a line that was already placed, even from another file. */
  ownRequestIds: z.boolean(),
  startedAt: z.iso.datetime(),
});
export type RunHeader = z.infer<typeof headerSchema>;

type LineScope = Pick<RunHeader, 'campaignId' | 'content' | 'repetition'>;

const placedSchema = z.object({
  line: z.number().int(),
  /** Omitted if it can be derived from the line number. */
  requestId: z.string().optional(),
  contactId: z.string(),
  placedAt: z.string(),
  heldUntil: z.string().optional(),
  /** Identifies the line in an edited file (callDigest). */
  call: z.string(),
});
export type PlacedLine = z.infer<typeof placedSchema>;
/** Written before a line is sent. If the command is then killed, the call may be placed, and `call cancel --run` must find it. */
const sentSchema = z.object({
  sent: z.number().int(),
  requestId: z.string().optional(),
  /** As in placedSchema. */
  call: z.string(),
});
/** Written after the core has refused a line, so it isn't placed. */
const refusedSchema = z.object({ refused: z.number().int() });
/** Written if a line certainly never reached the core, so it isn't placed. */
const unreachedSchema = z.object({ unreached: z.number().int() });
const endSchema = z.object({ completedAt: z.string() });
/** Written instead of the end entry if some lines weren't placed. Running the same command again sends those lines again. */
const partialEndSchema = z.object({ endedAt: z.string() });
const entrySchema = z.union([placedSchema, sentSchema, refusedSchema, unreachedSchema, endSchema, partialEndSchema]);
type Entry = z.infer<typeof entrySchema>;

export type Run = {
  header: RunHeader;
  /** The path of the journal. */
  file: string;
  /** The lines that are already placed. Empty for a complete run. */
  placed: LineSet;
  /** The lines that were sent, but whose response is unknown: they may have been placed. Empty for a complete run. */
  unsettled: ReadonlyMap<number, { requestId: string; call: string }>;
  /** Null until every line is placed. */
  completedAt: string | null;
  /** When the last line was placed, skipped or rejected; null until then, and again while lines are sent again. */
  endedAt: string | null;
  /** Whether the run was cancelled, perhaps only in part. */
  isCancelled: boolean;
};

const journalFolder = (folders: Folders) => join(folders.state, 'runs');

const advice = `Nothing was sent. ${stateAdvice}`;

/** When another run starts, it deletes the entries of journals whose last entry is older than this. */
const retention = 90 * 24 * 60 * 60 * 1000;

/**
 * Builds the request ID of a line that doesn't have its own. It depends only on the file, campaign and line, so another machine, or this
 * one without its journal, sends the same ID, and the core doesn't place a second call.
 */
export function lineRequestId({ campaignId, content, repetition }: LineScope, line: number): string {
  return `file-${hash('sha256', JSON.stringify([campaignId, content, repetition])).slice(0, 32)}-${line}`;
}

/** Identifies a line by its call, whatever its number, request ID, column order and spelling of times: 80 bits in hexadecimal. */
export function callDigest({ contact: { phone, name, timeZone }, variables = {}, notBefore, notAfter }: PlaceCall): string {
  const times = [notBefore, notAfter].map((time) => time && new Date(time).toISOString());
  return hash('sha256', JSON.stringify([phone, name, timeZone, ...times, Object.entries(variables).sort()])).slice(0, 20);
}

/** Returns the short name that `call resume RUN` accepts. */
export function runName({ file }: Run): string {
  return file.slice(-14, -6);
}

/** @throws CallkeyError `notFound`, with a list of the runs */
export async function findRun(folders: Folders, name: string): Promise<Run> {
  const runs = await readRuns(folders);
  const run = runs.find((candidate) => runName(candidate) === name);
  if (run) return run;
  throw new CallkeyError('notFound', `No run named ${name}.\n${runs.map(formatRun).join('\n')}`.trim());
}

/** Formats a run as a line, the same in every list of runs. */
export function formatRun(run: Run): string {
  const { path, campaignId, calls, startedAt } = run.header;
  const placed = run.completedAt === null ? `${formatCount(run.placed.size)} of ${formatCount(calls)}` : `all ${formatCount(calls)}`;
  const end = run.completedAt ?? run.endedAt;
  const state = `${placed} placed, ${end === null ? `started ${startedAt}` : `finished ${end}`}`;
  const cancelled = run.isCancelled ? ', cancelled' : '';
  return `${runName(run)}  ${path ?? 'standard input'}  campaign ${campaignId}  ${state}${cancelled}`;
}

/** Starts a run, or continues it if another command has just started it. */
export async function startRun(folders: Folders, header: RunHeader): Promise<Run> {
  const { server, campaignId, content, reading, repetition } = header;
  const digest = hash('sha256', JSON.stringify([server, campaignId, content, reading, repetition]));
  const file = join(journalFolder(folders), `${digest.slice(0, 32)}.jsonl`);
  const text = `${JSON.stringify(header)}\n`;
  await appendDurably(file, text, advice);
  await deleteOldRuns(folders);
  const started = await readRun(file);
  if (started) return started;
  // The journal already existed, but its header couldn't be read.
  await writeDurably(file, text, advice);
  return { header, file, placed: new LineSet(), unsettled: new Map(), completedAt: null, endedAt: null, isCancelled: false };
}

/** Whether each line was placed, skipped or rejected. Otherwise, the run was stopped, or a command is still placing it. */
export function hasEnded({ completedAt, endedAt }: Run): boolean {
  return completedAt !== null || endedAt !== null;
}

/** Reads all runs, newest first. */
export async function readRuns(folders: Folders): Promise<Run[]> {
  const runs: Run[] = [];
  for (const file of await listJournals(folders)) {
    const run = await readRun(file);
    if (run) runs.push(run);
  }
  return runs.toSorted((a, b) => (a.header.startedAt < b.header.startedAt ? 1 : -1));
}

async function listJournals(folders: Folders): Promise<string[]> {
  const names = await listIfExists(journalFolder(folders), advice);
  return names.filter((name) => name.endsWith('.jsonl')).map((name) => join(journalFolder(folders), name));
}

async function deleteOldRuns(folders: Folders): Promise<void> {
  for (const file of await listJournals(folders)) {
    const [stats, cancelStats] = await Promise.all([file, cancelJournalPath(file)].map((path) => stat(path).catch(() => undefined)));
    const lastEntry = Math.max(stats?.mtimeMs ?? Date.now(), cancelStats?.mtimeMs ?? 0);
    // If a journal can't be deleted now, the next command tries again.
    if (Date.now() - lastEntry > retention) await deleteOldRun(file).catch(() => undefined);
  }
}

/**
 * Deletes a run, but keeps the header of a cancelled one. The core may still know the run's request IDs as cancelled, so placing the same
 * file again would call no one. With --again, the next run has other IDs.
 */
async function deleteOldRun(file: string): Promise<void> {
  const run = isCancelled(file) ? await readRun(file) : undefined;
  if (run?.header.repetition !== '') return deleteRun(file);
  await writeDurably(file, `${JSON.stringify(run.header)}\n`);
  await writeDurably(cancelJournalPath(file), '');
}

/** A complete run has its end entry in these last bytes, so most of its journal isn't read. */
const tailBytes = 64 * 1024;

export async function readRun(file: string): Promise<Run | undefined> {
  const stats = await stat(file).catch(() => undefined);
  // Another command may have deleted the journal since the folder was listed.
  if (!stats) return undefined;
  try {
    if (stats.size > tailBytes) {
      const tail = await parseJournal(file, concatenated(readLines(file, 0, 4096), readLines(file, stats.size - tailBytes)));
      if (tail && tail.completedAt !== null) return { ...tail, placed: new LineSet(), unsettled: new Map() };
    }
    return await parseJournal(file, readLines(file));
  } catch (error) {
    throw unreadableError(file, error, advice);
  }
}

async function* concatenated<Item>(...parts: AsyncIterable<Item>[]): AsyncGenerator<Item> {
  for (const part of parts) yield* part;
}

/** Parses a journal. @returns undefined if it doesn't start with a header */
export async function parseJournal(file: string, lines: AsyncIterable<string>): Promise<Run | undefined> {
  let run: Run | undefined;
  const unsettled = new Map<number, { requestId: string; call: string }>();
  for await (const line of lines) {
    if (run === undefined) {
      const header = headerSchema.safeParse(parseJson(line)).data;
      if (!header) return undefined;
      run = { header, file, placed: new LineSet(), unsettled, completedAt: null, endedAt: null, isCancelled: isCancelled(file) };
      continue;
    }
    const entry = parseEntry(line);
    if (!entry) continue;
    if ('line' in entry) {
      run.placed.add(entry.line);
      unsettled.delete(entry.line);
    } else if ('sent' in entry) {
      run.endedAt = null;
      const { sent: line, requestId = lineRequestId(run.header, line), call } = entry;
      if (!run.placed.has(line)) unsettled.set(line, { requestId, call });
    } else if ('refused' in entry) unsettled.delete(entry.refused);
    else if ('unreached' in entry) unsettled.delete(entry.unreached);
    else if ('endedAt' in entry) run.endedAt = entry.endedAt;
    else if ('completedAt' in entry) run.completedAt = entry.completedAt;
  }
  return run;
}

/** Parses an entry. @returns undefined if a crash left it half-written: its line is then sent again with the same request ID */
function parseEntry(line: string): Entry | undefined {
  return entrySchema.safeParse(parseJson(line)).data;
}

/** Returns the lines that earlier commands placed, each once. */
export async function* placedLines({ file }: Run): AsyncGenerator<PlacedLine> {
  const seen = new LineSet();
  for await (const line of readLines(file)) {
    const entry = parseEntry(line);
    if (!entry || !('line' in entry) || seen.has(entry.line)) continue;
    seen.add(entry.line);
    yield entry;
  }
}

/**
 * Ends a run that another one replaces. Its journal is kept, because its calls can still be cancelled, and other files are compared with
 * them. A command may also still be placing it.
 */
export function endRun(run: Run): void {
  const journal = openJournal(run);
  journal.add({ endedAt: new Date().toISOString() });
  journal.close();
}

/** @param file the path of its journal */
export async function deleteRun(file: string): Promise<void> {
  await rm(file, { force: true });
  await rm(cancelJournalPath(file), { force: true });
}

export type RunJournal = Journal<Entry>;

/** Opens a run's journal. @throws CallkeyError `failed` */
export function openJournal({ file }: Run): RunJournal {
  return appendTo(file);
}

/** A line's result in a cancelled run, as printed. The line isn't tried again, even if it was too late, unless it's `not-placed`. */
const cancelledLineSchema = z.object({
  line: z.number().int(),
  status: z.enum(['cancelled', 'too-late', 'not-placed']),
  requestId: z.string().optional(),
  contactId: z.string().optional(),
  cancelledAt: z.string().optional(),
  detail: z.string().optional(),
});
export type CancelledLine = z.infer<typeof cancelledLineSchema>;

/** Returns the path of the cancellation's journal, which is next to the run's own. As long as it exists, the run isn't resumed. */
export function cancelJournalPath(file: string): string {
  return file.replace(/\.jsonl$/, '.cancelled');
}

export function isCancelled(file: string): boolean {
  return existsSync(cancelJournalPath(file));
}

/** Opens the cancellation's journal. A command that's still placing the run stops when it finds this file. @throws CallkeyError `failed` */
export async function openCancelJournal({ file }: Run): Promise<Journal<CancelledLine>> {
  const journal = appendTo<CancelledLine>(cancelJournalPath(file));
  await syncFolder(dirname(file));
  return journal;
}

/** Returns the results so far. Each line has only one, except that a line that was `not-placed` may have another. */
export async function* readCancelledLines({ file }: Run): AsyncGenerator<CancelledLine> {
  if (!isCancelled(file)) return;
  const seen = new LineSet();
  for await (const text of readLines(cancelJournalPath(file))) {
    const entry = cancelledLineSchema.safeParse(parseJson(text)).data;
    if (!entry || seen.has(entry.line)) continue;
    if (entry.status !== 'not-placed') seen.add(entry.line);
    yield entry;
  }
}

/** Returns the lines whose calls were cancelled; with `not-placed`, also those that were never placed. */
export async function cancelledLines(run: Run, ...more: 'not-placed'[]): Promise<LineSet> {
  const lines = new LineSet();
  const statuses: readonly CancelledLine['status'][] = ['cancelled', ...more];
  for await (const { line, status } of readCancelledLines(run)) if (statuses.includes(status)) lines.add(line);
  return lines;
}

/** Reads a journal line by line, since it can have a million entries. */
async function* readLines(file: string, start = 0, bytes = Infinity): AsyncGenerator<string> {
  const keepSmall = keepHeapSmall();
  const input = createReadStream(file, { start, end: start + bytes - 1 });
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    keepSmall();
    yield line;
  }
}

/** `add` throws CallkeyError `failed` if it can't write. */
export type Journal<Entry> = { add(entry: Entry): void; close(): void };

/** Opens a journal to append entries. Creates it if necessary. @throws CallkeyError `failed` */
function appendTo<Entry>(file: string): Journal<Entry> {
  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      throw diskError(error, `Couldn't write the journal ${file}`);
    }
  };
  const descriptor = attempt(() => openSync(file, 'a', privateFile));
  // Ends a line that a crash left half-written, so that the next entry stays readable.
  attempt(() => appendFileSync(descriptor, '\n'));
  return {
    add: (entry) => {
      // If the disk fills up, writeSync may write only a part of the entry, without an error.
      attempt(() => appendFileSync(descriptor, `${JSON.stringify(entry)}\n`));
    },
    /** Syncs once: if an entry is lost to a power failure or a full disk, its line is sent again, and the core recognizes it. */
    close: () => {
      try {
        fsyncSync(descriptor);
      } catch {
        // Ignored: see above.
      }
      closeSync(descriptor);
    },
  };
}
