import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Adds a table with a single row: a core's RETENTION_DAYS and AUDIT_RETENTION_DAYS at its last start, so that `admin` uses the same values.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  await trx.raw(`CREATE TABLE recorded_retention (
    one integer PRIMARY KEY CHECK (one = 1),
    contact_days integer,
    audit_event_days integer
  )${dialect === 'postgres' ? '' : ' STRICT'}`);
}
