import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A partner's administrator must see every key that has access to the partner's campaigns. So `creator_partner_id` is now the partner whose
 * administrator sees the key: for keys of staff, who don't have a partner, the partner for which the key was created; otherwise, the
 * creator's partner.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of dialect === 'postgres' ? postgres : sqlite) await trx.raw(statement).options(patient);
}

/** In ms. Changing a million rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

const fill = (table: string) => `UPDATE ${table} SET creator_partner_id = partner_id WHERE creator_partner_id IS NULL`;

/** The triggers on the keys update the counts. */
const sqlite = [fill('api_keys'), fill('retired_api_keys')];

/** The counts are added up immediately. The trigger adds a row for each key, which lists would otherwise have to add up. */
const postgres = [
  `ALTER TABLE api_keys DISABLE TRIGGER tally_moved`,
  `INSERT INTO api_key_tallies
   SELECT 'creator_partner_id', partner_id, count(*) FROM api_keys WHERE creator_partner_id IS NULL GROUP BY partner_id`,
  ...sqlite,
  `ALTER TABLE api_keys ENABLE TRIGGER tally_moved`,
];
