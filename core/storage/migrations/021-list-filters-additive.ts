import type { Knex } from 'knex';

/**
 * Makes each page of the console's filtered lists one short range of an index, no matter how many rows there are. A call in an uncommon
 * state is added to its index when it ends, so a placed call doesn't cost more. The index also has the time and the key, so that matches
 * can be counted without reading their rows. Events get an index for each combination of filters that no other index supports. An index of
 * the subject alone isn't enough: most subjects are rare, but `calls`, the subject of exports, occurs with every partner.
 */
export async function up(trx: Knex): Promise<void> {
  const statements = [
    `CREATE INDEX calls_in_uncommon_states ON calls (campaign_id, state, contact_id, placed_at, api_key_id)
     WHERE state NOT IN ('queued', 'dialing', 'completed')`,
    `DROP INDEX audit_events_of_subject`,
    `CREATE INDEX audit_events_of_account_by_subject ON audit_events (account_id, subject_id, id, action)`,
    `CREATE INDEX audit_events_of_partner_by_subject ON audit_events (partner_id, subject_id, id, action)`,
    `CREATE INDEX audit_events_of_actor_by_subject ON audit_events (actor_id, subject_id, id, action, account_id, partner_id)`,
    `DROP INDEX audit_events_of_actor_by_action`,
    `CREATE INDEX audit_events_of_actor_by_action ON audit_events (actor_id, action, id, account_id, partner_id)`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
