import type { Knex } from 'knex';
import { canonicalEmail } from '#contract/text/email.ts';

/**
 * Writes the domains of email addresses in ASCII, as they're now looked up. If another user already has that address, neither is changed,
 * because they may be two people: `admin check` names them.
 */
export async function up(trx: Knex): Promise<void> {
  const users: { id: string; email: string }[] = await trx('users').select('id', 'email').orderBy('created_at').orderBy('id');
  const taken = new Set(users.map(({ email }) => email));
  for (const { id, email } of users) {
    const canonical = canonicalEmail(email);
    if (taken.has(canonical)) continue;
    taken.add(canonical);
    await trx('users').where({ id }).update({ email: canonical });
  }
}
