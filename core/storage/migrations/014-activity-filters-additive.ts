import type { Knex } from 'knex';

/**
 * The console filters activity by user, action and subject. Its filters offer only users and actions that have events. Each index ends with
 * the ID, so that the newest matches are next to each other in the index. To list the users or actions, a few lookups in an index are enough
 * for each of them, however many events there are.
 */
export async function up(trx: Knex): Promise<void> {
  const statements = [
    `CREATE INDEX audit_events_of_account_by_actor ON audit_events (account_id, actor_id, id)`,
    `CREATE INDEX audit_events_of_partner_by_actor ON audit_events (partner_id, actor_id, id)`,
    `CREATE INDEX audit_events_of_account_by_action ON audit_events (account_id, action, id)`,
    `CREATE INDEX audit_events_of_partner_by_action ON audit_events (partner_id, action, id)`,
    `CREATE INDEX audit_events_of_actor_by_action ON audit_events (actor_id, action, id)`,
    `CREATE INDEX audit_events_of_subject ON audit_events (subject_id, id)`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
