import type { Knex } from 'knex';
import { canonicalDomain, canonicalEmail } from '#contract/text/email.ts';
import type { UserVisibility } from '../../domain/directory/scope.ts';
import type { Millis } from '../../domain/instant.ts';
import type { AuditEvent, ListedUser, User, UserChange } from '../../domain/model.ts';
import type { RevokeOptions, UserStore } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { endProofs, recordAudit } from '../audit/audit.ts';
import { required } from '../engine/columns.ts';
import { either, matching } from '../engine/conditions.ts';
import type { Lanes } from '../engine/database.ts';
import { isUniqueViolation } from '../engine/errors.ts';
import type { ApiKeyRow, LinkRow, SecondFactorRow, UserRow } from '../engine/tables.ts';
import { cancelDeletedUsersCalls, cancelInFlight } from '../keys/api-keys.ts';
import { countQueued } from '../queue/queue.ts';
import { deleteStep, finishDeletions, finishMoves, keysPerTransaction, lockTarget, selectUndeleted, updateUser } from './keys-of-users.ts';
import { deleteFactor } from './second-factors.ts';

/** A user with the names of their account and partner. */
export type NamedUserRow = Pick<UserRow, 'id' | 'email' | 'name' | 'user_type' | 'account_id' | 'partner_id'> & {
  account_name: string | null;
  partner_name: string | null;
};

type FactorRow = Pick<SecondFactorRow, 'confirmed_at'>;
type CredentialsRow = NamedUserRow & FactorRow & Pick<UserRow, 'password_hash' | 'password_expires_at' | 'disabled_at' | 'sign_in_version'>;
type ListedRow = NamedUserRow &
  FactorRow &
  Pick<UserRow, 'created_at' | 'last_sign_in_at' | 'disabled_at' | 'sign_in_version'> & { api_keys: number | string | null } & {
    [Column in keyof Omit<LinkRow, 'user_id'>]: LinkRow[Column] | null;
  };

export function selectUsers(from: Knex): Knex.QueryBuilder<NamedUserRow, NamedUserRow[]> {
  return from('users as u')
    .leftJoin('accounts as ua', 'ua.id', 'u.account_id')
    .leftJoin('partners as up', 'up.id', 'u.partner_id')
    .whereNull('u.deleted_at')
    .select(
      'u.id',
      'u.email',
      'u.name',
      'u.user_type',
      'u.account_id',
      'u.partner_id',
      'ua.name as account_name',
      'up.name as partner_name',
    );
}

/** Selects users for a list, each with the number of their keys. */
function selectListed(read: Knex): Knex.QueryBuilder {
  return selectUsers(read)
    .leftJoin('oidc_links as l', 'l.user_id', 'u.id')
    .leftJoin('second_factors as sf', 'sf.user_id', 'u.id')
    .select('u.created_at', 'u.last_sign_in_at', 'u.disabled_at', 'u.sign_in_version')
    .select('l.issuer', 'l.subject', 'l.linked_at', 'sf.confirmed_at')
    .select(read('api_keys').count().where('creator_id', read.ref('u.id')).as('api_keys'));
}

function narrowToVisibleUsers(users: Knex.QueryBuilder, visibility: UserVisibility): Knex.QueryBuilder {
  switch (visibility.kind) {
    case 'account':
      return users.where('u.account_id', visibility.accountId);
    case 'partner':
      return users.where('u.partner_id', visibility.partnerId);
    case 'staff':
      return users.where('u.user_type', 'staff');
    case 'all':
      return users;
    case 'nothing':
      return users.whereRaw('1 = 0');
  }
}

export function toUser(row: NamedUserRow): User {
  const { account_id, account_name, partner_id, partner_name } = row;
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    userType: row.user_type,
    account:
      account_id === null
        ? null
        : { id: account_id, name: required(account_name, 'account_name'), partnerId: required(partner_id, 'partner_id') },
    partner: row.user_type !== 'partner' || partner_id === null ? null : { id: partner_id, name: required(partner_name, 'partner_name') },
  };
}

