import { hash, randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '#contract/json.ts';
import { listIfExists, privateFile, readIfExists, writeDurably } from '../durable-file.ts';
import type { Folders } from '../xdg.ts';

/**
 * The placing of one file in one campaign. Its journal is $XDG_STATE_HOME/callkey/runs/*.jsonl: this header, then an entry for each line
 * of the file that was placed, then the end. It holds the numbers of lines, and no phone number or name.
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
  /** Empty the first time that a file is placed in a campaign; random with --again. */
  repetition: z.string(),
  /** How many lines to place, and how many wrong lines were skipped. */
  calls: z.number().int(),
  skipped: z.number().int(),
  /** Whether every line has a request id of its own, by which the core knows the line in any file. */
  ownRequestIds: z.boolean(),
  startedAt: z.iso.datetime(),
});
export type RunHeader = z.infer<typeof headerSchema>;

const placedSchema = z.object({ line: z.number().int(), contactId: z.string(), placedAt: z.string() });
export type PlacedLine = z.infer<typeof placedSchema>;
const endSchema = z.object({ completedAt: z.string() });

export type Run = {
  header: RunHeader;
  /** The journal's path. */
  file: string;
  placed: Map<number, PlacedLine>;
  /** Null while some lines are not placed. */
  completedAt: string | null;
};

const folderOf = (folders: Folders) => join(folders.state, 'runs');

/** A journal is deleted this long after its last entry. */
const retention = 90 * 24 * 60 * 60 * 1000;

/**
 * The request id of a line without one of its own. Made from file and campaign alone: another machine, or this one without its journal,
 * sends the same id for the same line, and the core places no second call.
 */
export function lineRequestId({ campaignId, content, repetition }: RunHeader, line: number): string {
  return `file-${hash('sha256', JSON.stringify([campaignId, content, repetition])).slice(0, 32)}-${line}`;
}

/** The short name that `call resume RUN` takes. */
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

/** All runs, the newest first. */
export async function readRuns(folders: Folders): Promise<Run[]> {
  const names = (await listIfExists(folderOf(folders))).filter((name) => name.endsWith('.jsonl'));
  const runs = await Promise.all(names.map((name) => readRun(join(folderOf(folders), name))));
  return runs.filter((run) => run !== undefined).toSorted((one, other) => (one.header.startedAt < other.header.startedAt ? 1 : -1));
}

async function readRun(file: string): Promise<Run | undefined> {
  // Another command may have deleted it since the folder was listed.
  const found = await stat(file).catch(() => undefined);
  if (found && Date.now() - found.mtimeMs > retention) await rm(file, { force: true });
  return parseJournal(file, (await readIfExists(file)) ?? '');
}

/** @returns undefined where the text does not begin with a header */
export function parseJournal(file: string, text: string): Run | undefined {
  const [first = '', ...rest] = text.split('\n');
  const header = headerSchema.safeParse(parseJson(first)).data;
  if (!header) return undefined;
  const run: Run = { header, file, placed: new Map(), completedAt: null };
  for (const line of rest) readEntry(run, parseJson(line));
  return run;
}

/** Ignores an entry that a crash left half written: the line is sent again, under the same request id. */
function readEntry(run: Run, entry: unknown): void {
  const placed = placedSchema.safeParse(entry).data;
  if (placed) run.placed.set(placed.line, placed);
  run.completedAt = endSchema.safeParse(entry).data?.completedAt ?? run.completedAt;
}

export async function deleteRun(run: Run): Promise<void> {
  await rm(run.file, { force: true });
}

export type RunJournal = { add(entry: PlacedLine | { completedAt: string }): void; close(): void };

/** Syncs once, at the end: an entry that a power cut loses costs one more request, which the core answers as a repeat. */
export function openJournal(run: Run): RunJournal {
  const file = openSync(run.file, 'a', privateFile);
  // Ends a line that a crash left half written, so that the next entry stays readable.
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
