import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Problem } from '../domain/problem.ts';
import { databaseErrorText } from './error-text.ts';

/** Creates the file, readable by its owner only, or requires it. @throws Problem `not-found` or `unavailable` */
export function prepareFile(filename: string, ifMissing: 'make' | 'refuse'): void {
  if (ifMissing === 'make') makeFile(filename);
  else requireFile(filename);
}

function makeFile(filename: string): void {
  try {
    mkdirSync(dirname(filename), { recursive: true, mode: 0o700 });
    closeSync(openSync(filename, 'a', 0o600));
  } catch (error) {
    throw notOpened(filename, error);
  }
}

/** @throws Problem `not-found` or `unavailable` */
export function requireFile(filename: string): void {
  try {
    statSync(filename);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw notOpened(filename, error);
    throw new Problem('not-found', `There is no database ${filename}. Set DATABASE_URL to the one that is meant, or start a core first.`);
  }
}

function notOpened(filename: string, error: unknown): Problem {
  return new Problem('unavailable', `The database file ${filename} cannot be opened: ${databaseErrorText(error) ?? String(error)}.`, {
    cause: error,
  });
}

/**
 * Writes to a file that was moved, deleted or replaced are lost, and SQLite reports no error: it only checks for this when it creates a
 * rollback journal, which WAL mode does not have.
 *
 * @returns a function that throws if the name no longer leads to the same file
 */
export function fileGuard(filename: string): () => void {
  const identity = () => {
    const found = statSync(filename, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  };
  const atFirst = identity();
  return () => {
    if (identity() !== atFirst) throw new MovedError(filename);
  };
}

class MovedError extends Error {
  /** SQLite's own name for this. */
  readonly code = 'SQLITE_READONLY_DBMOVED';

  constructor(filename: string) {
    super(
      `The database file ${filename} has been moved, deleted or replaced. Stop the core, put the file back with its -wal, and start it again.`,
    );
  }
}
