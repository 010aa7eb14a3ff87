import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../domain/error-code.ts';
import { Problem } from '../domain/problem.ts';
import { explainDatabaseError } from './error-text.ts';

/** Makes sure that the file is there. A new one can be read by its owner alone. @throws Problem `not-found` or `unavailable` */
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
    if (codeOf(error) !== 'ENOENT') throw notOpened(filename, error);
    throw new Problem('not-found', `There is no database ${filename}. Set DATABASE_URL to the one that is meant, or start a core first.`);
  }
}

function notOpened(filename: string, error: unknown): Problem {
  return new Problem(
    'unavailable',
    `The database file ${filename} cannot be opened: ${explainDatabaseError(error)?.cause ?? String(error)}.`,
    {
      cause: error,
    },
  );
}

/**
 * A file that is moved, deleted or replaced under open connections takes their writes with it: SQLite goes on without a word. (It looks for
 * this itself only where it makes a rollback journal, which WAL mode does not have.)
 *
 * @returns what throws when the name no longer leads to the file that it led to at first
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
  /** What SQLite itself calls it. */
  readonly code = 'SQLITE_READONLY_DBMOVED';

  constructor(filename: string) {
    super(
      `The database file ${filename} has been moved, deleted or replaced. Stop the core, put the file back with its -wal, and start it again.`,
    );
  }
}
