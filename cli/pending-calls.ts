import { hash, randomUUID } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { PlaceCall } from '#contract/calls.ts';
import { errorCode } from './client/errors.ts';
import { parseJson, readIfExists, writeDurably } from './durable-file.ts';
import type { Folders } from './xdg.ts';

/**
 * Calls that were sent, or were about to be, and whose answer has not come: each a file, there before its request leaves and gone after
 * its answer. The same command finds the file of one that crashed, and sends its request id again.
 * Holds no phone number: a call is known again by its digest.
 */
export type PendingCall = {
  requestId: string;
  /** Whether an earlier command had made it and not got its answer. */
  takenUp: boolean;
  settle(): Promise<void>;
};

const entrySchema = z.object({ requestId: z.string(), digest: z.string(), at: z.number() });

/** After a day, the same command means another call. */
const remembered = 24 * 60 * 60 * 1000;
/** No command waits for its answer for so long: one that seems to is another process that was given the number of a dead one. */
const longestLife = 10 * 60 * 1000;

const nameForm = /^([0-9a-f-]{36})\.(\d+)\.json$/;
const folderOf = (folders: Folders) => join(folders.state, 'pending');

/** Takes up the call that an earlier, dead command left pending; or notes a new one. */
export async function beginCall(folders: Folders, server: string, campaignId: string, call: PlaceCall): Promise<PendingCall> {
  const digest = hash('sha256', JSON.stringify([server, campaignId, call]));
  const left = await adopt(folders, digest);
  const requestId = left ?? randomUUID();
  const path = join(folderOf(folders), `${requestId}.${process.pid}.json`);
  if (left === undefined) await writeDurably(path, JSON.stringify({ requestId, digest, at: Date.now() }));
  return { requestId, takenUp: left !== undefined, settle: () => rm(path, { force: true }) };
}

async function adopt(folders: Folders, digest: string): Promise<string | undefined> {
  for (const { name, requestId, pid } of await pendingFiles(folders)) {
    const path = join(folderOf(folders), name);
    const entry = entrySchema.safeParse(parseJson((await readIfExists(path)) ?? '')).data;
    if (!entry) continue;
    const age = Date.now() - entry.at;
    if (age > remembered) await rm(path, { force: true });
    else if (entry.digest === digest && !(isAlive(pid) && age < longestLife) && (await claim(path, folders, requestId))) return requestId;
  }
  return undefined;
}

/** Of two commands that find the same file, one gets to rename it. */
async function claim(path: string, folders: Folders, requestId: string): Promise<boolean> {
  try {
    await rename(path, join(folderOf(folders), `${requestId}.${process.pid}.json`));
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** A cancelled call must not be taken up again: its repeat would be answered as if it were still to be dialed. */
export async function forgetCall(folders: Folders, requestId: string): Promise<void> {
  for (const file of await pendingFiles(folders)) {
    if (file.requestId === requestId) await rm(join(folderOf(folders), file.name), { force: true });
  }
}

async function pendingFiles(folders: Folders): Promise<{ name: string; requestId: string; pid: number }[]> {
  const names = await readdir(folderOf(folders)).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names.flatMap((name) => {
    const [, requestId, pid] = nameForm.exec(name) ?? [];
    return requestId === undefined ? [] : [{ name, requestId, pid: Number(pid) }];
  });
}

function isAlive(pid: number): boolean {
  // A process of this one's number has to be dead: in a container, each command may get the same one.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
