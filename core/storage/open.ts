import type { Database, DatabaseLocation } from './database.ts';
import { openPostgres } from './postgres.ts';
import { openSqlite } from './sqlite.ts';

export function openDatabase(location: DatabaseLocation): Database {
  return location.kind === 'sqlite' ? openSqlite(location.filename) : openPostgres(location.url);
}
