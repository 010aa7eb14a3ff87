import { hash, randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../client/errors.ts';
import { parseJson, privateFile, readIfExists, writeDurably } from '../durable-file.ts';
import type { Folders } from '../xdg.ts';

/**
 * The placing of one file in one campaign. Its journal is a file of JSON lines: what it is, then each line of the file that has been
 * placed, then the end. No phone number or name is in it: a line is known by its number.
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
  /** Empty for the first time that a file is placed in a campaign; random where it is to be placed once more. */
  repetition: z.string(),
  /** Lines to place, and lines that were skipped since they are wrong. */
  calls: z.number().int(),
  skipped: z.number().int(),
  /** Whether each line has a request id of its own, so that it is known again in any file. */
  ownRequestIds: z.boolean(),
  startedAt: z.iso.datetime(),
});
export type RunHeader = z.infer<typeof headerSchema>;

const placedSchema = z.object({ line: z.number().int(), contactId: z.string(), placedAt: z.string() });
export type PlacedLine = z.infer<typeof placedSchema>;
const endSchema = z.object({ completedAt: z.string() });

export type Run = {
  header: RunHeader;
  file: string;
  placed: Map<number, PlacedLine>;
  /** When the last of its lines had been placed; null while some are still to be. */
  completedAt: string | null;
};

const folderOf = (folders: Folders) => join(folders.state, 'runs');

/** Journals that nothing was written to for so long are cleared away. */
const kept = 90 * 24 * 60 * 60 * 1000;

/**
 * The request id of a line. It follows from the file and the campaign, so that the same line gets the same one wherever and however
 * often the file is placed, journal or not: the core then knows it again. A line's own request id goes before it.
 */
export function lineRequestId({ campaignId, content, repetition }: RunHeader, line: number): string {
  return `file-${hash('sha256', JSON.stringify([campaignId, content, repetition])).slice(0, 32)}-${line}`;
}

/** The short name by which `call resume` takes a run. */
export function runName({ file }: Run): string {
  return file.slice(-14, -6);
}

export async function startRun(folders: Folders, header: RunHeader): Promise<Run> {
  const { server, campaignId, content, repetition } = header;
  const file = join(folderOf(folders), `${hash('sha256', JSON.stringify([server, campaignId, content, repetition])).slice(0, 32)}.jsonl`);
  await writeDurably(file, `${JSON.stringify(header)}\n`);
  return { header, file, placed: new Map(), completedAt: null };
}

export function newRepetition(): string {
  return randomUUID();
}

/** All runs there are, the newest first. */
export async function readRuns(folders: Folders): Promise<Run[]> {
  const names = await readdir(folderOf(folders)).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const runs = await Promise.all(names.filter((name) => name.endsWith('.jsonl')).map((name) => readRun(join(folderOf(folders), name))));
  return runs.filter((run) => run !== undefined).toSorted((one, other) => (one.header.startedAt < other.header.startedAt ? 1 : -1));
}

async function readRun(file: string): Promise<Run | undefined> {
  // Another command may have cleared it away by now.
  const found = await stat(file).catch(() => undefined);
  if (found && Date.now() - found.mtimeMs > kept) await rm(file, { force: true });
  const [first = '', ...rest] = ((await readIfExists(file)) ?? '').split('\n');
  const header = headerSchema.safeParse(parseJson(first)).data;
  if (!header) return undefined;
  const run: Run = { header, file, placed: new Map(), completedAt: null };
  for (const line of rest) readEntry(run, parseJson(line));
  return run;
}

/** What a crash left half written is no entry: its line is sent again, under the same request id. */
function readEntry(run: Run, entry: unknown): void {
  const placed = placedSchema.safeParse(entry).data;
  if (placed) run.placed.set(placed.line, placed);
  run.completedAt = endSchema.safeParse(entry).data?.completedAt ?? run.completedAt;
}

export async function deleteRun(run: Run): Promise<void> {
  await rm(run.file, { force: true });
}

export type RunJournal = { add(entry: PlacedLine | { completedAt: string }): void; close(): void };

/** Entries are synced at the end alone: one that a power cut loses costs a request that the core answers as a repeat. */
export function openJournal(run: Run): RunJournal {
  const file = openSync(run.file, 'a', privateFile);
  // What a crash left half written must not take the next entry with it.
  writeSync(file, '\n');
  return {
    add: (entry) => {
      writeSync(file, `${JSON.stringify(entry)}\n`);
    },
    close: () => {
      fsyncSync(file);
      closeSync(file);
    },
  };
}
