import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import { Problem } from '../../domain/problem.ts';
import { normalizeUrl } from './postgres/postgres-address.ts';

export type Dialect = 'sqlite' | 'postgres';

export type Value = string | number | null;
/** A value that a statement returns. Only PostgreSQL has booleans; SQLite has 0 and 1. */
export type Row = Readonly<Record<string, Value | boolean>>;

/**
 * Runs a prepared statement. `rows` is sent as one JSON parameter. Returns the rows of RETURNING or SELECT, and how many rows changed.
 *
 * @param beforeCommit called once there's a connection, before anything is sent that may commit. If it throws, nothing is sent
 * @param transaction the transaction that the statement runs in; by default, it has one of its own
 */
export type Statement<Found = Row> = (rows: BatchRows, beforeCommit?: () => void, transaction?: Knex) => Promise<Changed<Found>>;
export type Changed<Found> = { rows: Found[]; changed: number };
/**
 * What a statement does. `read back` reads through connections that no other statement uses. `end` ends calls, and returns their campaign_id,
 * placed_at and state, because the database also counts them for the charts (engine/ended-calls.ts).
 */
export type Mode = 'read' | 'read back' | 'write' | 'end';
export type BatchRows = readonly (Value | BatchRows)[];

/** What the stores need from a database, in either dialect: the connections of one of the {@link Lanes}, or of one of its shards. */
export type Lane = {
  kind: Dialect;
  /**
   * Whether this is a shard: one of several parts of the calls, each of which Citus keeps on one node. The node also has the tables that
   * statements about calls read, but no others.
   */
  hasOnlyCalls: boolean;
  /** The shards, in the order of their numbers. Empty if the tables of calls aren't divided into shards. */
  shards(): readonly Lane[];
  /** Makes all lanes use the shards that the database was set up with. */
  useShards(count: number): void;
  /** For queries only. A query sees everything that was committed before it started. */
  read: Knex;
  write: Knex;
  /** The number of concurrent batches that was fastest with 64 client connections. */
  maxInFlight: number;
  /** Runs a raw statement, by default on `read`. @returns its rows, hiding how each driver returns them */
  query<Found extends object>(sql: string, bindings?: readonly Value[], on?: Knex): Promise<Found[]>;
  /** Prepares a statement, once on each connection. In it, `{{given}}` is its parameter, and `{{rows}}` are the rows `e.value` in it. */
  prepare<Found extends object = Row>(sql: string, mode: Mode): Statement<Found>;
  /** Closes the writing connection. This rolls back its uncommitted changes. The next write opens another connection. */
  discardWriter(reason: Error): Promise<void>;
  /** Blocks other migrations until the transaction ends. @param signal ends the wait or, after it, the transaction */
  lockMigrations(transaction: Knex.Transaction, signal?: AbortSignal): Promise<void>;
  /**
   * Waits until all statements that write calls and had started before this have ended. Doesn't block any of them.
   *
   * @returns false if one takes longer than any statement may
   */
  awaitWriters(): Promise<boolean>;
  /** Waits until all nodes of a database with shards have what was read so far. @throws NotOnAllNodes if that takes too long */
  awaitNodes(): Promise<void>;
  /** Checks that a write would be durable now. @throws Error with the reason if it wouldn't */
  checkWritable(): Promise<void>;
  /** Returns the size in bytes of the database and of its write-ahead log; null if the server doesn't report it. */
  size(): Promise<{ database: number; wal: number | null }>;
  /** Returns a sentence for each server setting that makes a power failure lose acknowledged writes, and that a client can't change. */
  risks(): Promise<string[]>;
};

/**
 * Determines which statements share connections and queues: requests with a key, sign-ins, the dialer with housekeeping, the console's
 * lists and searches, and the rest of the console. This way, a key's statement never waits for anything that strangers or console users do,
 * except for its turn with SQLite's one writer, and revoking a key never waits for a search. A statement in `lists` that takes too long is
 * interrupted.
 */
