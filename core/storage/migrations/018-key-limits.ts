import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A key can be limited to addresses and to a number of calls per day. `limits_version` changes with each change, so that the statement that
 * places or cancels a call needs only one comparison to make sure that the process checked the current limits. It's null for a key without
 * limits. An older core would ignore the limits, so cores can't be upgraded one at a time.
 *
 * `api_key_days` counts the calls of a limited key by day. `detail` of an audit event says what was changed, or why.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of statements(dialect)) await trx.raw(statement).options(patient);
}

/** In ms. Locking a busy table can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

function statements(dialect: Dialect): string[] {
  const [bigint, text, end] = dialect === 'postgres' ? ['bigint', 'text COLLATE "C"', ''] : ['integer', 'text', ' WITHOUT ROWID'];
  return [
    `ALTER TABLE api_keys ADD COLUMN limits_version text`,
    `ALTER TABLE api_keys ADD COLUMN addresses text`,
    `ALTER TABLE api_keys ADD COLUMN calls_per_day ${bigint}`,
    `ALTER TABLE api_keys ADD COLUMN time_zone text`,
    `ALTER TABLE api_keys ADD COLUMN last_used_address text`,
    `ALTER TABLE api_key_usage ADD COLUMN refused ${bigint} NOT NULL DEFAULT 0`,
    `ALTER TABLE audit_events ADD COLUMN detail text`,
    `CREATE TABLE api_key_days (
      api_key_id ${text} NOT NULL,
      day ${text} NOT NULL,
      placed ${bigint} NOT NULL,
      PRIMARY KEY (api_key_id, day)
    )${end}`,
    `CREATE INDEX api_key_days_to_forget ON api_key_days (day)`,
  ];
}
