import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/** Adds the time when a user was disabled. While it's set, the user and their keys are refused. */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  await trx.raw(`ALTER TABLE users ADD COLUMN disabled_at ${dialect === 'postgres' ? 'bigint' : 'integer'}`);
}
