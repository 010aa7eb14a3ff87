import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../domain/error-code.ts';
import { Problem } from '../domain/problem.ts';
import { explainDatabaseError } from './error-text.ts';

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

/** Looks whether the files of a database are still those that its connections have open. */
export type FileGuard = {
  /** @throws when a name no longer leads to the file that it led to at first */
  check(): void;
  /** A connection is about to be opened. */
  opening(): void;
  /** A connection was closed, or could not be opened. */
  closed(): void;
};

/**
 * Writes to a file that was moved, deleted or replaced are lost, and SQLite reports no error: it only checks for this when it creates a
 * rollback journal, which WAL mode does not have. The same goes for the WAL, which holds the newest commits; SQLite deletes it with the last
 * connection, and the next connection creates another.
 */
export function fileGuard(filename: string): FileGuard {
  const wal = `${filename}-wal`;
  const atFirst = identityOf(filename);
  let walAtFirst: string | undefined;
  let connections = 0;
  return {
    check() {
      if (identityOf(filename) !== atFirst) throw new MovedError(filename, 'put the file back with its -wal, and start it again');
      if (connections === 0) return;
      walAtFirst ??= identityOf(wal);
      if (identityOf(wal) !== walAtFirst)
        throw new MovedError(wal, 'which then writes all that it acknowledged into the database, and start it again');
    },
    opening() {
      connections++;
    },
    closed() {
      connections--;
      if (connections === 0) walAtFirst = undefined;
    },
  };
}

function identityOf(file: string): string | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

class MovedError extends Error {
  /** SQLite's own name for this. */
  readonly code = 'SQLITE_READONLY_DBMOVED';

  constructor(file: string, todo: string) {
    super(`The database file ${file} has been moved, deleted or replaced. Stop the core, ${todo}.`);
  }
}
