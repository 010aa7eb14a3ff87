import type { DatabaseLocation, OpenedDatabase } from './database.ts';
import { openPostgres } from './postgres/postgres.ts';
import { openSqlite } from './sqlite/sqlite.ts';

/** @param ifMissing what to do about a SQLite file that doesn't exist */
export function openDatabase(location: DatabaseLocation, ifMissing: 'make' | 'refuse'): OpenedDatabase {
  return location.kind === 'sqlite' ? openSqlite(location.filename, ifMissing) : openPostgres(location.url);
}
