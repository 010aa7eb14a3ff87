import type { Knex } from 'knex';
import type { AuditEvent } from '../../domain/model.ts';

/**
 * Ends everything that a user has proved so far, because the way in which the user signs in has changed: all sessions except the one that
 * makes the change, and everything that's only half done. See domain/sign-in/sessions.ts.
 *
 * @returns the number of sessions
 */
export async function endProofs(trx: Knex.Transaction, userId: string, { id, session }: AuditEvent): Promise<number> {
  // Change the user first, because the row's lock keeps out a sign-in that has already been checked.
  await trx('users').where({ id: userId }).update({ sign_in_version: id });
  await trx('sign_in_codes').where({ user_id: userId }).delete();
  await trx('second_factors').where({ user_id: userId, confirmed_at: null }).delete();
  const sessions = trx('sessions').where({ user_id: userId });
  return (session === undefined ? sessions : sessions.whereNot({ id: session })).delete();
}
