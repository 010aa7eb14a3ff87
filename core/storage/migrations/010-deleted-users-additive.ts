import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A user with many keys is deleted in steps. From the first step on, the row has `deleted_at`, and is also disabled, so that cores of
 * earlier releases refuse the keys, too. `cancelling_since` is set if the keys' queued calls must be cancelled. The second index counts a
 * user's active keys.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  await trx.raw(`ALTER TABLE users ADD COLUMN deleted_at ${bigint}`);
  await trx.raw(`ALTER TABLE users ADD COLUMN cancelling_since ${bigint}`);
  await trx.raw(`CREATE INDEX users_deleted ON users (id) WHERE deleted_at IS NOT NULL`);
  await trx.raw(`CREATE INDEX api_keys_by_creator_end ON api_keys (creator_id, expires_at)`).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