function toListedUser(row: ListedRow): ListedUser {
  const { issuer, subject, linked_at } = row;
  return {
    ...toUser(row),
    partnerName: row.partner_name,
    createdAt: row.created_at,
    lastSignInAt: row.last_sign_in_at,
    disabledAt: row.disabled_at,
    apiKeys: Number(row.api_keys),
    link: issuer === null || subject === null || linked_at === null ? null : { issuer, subject, linkedAt: linked_at },
    hasSecondFactor: row.confirmed_at !== null,
    signInVersion: row.sign_in_version,
  };
}

export function userStore({ console: database, 'sign-in': signIn, lists, background }: Lanes): UserStore {
  const { kind, read, write } = database;
  return {
    async count() {
      const counted = await read('users').whereNull('deleted_at').count({ users: '*' }).first<{ users: number | string }>();
      return Number(counted.users);
    },

    async list(visibility, { search, awaySince }, after, limit) {
      const users = narrowToVisibleUsers(selectListed(lists.read), visibility).orderBy(['u.created_at', 'u.id']).limit(limit);
      if (after) users.whereRaw('(u.created_at, u.id) > (?, ?)', [after.at, after.id]);
      if (awaySince !== null) users.whereRaw('COALESCE(u.last_sign_in_at, u.created_at) < ?', [awaySince]);
      if (search !== '') {
        const { sql, values } = either(
          matching(kind, 'u.name', search, 'anywhere'),
          matching(kind, 'u.email', toEmailSearch(search), 'anywhere'),
        );
        users.whereRaw(sql, values);
      }
      const rows: ListedRow[] = await users;
      return rows.map(toListedUser);
    },

    async find(visibility, id) {
      const [row]: ListedRow[] = await narrowToVisibleUsers(selectListed(read), visibility).where('u.id', id);
      await database.awaitNodes();
      return row ? toListedUser(row) : null;
    },

    async deletionImpact(userId, after, limit) {
      const newest = lists
        .read('api_keys')
        .select('id', 'name', 'created_at', 'last_used_at', 'expires_at')
        .where('creator_id', userId)
        .orderBy([
          { column: 'created_at', order: 'desc' },
          { column: 'id', order: 'desc' },
        ])
        .limit(limit);
      if (after) newest.whereRaw('(created_at, id) < (?, ?)', [after.at, after.id]);
      const keys: Pick<ApiKeyRow, 'id' | 'name' | 'created_at' | 'last_used_at' | 'expires_at'>[] = await newest;
      const queued = await countQueued(
        lists,
        keys.map(({ id }) => id),
      );
      const counted = await lists
        .read('sessions')
        .where({ user_id: userId, half_open_until: null })
        .count({ sessions: '*' })
        .first<{ sessions: number | string }>();
      return {
        apiKeys: keys.map((key) => ({
          id: key.id,
          name: key.name,
          createdAt: key.created_at,
          lastUsedAt: key.last_used_at,
          expiresAt: key.expires_at,
          queuedCalls: queued.get(key.id) ?? 0,
        })),
        sessions: Number(counted.sessions),
      };
    },

    async findByEmail(email) {
      const [row]: CredentialsRow[] = await selectUsers(signIn.read)
        .leftJoin('second_factors as sf', 'sf.user_id', 'u.id')
        .select('u.password_hash', 'u.password_expires_at', 'u.disabled_at', 'u.sign_in_version', 'sf.confirmed_at')
        .where('u.email', email);
      if (!row) return null;
      return {
        user: toUser(row),
        passwordHash: row.password_hash,
        passwordExpiresAt: row.password_expires_at,
        disabledAt: row.disabled_at,
        hasSecondFactor: row.confirmed_at !== null,
        signInVersion: row.sign_in_version,
      };
    },

    async create(user, event) {
      try {
        await write.transaction(async (trx) => {
          await trx('users').insert({
            id: user.id,
            email: user.email,
            name: user.name,
            user_type: user.userType,
            account_id: user.accountId,
            partner_id: user.partnerId,
            password_hash: user.password.hash,
            password_expires_at: user.password.expiresAt,
            password_handed_out: user.password.isHandedOut ? 1 : null,
            created_at: user.createdAt,
          });
          await recordAudit(trx, event);
        });
      } catch (error) {
        if (isUniqueViolation(error)) throw new Problem('conflict', `A user with the email address ${user.email} already exists.`);
        throw error;
      }
    },

    async setPassword(user, { hash, expiresAt, isHandedOut }, event) {
      return write.transaction(async (trx) => {
        if (!(await lockTarget(trx, user))) return false;
        const origin = isHandedOut === undefined ? {} : { password_handed_out: isHandedOut ? 1 : null };
        await trx('users')
          .where({ id: user.id })
          .update({ password_hash: hash, password_expires_at: expiresAt, ...origin });
        await recordAudit(trx, event);
        return true;
      });
    },

    async change(userId, before, changed, event) {
      return write.transaction(async (trx) => {
        if ((await updateUser(trx, userId, toColumns(changed), event, toColumns(before))) === null) return false;
        await recordAudit(trx, event);
        return true;
      });
    },

    async setDisabled(user, disabledAt, event) {
      return write.transaction(async (trx) => ((await lockTarget(trx, user)) ? setDisabled(trx, user.id, disabledAt, event) : null));
    },

    async delete(target, options, event) {
      const userId = target.id;
      const deleted = await write.transaction(async (trx) => {
        // This lock keeps anyone from creating keys or sessions for this user, because the foreign key of a new row waits for it.
        if (!(await lockTarget(trx, target))) return null;
        await recordAudit(trx, event);
        const sessions = await endProofs(trx, userId, event);
        await deleteFactor(trx, userId);
        const apiKeys = await countKeys(trx, userId);
        await deleteLink(trx, userId);
        await trx('users').where({ id: userId }).update(deletedColumns(userId, options));
        const revoked = await deleteStep(database, trx, userId, keysPerTransaction, options);
        return { revoked, apiKeys, sessions };
      });
      if (!deleted) return null;
      const { revoked, apiKeys, sessions } = deleted;
      if (revoked.length < keysPerTransaction) await cancelInFlight(database, revoked, options);
      else await cancelDeletedUsersCalls(database, userId, options);
      return { apiKeys, sessions };
    },

    finishDeletions: (signal) => finishDeletions(background, signal),
    finishMoves: (signal) => finishMoves(background, signal),
  };
}

