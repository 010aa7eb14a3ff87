import { type Dirent, readdirSync, statfsSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { type StopScope, stopScopes } from '#contract/protection/dialing.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ClockStore } from '../../domain/ports.ts';
import { type DatabaseLocation, type Lane, type Lanes, required } from './database.ts';
import { requireWritable } from './sqlite/sqlite-file.ts';
import { migrationsTable, ownTables } from './tables.ts';

/**
 * The tables that a core needs rights to. If another role migrates the schema, the core doesn't need rights to the migrations' table, and
 * its role may not be allowed to delete audit events.
 */
const tables = ownTables.filter((name) => name !== migrationsTable);
const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const isDispensable = `tables.name = 'audit_events' AND rights.name = 'DELETE'`;

const listSql = (names: readonly string[]) => `(VALUES ${names.map((name) => `('${name}')`).join(', ')})`;
const lacking = `SELECT tables.name AS "table", string_agg(rights.name, ', ') AS missing
  FROM ${listSql(tables)} AS tables (name) CROSS JOIN ${listSql(rights)} AS rights (name)
  WHERE to_regclass(tables.name) IS NOT NULL AND NOT has_table_privilege(to_regclass(tables.name), rights.name) AND NOT (${isDispensable})
  GROUP BY tables.name ORDER BY tables.name`;

/** Checks the rights that a core will need. @throws Error that lists the missing ones */
export async function requireRights(database: Lane, location: DatabaseLocation): Promise<void> {
  if (location.kind === 'sqlite') return requireWritable(location.filename);
  const missing = await database.query<{ table: string; missing: string }>(lacking);
  if (missing.length === 0) return;
  const list = missing.map((right) => `${right.missing} on ${right.table}`).join('; ');
  // PostgreSQL itself rejects a statement that the role isn't allowed to run with this SQLSTATE.
  throw Object.assign(new Error(`the role in DATABASE_URL lacks ${list}`), { code: '42501' });
}

/** Returns the databases next to a new one: in the same folder or, in PostgreSQL, in other schemas. One of them may be the intended one. */
export async function findNeighbors(database: Lane, location: DatabaseLocation): Promise<string[]> {
  if (location.kind === 'postgres') {
    const schemas = await database.query<{ name: string }>(
      `SELECT schemaname AS name FROM pg_tables WHERE tablename = '${migrationsTable}' AND schemaname <> current_schema()`,
    );
    return schemas.map(({ name }) => `the schema ${name}`);
  }
  const [folder, own] = [dirname(location.filename), basename(location.filename)];
  // Compare only names. Closing a file, even one that was only read, would drop all locks that SQLite holds on it in this process
  // (https://sqlite.org/howtocorrupt.html).
  const files = listFolder(folder).filter((entry) => entry.isFile() && entry.name !== own);
  return files.filter(({ name }) => extname(name) === extname(own)).map(({ name }) => join(folder, name));
}

/** Returns nothing if this user may create files in the folder, but not list it. */
function listFolder(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** In bytes: the space that the next batches and their checkpoint need. With less, a write may fail at any time. */
const minFreeBytes = 1_048_576;

/** Returns the free bytes on the database's disk; null on PostgreSQL, because it doesn't report them. */
export function freeBytes(location: DatabaseLocation): number | null {
  if (location.kind === 'postgres') return null;
  const { bavail, bsize } = statfsSync(dirname(location.filename));
  return bavail * bsize;
}

/** Checks the free space. @throws Error if there's hardly any left */
export function requireRoom(location: DatabaseLocation): void {
  const free = freeBytes(location);
  if (free !== null && free < minFreeBytes)
    throw Object.assign(new Error(`Only ${free} bytes are free on the database's disk.`), { code: 'ENOSPC' });
}

export async function readDatabaseStats(database: Lane, free: number | null) {
  const [[counted], stops, { database: size, wal }] = await Promise.all([
    // The action is written as text, because the condition of a partial index doesn't match parameters.
    database.query<{ migrations: number; sessions: number; last_backup_at: number | null }>(
      `SELECT (SELECT count(*) FROM ${migrationsTable}) AS migrations, (SELECT count(*) FROM sessions WHERE half_open_until IS NULL) AS sessions,
         (SELECT max(at) FROM audit_events WHERE action = 'backup.created') AS last_backup_at`,
    ),
    database.query<{ scope: StopScope; stops: number }>('SELECT scope, count(*) AS stops FROM dialing_stops GROUP BY scope'),
    database.size(),
  ]);
  if (!counted) throw new Error('A count returned no row.');
  const { migrations, sessions, last_backup_at } = counted;
  return {
    migrations,
    sessions,
    stops: Object.fromEntries(stopScopes.map((scope) => [scope, stops.find((row) => row.scope === scope)?.stops ?? 0])),
    /** In epoch seconds; 0 if the audit events don't contain one. */
    lastBackup: (last_backup_at ?? 0) / 1_000,
    /** PostgreSQL may not report the size of the write-ahead log to this user. */
    bytes: { database: size, ...(wal === null ? {} : { wal }) },
    free: free ?? Number.NaN,
  };
}

/** SQL: the database server's time. Only PostgreSQL may be on another machine with its own clock. */
const serverAt = { sqlite: 'NULL', postgres: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint' } as const;

export function clockStore({ background: { kind, query, write } }: Lanes): ClockStore {
  return {
    async read() {
      const [row] = await query<{ newest_at: Millis | null; server_at: Millis | null }>(
        `SELECT newest_at, ${serverAt[kind]} AS server_at FROM clock`,
      );
      const { newest_at, server_at } = required(row ?? null, 'the clock');
      return { newestAt: newest_at, serverAt: server_at };
    },

    async advance(now) {
      await write('clock')
        .where((behind) => behind.whereNull('newest_at').orWhere('newest_at', '<', now))
        .update({ newest_at: now });
    },

    async set(now) {
      await write('clock').update({ newest_at: now });
    },
  };
}
