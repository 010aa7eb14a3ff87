import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Adds imports of do-not-call lists. An import is first written here, in a few large rows, and takes effect once it's committed. Then its
 * numbers are moved to the list in small batches. If the command is killed, a core finishes that.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : 'STRICT';
  const statements = [
    // entry contains everything that the new entries have in common, as JSON. committed_at is null until the whole file has been read.
    `CREATE TABLE number_imports (id ${id} PRIMARY KEY, entry text NOT NULL, started_at ${bigint} NOT NULL, committed_at ${bigint}) ${strict}`,
    // phones has one number per line.
    `CREATE TABLE number_import_parts (import_id ${id} NOT NULL, part ${bigint} NOT NULL, phones text NOT NULL, PRIMARY KEY (import_id, part)) ${strict}`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