export type Lanes = Readonly<Record<'keys' | 'console' | 'lists' | 'sign-in' | 'background', Lane>>;

/** Returns a function that makes something for each lane the first time that it's needed. */
export function perLane<Made>(make: (lane: Lane) => Made): (lane: Lane) => Made {
  const made = new WeakMap<Lane, Made>();
  return (lane) => {
    const existing = made.get(lane);
    if (existing !== undefined) return existing;
    const created = make(lane);
    made.set(lane, created);
    return created;
  };
}

/** All lanes, and by itself, the one for the console. Each opens its first connection when it's first used. */
export type OpenedDatabase = Lane & {
  lanes: Lanes;
  /** All connection pools, by lane. Each list begins with the lane's own pool, followed by its pools for the shards. */
  pools: ReadonlyMap<string, readonly Knex[]>;
  close(): Promise<void>;
};

export type DatabaseLocation = { kind: 'sqlite'; filename: string } | { kind: 'postgres'; url: string };

/**
 * Parses `sqlite:` and a path, or a `postgres://` address. Refuses `sqlite://callkey.db`, because some tools read this as a relative path and
 * others as a host, and no one means a file in the root folder. Also refuses what other programs accept in a path, such as `?mode=ro`, `~/` or
 * `$HOME`: as a part of the name, it would create an empty database.
 *
 * @throws Error whose message says what the address must be, and contains no part of it
 */
