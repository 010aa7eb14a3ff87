import type { Knex } from 'knex';

/**
 * Nobody may have a key to a partner's campaigns that the partner's administrator cannot see. So `creator_partner_id` is from now on the
 * partner whose administrator sees the key: the one that its creator is under, and for keys of staff, who are under none, the one that the
 * key was made for. The triggers on the keys bring the tallies along.
 */
export async function up(trx: Knex): Promise<void> {
  for (const table of ['api_keys', 'retired_api_keys']) {
    await trx.raw(`UPDATE ${table} SET creator_partner_id = partner_id WHERE creator_partner_id IS NULL`).options(patient);
  }
}

/** In ms: a million rows take longer than any other statement may. */
const patient = { query_timeout: 3_600_000 };
