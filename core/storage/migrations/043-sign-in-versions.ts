import type { Knex } from 'knex';

/**
 * Records which way of signing in is in effect for each user, so that what was proved under an earlier one can be refused: see
 * domain/sign-in/session-states.ts. Also records whose password someone else has known, and which session began with a new link.
 *
 * Codes that sign the app in are valid for a minute, so they're deleted instead of migrated.
 */
export async function up(trx: Knex): Promise<void> {
  await trx.raw(`ALTER TABLE users ADD COLUMN sign_in_version text NOT NULL DEFAULT ''`);
  await trx.raw('ALTER TABLE users ADD COLUMN password_handed_out integer');
  await trx.raw('ALTER TABLE sessions ADD COLUMN began_with_link integer');
  await trx('sign_in_codes').delete();
  await trx.raw(`ALTER TABLE sign_in_codes ADD COLUMN sign_in_version text NOT NULL DEFAULT ''`);
  // Before this, no one recorded who had chosen a password, and the core generated each user's first one.
  await trx.raw('UPDATE users SET password_handed_out = 1');
}