function toColumns({ name, userType, accountId, partnerId }: UserChange) {
  return { name, user_type: userType, account_id: accountId, partner_id: partnerId };
}

/** Disables or enables a user, and ends the user's sessions. @returns the number of sessions, or null if nothing changed */
export async function setDisabled(
  trx: Knex.Transaction,
  userId: string,
  disabledAt: Millis | null,
  event: AuditEvent,
): Promise<number | null> {
  // Update the user first, because the row's lock keeps out a sign-in that has already checked the password.
  const user = selectUndeleted(trx, userId);
  const changed = await (disabledAt === null ? user.whereNotNull('disabled_at') : user.whereNull('disabled_at')).update({
    disabled_at: disabledAt,
  });
  return changed === 0 ? null : recordAudit(trx, event);
}

/**
 * Returns the columns that mark a user as deleted. The user's keys stop working immediately, and the email address and the external ID can
 * be used again. The name is kept, because it's shown with the calls of revoked keys.
 */
function deletedColumns(id: string, { at, cancelQueuedCalls }: RevokeOptions): Partial<UserRow> {
  const now = at;
  const free = { email: `deleted:${id}`, external_id: null };
  return { deleted_at: now, disabled_at: now, cancelling_since: cancelQueuedCalls ? now : null, moving_keys: null, ...free };
}

/** Deletes a user's link, and the codes that sign the user in to the app. @returns whether there was a link */
export async function deleteLink(trx: Knex.Transaction, userId: string): Promise<boolean> {
  await trx('sign_in_codes').where({ user_id: userId }).delete();
  return (await trx('oidc_links').where({ user_id: userId }).delete()) > 0;
}

/** Counts a user's keys. */
async function countKeys(trx: Knex.Transaction, creatorId: string): Promise<number> {
  const counted = await trx('api_keys').where({ creator_id: creatorId }).count({ keys: '*' }).first<{ keys: number | string }>();
  return Number(counted.keys);
}

/** Writes the domain in a search in ASCII, as it's stored. */
function toEmailSearch(search: string): string {
  return search.includes('@') ? canonicalEmail(search) : (canonicalDomain(search) ?? search);
}
