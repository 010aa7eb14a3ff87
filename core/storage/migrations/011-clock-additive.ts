import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Stores the latest time from a clock that was right, so that a clock that's far ahead is noticed before it ends calls or erases data. It
 * starts with the latest time in the database; null in a new one.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const bigint = dialect === 'postgres' ? 'bigint' : 'integer';
  const statements = [
    `CREATE TABLE clock (one integer PRIMARY KEY CHECK (one = 1), newest_at ${bigint})${dialect === 'postgres' ? '' : ' STRICT'}`,
    `INSERT INTO clock (one, newest_at) SELECT 1, max(at) FROM (
      SELECT max(at) AS at FROM audit_events UNION ALL SELECT max(last_seen_at) FROM sessions UNION ALL SELECT max(last_used_at) FROM api_keys
    ) AS known`,
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Reading millions of audit events can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
