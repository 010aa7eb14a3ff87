import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Users can sign in with an OpenID Connect provider. A user is linked to at most one identity at a time, and an identity to one user. The
 * app signs in with a code that's valid for a minute. A session's issuer says how it began: null for a password, as in all earlier
 * sessions. A deleted user's row is kept for a while, so the link is deleted separately.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  const instant = dialect === 'postgres' ? 'bigint' : 'integer';
  const strict = dialect === 'postgres' ? '' : ' STRICT';
  const id = dialect === 'postgres' ? 'text COLLATE "C"' : 'text';
  const statements = [
    `CREATE TABLE oidc_links (
      user_id ${id} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
      issuer text NOT NULL,
      subject text NOT NULL,
      linked_at ${instant} NOT NULL,
      UNIQUE (issuer, subject)
    )${strict}`,
    `CREATE TABLE sign_in_codes (
      digest text NOT NULL PRIMARY KEY,
      user_id ${id} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
      issuer text NOT NULL,
      challenge text NOT NULL,
      expires_at ${instant} NOT NULL
    )${strict}`,
    `CREATE INDEX sign_in_codes_by_user ON sign_in_codes (user_id)`,
    `ALTER TABLE sessions ADD COLUMN issuer text`,
  ];
  for (const statement of statements) await trx.raw(statement);
}
