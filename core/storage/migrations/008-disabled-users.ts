import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/** Since when a user has been disabled: they and their keys are refused until the column is null again. */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  await trx.raw(`ALTER TABLE users ADD COLUMN disabled_at ${dialect === 'postgres' ? 'bigint' : 'integer'}`);
}
