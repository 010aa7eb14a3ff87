import { resolve } from 'node:path';
import type { Knex } from 'knex';
import { isPostgresUrl } from './postgres/postgres-hosts.ts';

export type Dialect = 'sqlite' | 'postgres';

export type Value = string | number | null;
/** What a statement returns. Only PostgreSQL has booleans; SQLite has 0 and 1. */
export type Row = Readonly<Record<string, Value | boolean>>;

/** The columns of a batch, in the order in which its rows have them. */
export type BatchColumns = Readonly<Record<string, 'text' | 'bigint'>>;

/**
 * Answers a whole batch of rows with one prepared statement.
 *
 * @param beforeCommit is called when there is a connection, before anything is sent that may commit. If it throws, nothing is sent
 */
type BatchStatement<Result = Row[]> = (rows: BatchRows, beforeCommit?: () => void) => Promise<Result>;
export type BatchRows = readonly (readonly Value[])[];

/** What the stores need of a database, in either dialect: one lane of it. */
export type Database = {
  kind: Dialect;
  /** For queries only. A query sees everything that was committed before it started. */
  read: Knex;
  /** For changes and transactions. */
  write: Knex;
  /** The size of a batch, and the number of batches at once, that measured best with 64 connections. */
  batchSize: number;
  maxInFlight: number;
  /** Runs a raw statement, on `read` unless told otherwise. @returns its rows, which each driver shapes in its own way */
  query<Found extends object>(sql: string, bindings?: readonly Value[], on?: Knex): Promise<Found[]>;
  /**
   * @param sql makes a statement of a table expression named `r`, the rows of a batch, which it uses once
   * @param mode `read back` reads through connections that no other statement uses
   */
  prepare(columns: BatchColumns, sql: (rows: string) => string, mode: 'read' | 'read back' | 'write'): BatchStatement;
  /** Like {@link prepare}, for a change of which only the number of changed rows counts. */
  prepareChange(columns: BatchColumns, sql: (rows: string) => string): BatchStatement<number>;
  /** Closes the writing connection and rolls back what it has not committed. The next write opens another. */
  discardWriter(reason: Error): Promise<void>;
  /**
   * Keeps other migrations out until the transaction ends.
   *
   * @param signal ends the wait, and then the transaction
   */
  lockMigrations(transaction: Knex.Transaction, signal?: AbortSignal): Promise<void>;
  /**
   * Waits until all statements have ended that write calls and started before this. Blocks none of them.
   *
   * @returns false if one takes longer than any may
   */
  awaitWriters(): Promise<boolean>;
  /** @throws Error with the reason if a write would not be durable now */
  checkWritable(): Promise<void>;
  /** Bytes of the database and of its write-ahead log; null where the server does not tell. */
  size(): Promise<{ database: number; wal: number | null }>;
  /** Server settings that may lose an acknowledged write in a power cut, and that a client cannot set: a sentence each. */
  risks(): Promise<string[]>;
};

/**
 * Whose statements share connections and queues: requests with a key, sign-ins, the dialer with housekeeping, the console's lists and searches,
 * and the rest of the console. So nothing that a stranger or a user of the console does stands before the statement of a key, and no search
 * before a revoke. A statement of `lists` that takes too long is interrupted.
 */
export type Lane = 'keys' | 'lists' | 'sign-in' | 'background';

/** The console's lane, and those beside it. Each opens its first connection when it is used. */
export type OpenedDatabase = Database & {
  lanes: Readonly<Record<Lane, Database>>;
  /** All pools of connections, by name. */
  pools: ReadonlyMap<string, Knex>;
  /** Closes the connections of all lanes. */
  close(): Promise<void>;
};

export type DatabaseLocation = { kind: 'sqlite'; filename: string } | { kind: 'postgres'; url: string };

/**
 * Reads `sqlite:` and a path, or a `postgres://` address; undefined if it is neither. Refuses `sqlite://callkey.db`: some tools read it as a
 * relative path, others as a host, and nobody means a file in the root folder.
 */
export function parseDatabaseUrl(url: string): DatabaseLocation | undefined {
  if (/^postgres(ql)?:\/\//.test(url)) return isPostgresUrl(url) ? { kind: 'postgres', url } : undefined;
  const path = /^sqlite:(?:\/\/(?=\/)|(?!\/\/))(.+)$/.exec(url)?.[1];
  return path === undefined || path.startsWith(':') ? undefined : { kind: 'sqlite', filename: resolve(path) };
}

/**
 * Knex prints pool errors as plain text on standard output, where the log is JSON. It throws the same errors, too, and those are logged.
 */
export const quiet = { warn: () => undefined, error: () => undefined, deprecate: () => undefined, debug: () => undefined };
