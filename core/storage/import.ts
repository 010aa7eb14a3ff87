import type { Knex } from 'knex';
import type { ImportedThing, ImportKind, ImportStore } from '../domain/import.ts';
import type { NewPassword } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { record } from './audit.ts';
import type { Database } from './database.ts';
import { isUniqueViolation } from './faults.ts';
import { inSteps } from './steps.ts';

type ThingRow = {
  id: string;
  external_id: string;
  name: string;
  partner_id: string | null;
  account_id: string | null;
  email: string | null;
  user_type: string | null;
};

export function importStore({ read, write }: Database): ImportStore {
  return {
    async knownUsers(externalIds) {
      return new Set((await findThings(read, 'users', externalIds)).keys());
    },

    run: (work) =>
      write.transaction((trx) =>
        work({
          find: (kind, externalIds) => findThings(trx, kind, externalIds),

          async add(kind, thing, password, event) {
            const row = { id: thing.id, external_id: thing.externalId, created_at: event.at.toMillis(), ...columnsOf(kind, thing) };
            await trx(kind)
              .insert({ ...row, ...passwordColumns(password) })
              .catch(takenEmail(thing));
            await record(trx, event);
          },

          async change(kind, thing, event) {
            await trx(kind).where({ id: thing.id }).update(columnsOf(kind, thing)).catch(takenEmail(thing));
            // A key's place in the lists follows its creator. One whose creator is staff now is seen where it was made.
            if (kind === 'users') {
              const seenBy = thing.partnerId ?? trx.ref('partner_id');
              await trx('api_keys').where({ creator_id: thing.id }).update({ creator_partner_id: seenBy });
            }
            await record(trx, event);
          },
        }),
      ),
  };
}

async function findThings(from: Knex, kind: ImportKind, externalIds: readonly string[]): Promise<Map<string, ImportedThing>> {
  const found = new Map<string, ImportedThing>();
  for (const some of inSteps(externalIds)) {
    const rows: ThingRow[] = await thingsOf(from, kind).whereIn('t.external_id', some);
    for (const row of rows) {
      found.set(row.external_id, {
        externalId: row.external_id,
        id: row.id,
        name: row.name,
        partnerId: row.partner_id ?? null,
        accountId: row.account_id ?? null,
        email: row.email ?? null,
        userType: row.user_type ?? null,
      });
    }
  }
  return found;
}

function thingsOf(from: Knex, kind: ImportKind): Knex.QueryBuilder {
  const things = from(`${kind} as t`).select('t.*');
  return kind === 'campaigns' ? things.join('accounts as a', 'a.id', 't.account_id').select('a.partner_id') : things;
}

function columnsOf(kind: ImportKind, { name, partnerId, accountId, email, userType }: ImportedThing) {
  switch (kind) {
    case 'partners':
      return { name };
    case 'accounts':
      return { name, partner_id: partnerId };
    case 'campaigns':
      return { name, account_id: accountId };
    case 'users':
      return { name, partner_id: partnerId, account_id: accountId, email, user_type: userType };
  }
}

function passwordColumns(password: NewPassword | null) {
  return password ? { password_hash: password.hash, password_expires_at: password.expiresAt?.toMillis() ?? null } : {};
}

function takenEmail({ email }: ImportedThing) {
  return (error: unknown): never => {
    throw isUniqueViolation(error) ? new Problem('conflict', `Another user has the e-mail address ${email} already.`) : error;
  };
}
