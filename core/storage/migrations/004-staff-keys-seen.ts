import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Nobody may have a key to a partner's campaigns that the partner's administrator cannot see. So `creator_partner_id` is from now on the
 * partner whose administrator sees the key: the one that its creator is under, and for keys of staff, who are under none, the one that the
 * key was made for.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of dialect === 'postgres' ? postgres : sqlite) await trx.raw(statement).options(patient);
}

/** In ms: a million rows take longer than any other statement may. */
const patient = { query_timeout: 3_600_000 };

const fill = (table: string) => `UPDATE ${table} SET creator_partner_id = partner_id WHERE creator_partner_id IS NULL`;

/** The triggers on the keys bring the tallies along. */
const sqlite = [fill('api_keys'), fill('retired_api_keys')];

/** Tallied at once: the trigger adds a row for each key, which lists would sum up until they are folded. */
const postgres = [
  `ALTER TABLE api_keys DISABLE TRIGGER tally_moved`,
  `INSERT INTO api_key_tallies
   SELECT 'creator_partner_id', partner_id, count(*) FROM api_keys WHERE creator_partner_id IS NULL GROUP BY partner_id`,
  ...sqlite,
  `ALTER TABLE api_keys ENABLE TRIGGER tally_moved`,
];
