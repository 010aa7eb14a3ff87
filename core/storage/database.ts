import { resolve } from 'node:path';
import type { Knex } from 'knex';

export type Value = string | number | null;
export type Row = Readonly<Record<string, Value>>;

/** The columns of a batch, in the order in which its rows have them. */
export type BatchColumns = Readonly<Record<string, 'text' | 'bigint'>>;

/** Answers a whole batch of rows with one prepared statement. */
export type BatchStatement = (rows: readonly (readonly Value[])[]) => Promise<Row[]>;

/** What the stores need of a database, in either dialect. */
export type Database = {
  kind: 'sqlite' | 'postgres';
  /** For queries alone. Sees all that has been committed when a query starts. */
  read: Knex;
  /** For what changes anything, and for transactions. */
  write: Knex;
  /** The batches that measured best: rows in one, and how many at once. */
  batchSize: number;
  maxInFlight: number;
  /** @param sql a statement on the rows of a batch, which it uses once, as a table expression of the name `r` */
  prepare(columns: BatchColumns, sql: (rows: string) => string, mode: 'read' | 'write'): BatchStatement;
  /** Ends the connection that writes, with what it has not committed. The next write opens another. */
  discardWriter(reason: Error): Promise<void>;
  /**
   * Keeps other migrators out until the transaction ends.
   *
   * @param signal ends the waiting, and whatever the transaction does after it
   */
  lockMigrations(transaction: Knex.Transaction, signal?: AbortSignal): Promise<void>;
  /**
   * Waits until every statement that writes calls, and may have begun before this was asked, has ended. Holds up none of them.
   *
   * @returns false when one takes longer than any may
   */
  awaitWriters(): Promise<boolean>;
  /** @throws with the reason why a write would not be durable now */
  checkWritable(): Promise<void>;
  /** What on the server may lose an acknowledged write in a power cut, and cannot be set from here: a sentence each. */
  risks(): Promise<string[]>;
  close(): Promise<void>;
};

export type DatabaseLocation = { kind: 'sqlite'; filename: string } | { kind: 'postgres'; url: string };

/**
 * Reads `sqlite:` and a path, or a `postgres://` address. Undefined when it is neither. `sqlite://callkey.db` is refused: some tools take
 * that for a relative path, others for one on a host, and a database in the root folder is what nobody means.
 */
export function parseDatabaseUrl(url: string): DatabaseLocation | undefined {
  if (/^postgres(ql)?:\/\//.test(url)) return URL.canParse(url) ? { kind: 'postgres', url } : undefined;
  const path = /^sqlite:(?:\/\/(?=\/)|(?!\/\/))(.+)$/.exec(url)?.[1];
  return path === undefined || path.startsWith(':') ? undefined : { kind: 'sqlite', filename: resolve(path) };
}

/**
 * Knex prints what goes wrong in its pools as plain text on standard output, where the log is JSON. It all comes back as errors, too:
 * those are logged.
 */
export const quiet = { warn: () => undefined, error: () => undefined, deprecate: () => undefined, debug: () => undefined };