export function parseDatabaseUrl(url: string): DatabaseLocation {
  if (/^postgres(ql)?:\/\//.test(url)) return { kind: 'postgres', url: normalizeUrl(url) };
  const path = /^sqlite:(?:\/\/(?=\/)|(?!\/\/))(.+)$/s.exec(url)?.[1];
  if (path === undefined || path.startsWith(':'))
    throw new Error(
      'must be sqlite: followed by a file path (sqlite:./callkey.db or sqlite:/data/callkey.db), or postgres://user:password@host/database',
    );
  if (/[?#%"“”„`$]|^[\s'~]|^file:|[\s']$|[\p{Cc}\p{Cf}]/u.test(path))
    throw new Error(
      'must be sqlite: followed by a file path without ?, #, %, $, quotation marks, ~ and file: at its start, and spaces at its ends',
    );
  // SQLite deletes files with these names when it opens the database whose name is in front.
  if (/-(wal|shm|journal)$/i.test(path))
    throw new Error("must be sqlite: followed by a file path that doesn't end in -wal, -shm or -journal, which SQLite's own files do");
  return { kind: 'sqlite', filename: resolve(path) };
}

/**
 * Waits until every claim that might not have seen a change has ended, and every statement that places calls. After that, no call is dialed
 * or placed in violation of the change.
 *
 * @param unseen what the problem says
 * @throws Problem `unavailable` if one takes longer than any statement may
 */
export async function requireSeen(database: Lane, unseen = savedButUnseen): Promise<void> {
  await database.awaitNodes();
  if (!(await database.awaitWriters())) throw new Problem('unavailable', unseen, { retryAfter: 5 });
}

const savedButUnseen =
  "The change was saved, but a dialer may still be using the previous state. Repeat the request to make sure that it isn't.";

/**
 * Waits until none of what's found now is found anymore.
 *
 * @param rest passes the time between two looks
 * @returns what's still there after `patience` ms
 */
export async function awaitGone(find: () => Promise<string[]>, patience: number, rest: () => Promise<void>): Promise<string[]> {
  const before = new Set(await find());
  for (const deadline = performance.now() + patience; before.size > 0; await rest()) {
    const left = (await find()).filter((id) => before.has(id));
    if (left.length === 0 || performance.now() > deadline) return left;
  }
  return [];
}

export function inTransaction<Result>(on: Knex, run: (trx: Knex.Transaction) => Promise<Result>): Promise<Result> {
  return isTransaction(on) ? run(on) : on.transaction(run);
}

function isTransaction(on: Knex): on is Knex.Transaction {
  return on.isTransaction === true;
}

export function isOnShard(on: Knex): boolean {
  return on.client.config.shard !== undefined;
}

export function getDialect(on: Knex): Dialect {
  // Check the driver's name, because `config.client` is a class here.
  return on.client.driverName === 'pg' ? 'postgres' : 'sqlite';
}

/** Silences knex, because it prints pool errors as plain text on standard output, where the log is JSON. It also throws them. */
export const quiet = { warn: () => undefined, error: () => undefined, deprecate: () => undefined, debug: () => undefined };

/** Returns the value of a column that may be null in the schema, but never is in these rows. A default would hide a broken row. */
export function required<Value>(value: Value | null, column: string): Value {
  if (value === null) throw new Error(`A database row is missing ${column}.`);
  return value;
}

export async function countRows(rows: Knex.QueryBuilder): Promise<number> {
  const { total } = await rows.count({ total: '*' }).first<{ total: number | string }>();
  return Number(total);
}

/** The number of values in one statement, because databases limit the number of parameters. */
const atOnce = 500;

export function* inChunks<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}

/** In ms. A process that waits for SQLite's lock polls it. Without pauses between transactions, it might time out. */
export const pause = 5;

/**
 * Repeats a short transaction until it changes fewer rows than it could, so that other processes can write in between.
 *
 * @param step changes at most `size` rows, and returns how many
 * @returns the total
 */
export async function inShortTransactions(step: (size: number) => Promise<number>, size: number, signal?: AbortSignal): Promise<number> {
  for (let changed = 0; ; ) {
    signal?.throwIfAborted();
    const count = await step(size);
    changed += count;
    if (count < size) return changed;
    await setTimeout(pause);
  }
}

const texts = new Map<string, string>();

/**
 * Reads the statement `NAME.sql` or, if each database needs its own, `NAME.DIALECT.sql`. In it, `{{part}}` stands for the SQL in
 * `parts.part`, or for one of the {@link dialects}' differences.
 *
 * @param near the `import.meta.url` of the file next to it
 */
export function readSql(near: string, name: string, dialect: Dialect, parts: Readonly<Record<string, string>> = {}): string {
  const shared = new URL(`${name}.sql`, near);
  const url = existsSync(shared) ? shared : new URL(`${name}.${dialect}.sql`, near);
  const text = texts.get(url.href) ?? readFileSync(url, 'utf8');
  texts.set(url.href, text);
  return fill(text, parts);
}

/** How each database writes a statement's one parameter, the rows in it, the rows in its first item, the locks of what's selected, and JSON. */
const dialects: Readonly<Record<Dialect, Readonly<Record<string, string>>>> = {
  sqlite: {
    ...{ given: '?1', rows: 'jsonb_each(?1) AS e', firstRows: `jsonb_each(?1, '$[0]') AS e`, forUpdate: '', skipLocked: '' },
    ...{ jsonArray: 'json_array', jsonGroup: 'json_group_array' },
  },
  postgres: {
    ...{ jsonArray: 'json_build_array', jsonGroup: 'json_agg' },
    given: '$1::jsonb',
    rows: 'jsonb_array_elements($1::jsonb) AS e(value)',
    firstRows: 'jsonb_array_elements($1::jsonb->0) AS e(value)',
    forUpdate: 'FOR UPDATE',
    skipLocked: 'FOR UPDATE SKIP LOCKED',
  },
};

export function toStatement(sql: string, dialect: Dialect): string {
  const text = fill(withoutComments(sql), dialects[dialect]);
  if (text.includes('{{')) throw new Error(`A statement has a part without SQL: ${text}`);
  return text;
}

function fill(sql: string, parts: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/\{\{(\w+)\}\}/g, (unknown, part: string) => parts[part] ?? unknown);
}

export function withoutComments(sql: string): string {
  return sql.replaceAll(/\s*--.*$/gm, '').trim();
}
