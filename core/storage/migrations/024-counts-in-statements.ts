import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Each statement that adds or removes keys now counts them itself, and on PostgreSQL, so does each statement that ends calls. This replaces
 * triggers, which run once per row, and aren't possible for tables that are spread over several machines. An older core would no longer
 * count anything, so cores can't be upgraded one at a time.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of dialect === 'postgres' ? postgres : sqlite) await trx.raw(statement).options(patient);
}

/** In ms. Locking a busy table can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

const ofKeys = ['tally_added', 'tally_removed', 'tally_moved'];
const sqlite = ofKeys.map((trigger) => `DROP TRIGGER ${trigger}`);
const postgres = [
  ...ofKeys.map((trigger) => `DROP TRIGGER ${trigger} ON api_keys`),
  ...['count_ended', 'count_replaced'].map((trigger) => `DROP TRIGGER ${trigger} ON calls`),
  ...['tally_api_keys', 'tally_moved_api_key', 'count_ended_call', 'count_replaced_call'].map((name) => `DROP FUNCTION ${name}`),
];
