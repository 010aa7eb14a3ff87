import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { migrationsTable } from '../migrate.ts';
import type { DatabaseLocation, Lane } from './database.ts';
import { ownTables } from './postgres/own-objects.ts';
import { requireWritable } from './sqlite/sqlite-file.ts';

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

/** Thrown if rights are missing. PostgreSQL itself rejects a statement that the role isn't allowed to run with SQLSTATE 42501. */
class MissingRights extends Error {
  override name = 'MissingRights';
  code = '42501';
}

/** Checks the rights that a core will need. @throws Error that lists the missing ones */
export async function requireRights(database: Lane, location: DatabaseLocation): Promise<void> {
  if (location.kind === 'sqlite') return requireWritable(location.filename);
  const missing = await database.query<{ table: string; missing: string }>(lacking);
  if (missing.length === 0) return;
  const list = missing.map((right) => `${right.missing} on ${right.table}`).join('; ');
  throw new MissingRights(`the role in DATABASE_URL lacks ${list}`);
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
  if (free !== null && free < minFreeBytes) throw new NoRoom(`Only ${free} bytes are free on the database's disk.`);
}

class NoRoom extends Error {
  override name = 'NoRoom';
  code = 'ENOSPC';
}
