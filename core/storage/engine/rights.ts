import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database, DatabaseLocation } from './database.ts';
import { ownTables } from './postgres/own-objects.ts';
import { requireWritable } from './sqlite/sqlite-file.ts';

/** A core with two roles doesn't migrate, and may not be allowed to delete audit events. */
const tables = ownTables.filter((name) => !name.startsWith('schema_migrations'));
const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const isDispensable = `tables.name = 'audit_events' AND rights.name = 'DELETE'`;

const listOf = (names: readonly string[]) => `(VALUES ${names.map((name) => `('${name}')`).join(', ')})`;
const lacking = `SELECT tables.name AS "table", string_agg(rights.name, ', ') AS missing
  FROM ${listOf(tables)} AS tables (name) CROSS JOIN ${listOf(rights)} AS rights (name)
  WHERE to_regclass(tables.name) IS NOT NULL AND NOT has_table_privilege(to_regclass(tables.name), rights.name) AND NOT (${isDispensable})
  GROUP BY tables.name ORDER BY tables.name`;

/** SQLSTATE 42501, PostgreSQL's response to a statement that the role isn't allowed to run. */
class MissingRights extends Error {
  override name = 'MissingRights';
  code = '42501';
}

/** Checks the rights that a core will need. @throws Error that lists the missing ones */
export async function requireRights(database: Database, location: DatabaseLocation): Promise<void> {
  if (location.kind === 'sqlite') return requireWritable(location.filename);
  const missing = await database.query<{ table: string; missing: string }>(lacking);
  if (missing.length === 0) return;
  const list = missing.map((one) => `${one.missing} on ${one.table}`).join('; ');
  throw new MissingRights(`the role of DATABASE_URL lacks ${list}`);
}

/** In bytes: what the next batches and their checkpoint need. With less, a write may fail at any time. */
const leastRoom = 1_048_576;

/** Free bytes on the database's disk; null on PostgreSQL, which doesn't report it. */
export function freeBytes(location: DatabaseLocation): number | null {
  if (location.kind === 'postgres') return null;
  const { bavail, bsize } = statfsSync(dirname(location.filename));
  return bavail * bsize;
}

/** @throws Error if there's hardly any space left */
export function requireRoom(location: DatabaseLocation): void {
  const free = freeBytes(location);
  if (free !== null && free < leastRoom) throw new NoRoom(`Only ${free} bytes are free on the database's disk.`);
}

class NoRoom extends Error {
  override name = 'NoRoom';
  code = 'ENOSPC';
}
