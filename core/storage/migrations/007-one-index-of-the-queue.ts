import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Removes the index of calls by key. With a thousand keys, each batch rewrote a thousand of its pages. The index of the queue, which grows
 * at its end, now contains the key, and is scanned to find a key's queued calls. Calls that are due at the same time stay in their order of
 * arrival.
 */
export async function up(trx: Knex, _dialect: Dialect): Promise<void> {
  await trx.raw(`DROP INDEX calls_queued_by_api_key`);
  await trx.raw(`DROP INDEX calls_due`);
  await trx.raw(`CREATE INDEX calls_due ON calls (account_id, due_at, placed_at, api_key_id) WHERE due_at IS NOT NULL`).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
