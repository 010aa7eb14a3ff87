import { hash, randomUUID } from 'node:crypto';
import { rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { parseJson } from '#contract/text/json.ts';
import { errorCode } from '../client/errors.ts';
import type { Timing } from '../client/timing.ts';
import type { Output } from '../terminal/output.ts';
import { diskError, diskReason, listIfExists, readIfExists, stateAdvice, syncFolder, writeDurably } from './durable-file.ts';
import type { Folders } from './folders.ts';

type Remembering = { folders: Folders; output: Output };
type Recording = Remembering & { timing: Timing };

export type RecordedCall = Awaited<ReturnType<typeof recordCall>>;

/** Writes to disk which call is about to be sent. A call with its own request ID doesn't need that, except for `call cancel --last`. */
export async function recordCall(to: Recording, server: string, campaignId: string, call: PlaceCall) {
  const { folders, output } = to;
  const pending = call.requestId === undefined ? await beginCall(to, server, campaignId, call) : undefined;
  const requestId = call.requestId ?? pending?.requestId ?? '';
  if (pending?.adopted) output.note(`The last run of this command ended without a response. Retrying with its request ID, ${requestId}.`);
  // If the file can't be read, the write below replaces it, or reports that it can't be written.
  const lastBefore = await readLastCall(folders, server, campaignId).catch(() => undefined);
  await rememberLastCall(to, server, campaignId, { requestId });
  /** Deletes the record after the response. */
  const settle = async () =>
    pending?.settle().catch((error: unknown) => {
      output.note(
        `Couldn't delete the record of this call (${diskReason(error)}). For the next 24 hours, running the same command won't place a new call, because it sends the same request ID.`,
      );
    });
  /** Restores what was on disk before, because nothing was placed. */
  const undo = async () => {
    await settle();
    await rememberLastCall(to, server, campaignId, lastBefore);
  };
  return { call: { ...call, requestId }, adopted: pending?.adopted ?? false, settle, undo, release: () => pending?.release() };
}

/**
 * A call that hasn't received a response yet. Its file exists from before the request is sent until the response arrives. If the command is
 * killed in between, running it again finds the file and sends the same request ID. The file contains only a digest of the call, and no
 * phone number.
 */
const entrySchema = z.object({ requestId: z.string(), digest: z.string(), at: z.number() });

/** After a day, running the same command places a new call. */
const lifetime = 24 * 60 * 60 * 1000;

/**
 * While a command waits for its response, it touches its file every `betweenBeats` ms. If another command sees the file untouched for
 * `maxSilence` ms, it assumes that the first command is dead. Process IDs don't help, since they're reused and mean nothing in another
 * container. If a stopped or starved command is assumed dead, both commands send the same request ID, so there may be one call too few, but
 * never one too many.
 */
const [betweenBeats, maxSilence] = [100, 1_000];

const advice = `Nothing was sent. ${stateAdvice} Or pass your own ID with --request-id ID, so that no file is needed.`;

/** A command adopts a file by changing the second part of its name. If two commands find the same file, only one can rename it. */
const nameForm = /^([0-9a-f-]{36})\.[0-9a-f-]+\.json$/;
const newPath = (folders: Folders, requestId: string) => join(pendingFolder(folders), `${requestId}.${randomUUID()}.json`);
const pendingFolder = (folders: Folders) => join(folders.state, 'pending');

/** Adopts the call that an earlier command left pending when it was killed, or records a new one. */
async function beginCall({ folders, timing }: Recording, server: string, campaignId: string, call: PlaceCall) {
  const digest = hash('sha256', JSON.stringify([server, campaignId, call]));
  const hold = async () => (await adopt(folders, timing, digest)) ?? (await record(folders, digest));
  const { requestId, path, adopted } = await hold().catch((error: unknown) => {
    throw diskError(error, `Couldn't write to ${pendingFolder(folders)}, where the call is kept until its response arrives`, advice);
  });
  const beat = setInterval(() => utimes(path, new Date(), new Date()).catch(() => undefined), betweenBeats).unref();
  const release = () => clearInterval(beat);
  return { requestId, adopted, settle: () => rm(path, { force: true }), release };
}

type Held = { requestId: string; path: string; adopted: boolean };

async function record(folders: Folders, digest: string): Promise<Held> {
  const requestId = randomUUID();
  const path = newPath(folders, requestId);
  await writeDurably(path, JSON.stringify({ requestId, digest, at: Date.now() }), advice);
  return { requestId, path, adopted: false };
}

async function adopt(folders: Folders, timing: Timing, digest: string): Promise<Held | undefined> {
  for (const { name, requestId } of await pendingFiles(folders)) {
    const path = join(pendingFolder(folders), name);
    const entry = entrySchema.safeParse(parseJson((await readIfExists(path, advice)) ?? '')).data;
    if (!entry) continue;
    if (Date.now() - entry.at > lifetime) await rm(path, { force: true });
    else if (entry.digest === digest && (await isSilent(path, timing))) {
      const claimed = newPath(folders, requestId);
      if (await claim(path, claimed)) return { requestId, path: claimed, adopted: true };
    }
  }
  return undefined;
}

/** Waits to see whether a file is no longer being touched. Compares only the file's own times, because the clock may have been changed. */
async function isSilent(path: string, timing: Timing): Promise<boolean> {
  const touchedAt = async () => (await stat(path, { bigint: true }).catch(() => undefined))?.mtimeNs;
  const before = await touchedAt();
  for (let waited = 0; waited < maxSilence; waited += betweenBeats) {
    await timing.wait(betweenBeats);
    if ((await touchedAt()) !== before) return false;
  }
  return true;
}

async function claim(path: string, claimed: string): Promise<boolean> {
  try {
    await rename(path, claimed);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Deletes a cancelled call's file, so that no command adopts the call: the core would respond to a repeat as if it were still queued. */
export async function deletePendingCall(folders: Folders, requestId: string): Promise<void> {
  for (const file of await pendingFiles(folders)) {
    if (file.requestId !== requestId) continue;
    await rm(join(pendingFolder(folders), file.name), { force: true });
    await syncFolder(pendingFolder(folders));
  }
}

async function pendingFiles(folders: Folders): Promise<{ name: string; requestId: string }[]> {
  return (await listIfExists(pendingFolder(folders), advice)).flatMap((name) => {
    const requestId = nameForm.exec(name)?.[1];
    return requestId === undefined ? [] : [{ name, requestId }];
  });
}

/** The call that `call cancel --last` cancels: the last one sent to a campaign, even if no response arrived. */
const lastCallSchema = z.union([z.object({ requestId: z.string() }), z.object({ fromFile: z.literal(true) })]);
type LastCall = z.infer<typeof lastCallSchema>;

const lastCallFile = (folders: Folders, server: string, campaignId: string) =>
  join(folders.state, 'last', `${hash('sha256', JSON.stringify([server, campaignId])).slice(0, 32)}.json`);

/** Remembers the last call. This is only a convenience: the call is placed even if it can't be remembered. */
export async function rememberLastCall({ folders, output }: Remembering, server: string, campaignId: string, last: LastCall | undefined) {
  const path = lastCallFile(folders, server, campaignId);
  try {
    if (last === undefined) await rm(path, { force: true });
    else await writeDurably(path, JSON.stringify(last));
  } catch (error) {
    output.note(`callkey call cancel --last won't find this call: ${diskReason(error)}.`);
  }
}

export async function readLastCall(folders: Folders, server: string, campaignId: string): Promise<LastCall | undefined> {
  return lastCallSchema.safeParse(parseJson((await readIfExists(lastCallFile(folders, server, campaignId))) ?? '')).data;
}
