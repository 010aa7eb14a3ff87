import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/** Names tables and columns for what they contain. */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const statements = [
    'ALTER TABLE retired_api_keys RENAME TO revoked_api_keys',
    'ALTER TABLE revoked_api_keys RENAME COLUMN retired_at TO revoked_at',
    'ALTER TABLE api_key_tallies RENAME TO api_key_counts',
    'ALTER TABLE sign_in_attempts RENAME COLUMN points TO attempts',
    'ALTER TABLE sign_in_attempts RENAME COLUMN expire TO expires_at',
    'ALTER TABLE partners RENAME COLUMN lists_numbers TO has_do_not_call',
    'ALTER TABLE partners RENAME COLUMN lists_version TO do_not_call_version',
    'ALTER TABLE accounts RENAME COLUMN lists_numbers TO has_do_not_call',
    ...(dialect === 'postgres' ? indexesOnPostgres : indexesOnSqlite),
  ];
  for (const statement of statements) await trx.raw(statement);
}

export async function upCalls(trx: Knex): Promise<void> {
  await trx.raw('ALTER TABLE calls RENAME COLUMN told_late_at TO late_outcome_at');
  await trx.raw('ALTER TABLE calls RENAME COLUMN answered_held_until TO response_held_until');
}

const indexesOnPostgres = [
  'ALTER TABLE revoked_api_keys RENAME CONSTRAINT retired_api_keys_pkey TO revoked_api_keys_pkey',
  'ALTER INDEX retired_api_keys_cancelling RENAME TO revoked_api_keys_cancelling',
  'ALTER INDEX api_key_tallies_of_scope RENAME TO api_key_counts_of_scope',
];
const indexesOnSqlite = [
  'DROP INDEX retired_api_keys_cancelling',
  'CREATE INDEX revoked_api_keys_cancelling ON revoked_api_keys (id) WHERE cancelling_since IS NOT NULL',
];
