import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { EndedSignIn, ImportedEntity, ImportKind, ImportStore } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { recordAudit, recordAudits } from '../audit/audit.ts';
import { inChunks, type Lanes } from '../engine/database.ts';
import { isLocked, isUniqueViolation } from '../engine/errors.ts';
import { deleteLink, setDisabled, updateUser } from '../users/users.ts';

type EntityRow = {
  id: string;
  external_id: string;
  name: string;
  partner_id: string | null;
  account_id: string | null;
  email: string | null;
  user_type: string | null;
  disabled_at: Millis | null;
};

export function importStore({ background: { read, write } }: Lanes): ImportStore {
  return {
    async find(kind, externalIds) {
      const entities = new Map<string, ImportedEntity>();
      const found = read(`${kind} as t`).select('t.*');
      if (kind === 'campaigns') found.join('accounts as a', 'a.id', 't.account_id').select('a.partner_id');
      for (const chunk of inChunks(externalIds)) {
        const rows: EntityRow[] = await found.clone().whereIn('t.external_id', chunk);
        for (const row of rows) {
          entities.set(row.external_id, {
            externalId: row.external_id,
            id: row.id,
            name: row.name,
            partnerId: row.partner_id ?? null,
            accountId: row.account_id ?? null,
            email: row.email ?? null,
            userType: row.user_type ?? null,
            disabled: kind === 'users' ? row.disabled_at !== null : null,
          });
        }
      }
      return entities;
    },

    async findEmails(emails) {
      const owners = new Map<string, string | null>();
      for (const chunk of inChunks(emails)) {
        const rows: { email: string; external_id: string | null }[] = await read('users')
          .select('email', 'external_id')
          .whereIn('email', chunk);
        for (const row of rows) owners.set(row.email, row.external_id);
      }
      return owners;
    },

    write: (kind, { added, changed }) =>
      retryWhileLocked(() =>
        write.transaction(async (trx) => {
          const rows = added.map(({ entity, password, event }) => ({
            ...{ id: entity.id, external_id: entity.externalId, created_at: event.at },
            ...toColumns(kind, entity),
            ...(password && { password_hash: password.hash, password_expires_at: password.expiresAt, password_handed_out: 1 }),
          }));
          const ended = new Map<string, EndedSignIn>();
          for (const { entity, event, unlinking } of changed) {
            if (!event) continue;
            // The owner of the earlier address may have chosen the password, so the first sign-in with the provider has to end it.
            const columns = { ...userColumns(entity), ...(unlinking && { password_handed_out: 1 }) };
            const changing = kind === 'users' ? updateUser(trx, entity.id, columns, event) : update(trx, kind, entity);
            const sessions = await changing.catch(rejectTaken);
            if (sessions === null) throw concurrentChangeError();
            const unlinked = unlinking !== null && (await deleteLink(trx, entity.id));
            if (unlinked) await recordAudit(trx, unlinking);
            ended.set(entity.id, { sessions, unlinked });
          }
          // Insert last, because a new user may get the old email address of a changed one.
          for (const chunk of inChunks(rows)) await trx(kind).insert(chunk).catch(rejectTaken);
          const events = [...added, ...changed].map(({ event }) => event).filter((event) => event !== null);
          for (const chunk of inChunks(events)) await recordAudits(trx, chunk);
          for (const { entity, disabling } of [...added, ...changed]) {
            if (!disabling) continue;
            const sessions = await setDisabled(trx, entity.id, entity.disabled ? disabling.at : null, disabling);
            if (sessions === null) throw concurrentChangeError();
          }
          return ended;
        }),
      ),
  };
}

/**
 * The maximum number of times that each step is tried. Each attempt waits for SQLite's lock, which a busy core may take again and again.
 */
const attempts = 12;

async function retryWhileLocked<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attempts || !isLocked(error)) throw error;
    }
  }
}

/** @returns null if the entity doesn't exist */
async function update(trx: Knex.Transaction, kind: ImportKind, entity: ImportedEntity): Promise<0 | null> {
  return (await trx(kind).where({ id: entity.id }).update(toColumns(kind, entity))) > 0 ? 0 : null;
}

function toColumns(kind: ImportKind, entity: ImportedEntity) {
  const { name, partnerId, accountId } = entity;
  switch (kind) {
    case 'partners':
      return { name };
    case 'accounts':
      return { name, partner_id: partnerId };
    case 'campaigns':
      return { name, account_id: accountId };
    case 'users':
      return userColumns(entity);
  }
}

function userColumns({ name, partnerId, accountId, email, userType }: ImportedEntity) {
  return { name, partner_id: partnerId, account_id: accountId, email, user_type: userType };
}

/** Reports a conflict: the import has already checked the file, so someone else must have created something since then. */
function rejectTaken(error: unknown): never {
  throw isUniqueViolation(error) ? concurrentChangeError() : error;
}

function concurrentChangeError(): Problem {
  return new Problem('conflict', 'Someone else changed the same data during the import. Run the import again.');
}
