import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A second factor takes effect once `confirmed_at` is set. Its secret is encrypted with a key that the database doesn't have. `last_step` is
 * the time step of the last code that was accepted, so that no code works twice. A session with `half_open_until` waits for a code. Earlier
 * releases would accept it as a session, so this migration isn't additive.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const instant = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : 'STRICT';
  const statements = [
    `CREATE TABLE second_factors (
      user_id ${id} PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
      secret text NOT NULL,
      confirmed_at ${instant},
      last_step ${instant}
    ) ${strict}`,
    `CREATE TABLE recovery_codes (
      user_id ${id} NOT NULL REFERENCES second_factors (user_id) ON DELETE CASCADE,
      digest text NOT NULL,
      PRIMARY KEY (user_id, digest)
    ) ${strict}`,
    `ALTER TABLE sessions ADD COLUMN half_open_until ${instant}`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
