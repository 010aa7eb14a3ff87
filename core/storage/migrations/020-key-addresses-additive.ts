import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Records from which addresses each key was used in the last few days, so that the calls made with a leaked key can be told apart
 * from the others.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const [bigint, text, end] = dialect === 'postgres' ? ['bigint', 'text COLLATE "C"', ''] : ['integer', 'text', ' WITHOUT ROWID'];
  const statements = [
    `CREATE TABLE api_key_addresses (
      api_key_id ${text} NOT NULL,
      address ${text} NOT NULL,
      used_at ${bigint} NOT NULL,
      PRIMARY KEY (api_key_id, address)
    )${end}`,
    `CREATE INDEX api_key_addresses_newest ON api_key_addresses (api_key_id, used_at)`,
    `CREATE INDEX api_key_addresses_to_forget ON api_key_addresses (used_at)`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
