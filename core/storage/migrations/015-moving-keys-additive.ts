import type { Knex } from 'knex';

/**
 * If a user moves to another partner, the partner recorded with the user's keys is changed in steps. Until the last step, the user's row
 * identifies the move. A list of keys omits the keys of users who are being moved or deleted, and may have to skip a million of them. The
 * index now includes the creator, so the list can skip those keys without reading the table.
 */
export async function up(trx: Knex): Promise<void> {
  const statements = [
    `ALTER TABLE users ADD COLUMN moving_keys text`,
    `CREATE INDEX users_moving_keys ON users (id) WHERE moving_keys IS NOT NULL`,
    ...(['creator_partner', 'account', 'partner'] as const).flatMap((scope) => [
      `DROP INDEX api_keys_by_${scope}`,
      `CREATE INDEX api_keys_by_${scope} ON api_keys (${scope}_id, created_at, id, creator_id)`,
    ]),
  ];
  for (const statement of statements) await trx.raw(statement).options(patient);
}

/** In ms. Creating an index on millions of rows can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };
