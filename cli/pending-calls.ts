import { hash, randomUUID } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { PlaceCall } from '#contract/calls.ts';
import { parseJson } from '#contract/json.ts';
import { errorCode } from './client/errors.ts';
import { diskError, listIfExists, readIfExists, stateAdvice, writeDurably } from './durable-file.ts';
import type { Folders } from './xdg.ts';

/**
 * A call without an answer yet: a file that exists from before the request leaves until its answer arrives. Where a command died in
 * between, the same command finds the file and sends the same request id. It holds a digest of the call, and so no phone number.
 */
type PendingCall = {
  requestId: string;
  /** Whether an earlier command chose the request id and died without an answer. */
  adopted: boolean;
  settle(): Promise<void>;
};

const entrySchema = z.object({ requestId: z.string(), digest: z.string(), at: z.number() });

/** After a day, the same command means another call. */
const lifetime = 24 * 60 * 60 * 1000;
/** No command waits this long for its answer: a living process of that number is another one, which the system gave the number again. */
const longestWait = 10 * 60 * 1000;

const advice = `Nothing was sent. ${stateAdvice} Or give the call an id of your own, --request-id ID: then nothing has to be kept.`;

const nameForm = /^([0-9a-f-]{36})\.(\d+)\.json$/;
const folderOf = (folders: Folders) => join(folders.state, 'pending');

/** Adopts the call that an earlier, dead command left pending; or records a new one. */
export async function beginCall(folders: Folders, server: string, campaignId: string, call: PlaceCall): Promise<PendingCall> {
  try {
    return await begin(folders, server, campaignId, call);
  } catch (error) {
    throw diskError(error, `Could not write to ${folderOf(folders)}, where the call is kept until its answer arrives`, advice);
  }
}

async function begin(folders: Folders, server: string, campaignId: string, call: PlaceCall): Promise<PendingCall> {
  const digest = hash('sha256', JSON.stringify([server, campaignId, call]));
  const adopted = await adopt(folders, digest);
  const requestId = adopted ?? randomUUID();
  const path = join(folderOf(folders), `${requestId}.${process.pid}.json`);
  if (adopted === undefined) await writeDurably(path, JSON.stringify({ requestId, digest, at: Date.now() }), advice);
  return { requestId, adopted: adopted !== undefined, settle: () => rm(path, { force: true }) };
}

async function adopt(folders: Folders, digest: string): Promise<string | undefined> {
  for (const { name, requestId, pid } of await pendingFiles(folders)) {
    const path = join(folderOf(folders), name);
    const entry = entrySchema.safeParse(parseJson((await readIfExists(path)) ?? '')).data;
    if (!entry) continue;
    const age = Date.now() - entry.at;
    if (age > lifetime) await rm(path, { force: true });
    else if (entry.digest === digest && !(isAlive(pid) && age < longestWait) && (await claim(path, folders, requestId))) return requestId;
  }
  return undefined;
}

/** Where two commands find the same file, only one can rename it. */
async function claim(path: string, folders: Folders, requestId: string): Promise<boolean> {
  try {
    await rename(path, join(folderOf(folders), `${requestId}.${process.pid}.json`));
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** After a cancel, no command may adopt the call: the core would answer a repeat as if the call were still queued. */
export async function deletePendingCall(folders: Folders, requestId: string): Promise<void> {
  for (const file of await pendingFiles(folders)) {
    if (file.requestId === requestId) await rm(join(folderOf(folders), file.name), { force: true });
  }
}

async function pendingFiles(folders: Folders): Promise<{ name: string; requestId: string; pid: number }[]> {
  return (await listIfExists(folderOf(folders))).flatMap((name) => {
    const [, requestId, pid] = nameForm.exec(name) ?? [];
    return requestId === undefined ? [] : [{ name, requestId, pid: Number(pid) }];
  });
}

function isAlive(pid: number): boolean {
  // The earlier process with our own number is dead: in a container, each command may get the same number.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
