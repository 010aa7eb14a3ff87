import type { Database, DatabaseLocation } from './database.ts';
import { openPostgres } from './postgres.ts';
import { openSqlite } from './sqlite.ts';

/** @param ifMissing what to do about a SQLite file that is not there */
export function openDatabase(location: DatabaseLocation, ifMissing: 'make' | 'refuse'): Database {
  return location.kind === 'sqlite' ? openSqlite(location.filename, ifMissing) : openPostgres(location.url);
}
