import type { Knex } from 'knex';
import { canonicalDomain, canonicalEmail } from '#contract/text/email.ts';
import { readableEmail } from '../../domain/directory/readable-email.ts';
import type { UserVisibility } from '../../domain/directory/scope.ts';
import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import type { Millis } from '../../domain/instant.ts';
import type { AuditEvent, User } from '../../domain/model.ts';
import type { Deletion, EndedKey, ListedUser, RevokeOptions, TargetUser, ToKeyEvent, UserChange, UserStore } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { endProofs, recordAudit, recordAudits } from '../audit/audit.ts';
import { either, matching } from '../engine/conditions.ts';
import { countRows, inChunks, inShortTransactions, type Lane, type Lanes, required } from '../engine/database.ts';
import { isUniqueViolation } from '../engine/errors.ts';
import type { ApiKeyRow, LinkRow, SecondFactorRow, UserRow } from '../engine/tables.ts';
import { cancelCallsOfKeys, revokeKeys, toEventScope } from '../keys/api-keys.ts';
import { countQueued } from '../queue/queue.ts';

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
    count: () => countRows(read('users').whereNull('deleted_at')),

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
      const newest = selectNewestKeys(lists.read, userId, limit, after && { id: after.id, created_at: after.at });
      const keys: Pick<ApiKeyRow, 'id' | 'name' | 'created_at' | 'last_used_at' | 'expires_at'>[] = await newest.select(
        ...['id', 'name', 'created_at', 'last_used_at', 'expires_at'],
      );
      const queued = await countQueued(
        lists,
        keys.map(({ id }) => id),
      );
      return {
        apiKeys: keys.map((key) => ({
          id: key.id,
          name: key.name,
          createdAt: key.created_at,
          lastUsedAt: key.last_used_at,
          expiresAt: key.expires_at,
          queuedCalls: queued.get(key.id) ?? 0,
        })),
        sessions: await countRows(lists.read('sessions').where({ user_id: userId, half_open_until: null })),
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
        if (isUniqueViolation(error))
          throw new Problem('conflict', `A user with the email address ${readableEmail(user.email)} already exists.`);
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

    async delete(target, options, event, toKeyEvent) {
      const userId = target.id;
      const deleted = await write.transaction(async (trx) => {
        // This lock keeps anyone from creating keys or sessions for this user, because the foreign key of a new row waits for it.
        if (!(await lockTarget(trx, target))) return null;
        await recordAudit(trx, event);
        const sessions = await endProofs(trx, userId, event);
        await deleteFactor(trx, userId);
        const apiKeys = await countRows(trx('api_keys').where({ creator_id: userId }));
        await deleteLink(trx, userId);
        await trx('users').where({ id: userId }).update(deletedColumns(userId, options));
        const revoked = await deleteStep(database, trx, userId, keysPerTransaction, options, (key) => toKeyEvent(event, key));
        return { revoked, apiKeys, sessions };
      });
      if (!deleted) return null;
      const { revoked, apiKeys, sessions } = deleted;
      await cancelCallsOfKeys(database, revoked.length < keysPerTransaction ? { ids: revoked } : { creatorId: userId }, options);
      return { apiKeys, sessions };
    },

    finishChanges: (toKeyEvent, signal) => finishChanges(background, toKeyEvent, signal),
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

/** Marks a user as deleted. The keys stop working. Keeps the name, because it's shown with the calls of revoked keys. */
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

/** Deletes a user's second factor with its recovery codes. @returns the number of active second factors that were deleted */
export async function deleteFactor(trx: Knex.Transaction, userId: string): Promise<number> {
  const confirmed = await trx('second_factors').where({ user_id: userId }).whereNotNull('confirmed_at').delete();
  await trx('second_factors').where({ user_id: userId }).delete();
  return confirmed;
}

/** Writes the domain in a search in ASCII, as it's stored. */
function toEmailSearch(search: string): string {
  return search.includes('@') ? canonicalEmail(search) : (canonicalDomain(search) ?? search);
}

/** The number of keys that are changed in the same transaction as the user. By default, a user can't have more active keys than this. */
const keysPerTransaction = 1_000;
/** The number of keys that each later transaction changes, in about 10 ms, because other processes have to poll for SQLite's lock. */
const keysPerStep = 200;

function selectUndeleted(trx: Knex.Transaction, id: string): Knex.QueryBuilder<UserRow, UserRow[]> {
  return trx('users').where({ id, deleted_at: null });
}

/** Locks a user that's to be changed. @returns whether the user is as expected: see `TargetUser` */
export async function lockTarget(trx: Knex.Transaction, { id, signInVersion }: TargetUser): Promise<boolean> {
  const unchanged = signInVersion === undefined ? {} : { sign_in_version: signInVersion };
  return (await selectUndeleted(trx, id).where(unchanged).forUpdate().first('id')) !== undefined;
}

/**
 * Revokes the newest keys of a deleted user, so that lists no longer have to skip them, and deletes the user's row along with the last
 * ones. The row must be locked, so that the user can't create more keys.
 *
 * @returns the IDs of the keys
 */
async function deleteStep(
  database: Lane,
  trx: Knex.Transaction,
  id: string,
  max: number,
  options: RevokeOptions,
  toEvent: (key: EndedKey) => AuditEvent,
): Promise<string[]> {
  const user = await trx('users').where({ id }).first('partner_id');
  const keys: KeyOfUser[] = await selectNewestKeys(trx, id, max).select('id', 'name', 'account_id', 'partner_id');
  const ids = keys.map((key) => key.id);
  const revoked = new Set(await revokeKeys(database, trx, ids, options));
  const ended = keys.filter((key) => revoked.has(key.id));
  for (const chunk of inChunks(ended)) {
    const events = chunk.map((key) => toEvent({ id: key.id, name: key.name, eventScope: toEventScope(key, user?.partner_id ?? null) }));
    await recordAudits(trx, events);
  }
  if (revoked.size < max) await trx('users').where({ id }).delete();
  return [...revoked];
}

type KeyOfUser = Pick<ApiKeyRow, 'id' | 'name' | 'account_id' | 'partner_id'>;

type Unfinished = Pick<UserRow, 'id' | 'deleted_at' | 'partner_id' | 'moving_keys'>;
/** Changes some of a user's keys. @returns how many keys it read, and how many of them it changed */
type KeyStep = (size: number) => Promise<{ read: number; changed: number }>;

/** Finishes deleting and moving users. @returns the number of keys @throws the first error, after trying the other users */
async function finishChanges(database: Lane, toKeyEvent: ToKeyEvent, signal: AbortSignal): Promise<number> {
  const unfinished = database.read('users').whereNotNull('deleted_at').orWhereNotNull('moving_keys');
  const users: Unfinished[] = await unfinished.select('id', 'deleted_at', 'partner_id', 'moving_keys');
  let total = 0;
  await eachDespiteErrors(users, signal, async (user) => {
    const step = user.deleted_at === null ? moving(database, user) : deleting(database, user.id, toKeyEvent);
    const counted = async (size: number) => {
      const { read, changed } = await step(size);
      total += changed;
      return read;
    };
    await inShortTransactions(counted, keysPerStep, signal);
  });
  return total;
}

function deleting(database: Lane, id: string, toKeyEvent: ToKeyEvent): KeyStep {
  return (size) =>
    database.write.transaction(async (trx) => {
      // Lock the user's row, because another core may be deleting the same user's keys.
      const user = await trx('users').where({ id }).forUpdate().first('name', 'deleted_at', 'cancelling_since', 'sign_in_version');
      if (user === undefined) return { read: 0, changed: 0 };
      const options = { cancelQueuedCalls: user.cancelling_since !== null, at: required(user.deleted_at, 'deleted_at') };
      const deletion = await readDeletion(trx, { id, ...user });
      const revoked = await deleteStep(database, trx, id, size, options, (key) => toKeyEvent(deletion, key));
      return { read: revoked.length, changed: revoked.length };
    });
}

/** Returns the event of a user's deletion, which was the last change of the user's sign-in. It may have been pruned from the audit log. */
async function readDeletion(trx: Knex.Transaction, user: Pick<UserRow, 'id' | 'name' | 'sign_in_version'>): Promise<Deletion> {
  const row = await trx('audit_events').where({ id: user.sign_in_version }).first('actor_id', 'actor_name', 'address', 'detail');
  const actor = row?.actor_id == null ? null : { id: row.actor_id, name: row.actor_name ?? '' };
  return {
    actor,
    address: row?.address ?? 'local',
    subject: { kind: 'user', id: user.id, name: user.name },
    detail: row?.detail ?? undefined,
  };
}

/**
 * Changes a user. If the user moves to another partner, that partner is also recorded with their keys: with the newest ones in the same
 * transaction, and with the others in batches, because changing a million rows at once would block all other SQLite writers for a minute.
 *
 * The move still takes effect immediately: a key's access is read from its creator in each request (authorization.ts), and so is the right
 * to see a key that's looked up by ID. Only lists use the recorded partner. The new partner's list shows the newest keys, which already
 * have it; the old partner's list skips the user's keys while `moving_keys` is set.
 *
 * A user who gets another type, place or email address loses their sessions.
 *
 * @param event its ID is unique, so that a step of an earlier move detects this one
 * @param before the values that the user must still have
 * @returns the number of ended sessions; null if the user doesn't exist, or has other values
 */
export async function updateUser(
  trx: Knex.Transaction,
  id: string,
  columns: Readonly<Record<string, string | number | null>> & { partner_id: string | null },
  event: AuditEvent,
  before: Partial<UserRow> = {},
): Promise<number | null> {
  // This lock keeps the user from creating keys until the transaction ends.
  const user: Readonly<Record<string, unknown>> | undefined = await selectUndeleted(trx, id).where(before).forNoKeyUpdate().first();
  if (user === undefined) return null;
  const isRename = Object.entries(columns).every(([column, value]) => column === 'name' || user[column] === value);
  await trx('users').where({ id }).update(columns);
  const sessions = isRename ? 0 : await endProofs(trx, id, event);
  if (user['partner_id'] === columns.partner_id) return sessions;
  const newest: string[] = await selectNewestKeys(trx, id, keysPerTransaction).pluck('id');
  await recordPartner(trx, newest, columns.partner_id);
  await trx('users')
    .where({ id })
    .update({ moving_keys: newest.length < keysPerTransaction ? null : event.id });
  return sessions;
}

/** Moves a user's keys, from the newest to the oldest. Keys that an earlier run has moved are only read. */
function moving({ read, write }: Lane, { id, partner_id: partnerId, moving_keys }: Unfinished): KeyStep {
  let last: KeyPosition | undefined;
  return async (size) => {
    const keys: MovingKey[] = await selectNewestKeys(read, id, size, last).select('id', 'created_at', 'partner_id', 'creator_partner_id');
    const left = keys.filter((key) => key.creator_partner_id !== (partnerId ?? key.partner_id)).map((key) => key.id);
    const isLast = keys.length < size;
    if (left.length > 0 || isLast) {
      const isDone = await write.transaction(async (trx) => {
        // If the user was moved again or deleted, that change takes care of the keys.
        const same = await trx('users').where({ id, moving_keys }).forNoKeyUpdate().first('id');
        if (same === undefined) return false;
        await recordPartner(trx, left, partnerId);
        if (isLast) await trx('users').where({ id }).update({ moving_keys: null });
        return true;
      });
      if (!isDone) return { read: 0, changed: 0 };
    }
    last = keys.at(-1);
    return { read: keys.length, changed: left.length };
  };
}

type KeyPosition = Pick<ApiKeyRow, 'id' | 'created_at'>;
type MovingKey = KeyPosition & Pick<ApiKeyRow, 'partner_id' | 'creator_partner_id'>;

/** Selects a user's newest keys. @param olderThan the last key of the previous page or step */
function selectNewestKeys(from: Knex, userId: string, max: number, olderThan?: KeyPosition | null): Knex.QueryBuilder {
  const newest = from('api_keys')
    .where({ creator_id: userId })
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(max);
  return olderThan ? newest.whereRaw('(created_at, id) < (?, ?)', [olderThan.created_at, olderThan.id]) : newest;
}

/** Records the new partner of a user's keys. Keys of a user who became staff stay with the partner for which they were created. */
async function recordPartner(trx: Knex.Transaction, ids: string[], partnerId: string | null): Promise<void> {
  const keys = () => trx('api_keys').whereIn('id', ids);
  // Lock the keys in order, because someone may be revoking them.
  await keys().orderBy('id').forNoKeyUpdate().pluck('id');
  await keys().update({ creator_partner_id: partnerId ?? trx.ref('partner_id') });
}
