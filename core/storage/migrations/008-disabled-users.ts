import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/** Adds the time when a user was disabled. The user and their keys are refused until the column is null again. */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  await trx.raw(`ALTER TABLE users ADD COLUMN disabled_at ${dialect === 'postgres' ? 'bigint' : 'integer'}`);
}
