import type { Knex } from 'knex';

/**
 * The code that signs the app in now names the identity that it's for. Otherwise, a person who was unlinked while the app waited could
 * sign in as the user, who may already be linked to someone else. No identity has an empty subject, so codes without one are refused.
 */
export async function up(trx: Knex): Promise<void> {
  await trx.raw(`ALTER TABLE sign_in_codes ADD COLUMN subject text NOT NULL DEFAULT ''`);
}
