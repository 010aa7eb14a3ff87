import { open, rename, rm } from 'node:fs/promises';
import { failed } from '../core-answers.ts';
import { copyExport, type Exported } from '../csv-export.ts';
import type { Result } from '../ipc.ts';

type Saving = { body: AsyncIterable<Uint8Array>; filePath: string; signal: AbortSignal; onRows: (rows: number) => void };

/** Saves a file as it arrives. It has a temporary name until it's complete, so that cancelling doesn't overwrite an older file. */
export async function saveExport({ body, filePath, signal, onRows }: Saving): Promise<Result<Exported | null>> {
  const partPath = `${filePath}.part`;
  try {
    const file = await open(partPath, 'w');
    const write = (text: string) => file.appendFile(text);
    const exported = await copyExport({ body, write, onRows, signal }).finally(() => file.close());
    if (exported) await rename(partPath, filePath);
    else await rm(partPath, { force: true });
    return { ok: true, value: exported };
  } catch {
    await rm(partPath, { force: true }).catch(() => undefined);
    return failed({ ...notSaved, errors: [], retryAfterSeconds: null });
  }
}

const notSaved = { kind: 'refused', code: 'internal', detail: 'Couldn’t save the file. Choose another folder.' } as const;
