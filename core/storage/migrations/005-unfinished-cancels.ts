import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * When a key is revoked, its queued calls are cancelled in steps, after the key has been deleted. A mark on the key's remaining row lets
 * another process finish. A provider's detail about a call is now erased with the rest of the contact data. For calls whose contact data
 * was erased earlier, this migration erases the detail.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  await trx.raw(`ALTER TABLE retired_api_keys ADD COLUMN cancelling_since ${dialect === 'postgres' ? 'bigint' : 'integer'}`);
  await trx.raw(`CREATE INDEX retired_api_keys_cancelling ON retired_api_keys (id) WHERE cancelling_since IS NOT NULL`);
  const erased = `phone IS NULL AND ended_at IS NOT NULL AND detail IS NOT NULL`;
  await trx.raw(`UPDATE calls SET detail = NULL WHERE ${erased}`).options(patient);
}

/** In ms. Reading millions of calls can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
