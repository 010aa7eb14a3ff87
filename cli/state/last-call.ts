import { hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '#contract/text/json.ts';
import type { Output } from '../terminal/output.ts';
import { diskReason, readIfExists, writeDurably } from './durable-file.ts';
import type { Folders } from './xdg.ts';

/** The call that `call cancel --last` cancels: the last one sent to a campaign, even if no response arrived. */
const lastCallSchema = z.union([z.object({ requestId: z.string() }), z.object({ fromFile: z.literal(true) })]);
type LastCall = z.infer<typeof lastCallSchema>;

type Remembering = { folders: Folders; output: Output };

const lastCallFile = (folders: Folders, server: string, campaignId: string) =>
  join(folders.state, 'last', `${hash('sha256', JSON.stringify([server, campaignId])).slice(0, 32)}.json`);

/** Remembers the last call. This is only a convenience: the call is placed even if it can't be remembered. */
export async function rememberLastCall({ folders, output }: Remembering, server: string, campaignId: string, last: LastCall | undefined) {
  try {
    await writeLastCall(folders, server, campaignId, last);
  } catch (error) {
    output.note(`callkey call cancel --last won't find this call: ${diskReason(error)}.`);
  }
}

/** Writes the last call to disk. @param last undefined to delete it */
async function writeLastCall(folders: Folders, server: string, campaignId: string, last: LastCall | undefined): Promise<void> {
  const path = lastCallFile(folders, server, campaignId);
  if (last === undefined) await rm(path, { force: true });
  else await writeDurably(path, JSON.stringify(last));
}

export async function readLastCall(folders: Folders, server: string, campaignId: string): Promise<LastCall | undefined> {
  return lastCallSchema.safeParse(parseJson((await readIfExists(lastCallFile(folders, server, campaignId))) ?? '')).data;
}
