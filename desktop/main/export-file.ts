import type { FileHandle } from 'node:fs/promises';
import { failed } from '../core-answers.ts';
import type { Result } from '../ipc.ts';
import { replaceFile } from './replace-file.ts';

/** Saves a file that the user has chosen. @param write resolves with null to save nothing */
export async function saveChosen<Value>(
  path: string,
  write: (file: FileHandle) => Promise<Value | null>,
  mode?: number,
): Promise<Result<Value | null>> {
  try {
    return { ok: true, value: await replaceFile(path, write, mode) };
  } catch (error) {
    const isFull = error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
    const detail = isFull ? 'The disk is full. An older file with this name is unchanged.' : 'Choose another folder.';
    return failed({ kind: 'refused', code: 'internal', detail, errors: [], retryAfterSeconds: null });
  }
}
