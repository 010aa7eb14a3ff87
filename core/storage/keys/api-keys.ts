import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import type { KeyVisibility } from '../../domain/directory/scope.ts';
import { type Millis, oneDay, plus } from '../../domain/instant.ts';
import type { ApiKey, OwningScope } from '../../domain/model.ts';
import type { ApiKeyDetails, ApiKeyStore, DaysLeft, Place, RevokeOptions } from '../../domain/ports.ts';
import { CallsNotCancelled, unauthorized } from '../../domain/problem.ts';
import { recordAudit, recordAudits } from '../audit/audit.ts';
import { countRows, inChunks, type Lane, type Lanes, perLane, readSql, required } from '../engine/database.ts';
import type { ApiKeyRow, KeyUsageRow, UserRow } from '../engine/tables.ts';
import { cancelQueued, countQueued, type KeysWithCalls, keysHandingOff } from '../queue/queue.ts';
import { effectiveTimeZone, parseLimits, reachedAccount, reachedPartner } from './authorization.ts';

/** Narrows a query on keys, named `k`, for lists. Uses the partner that's recorded with each key, because it has an index. */
export function narrowToVisible(keys: Knex.QueryBuilder, visibility: KeyVisibility): Knex.QueryBuilder {
  switch (visibility.kind) {
    case 'own':
      return keys.where('k.creator_id', visibility.userId);
    case 'account':
      return keys.where((either) => either.where('k.account_id', visibility.accountId).orWhere('k.creator_id', visibility.userId));
    case 'partner':
      return keys.where('k.creator_partner_id', visibility.partnerId);
    case 'tenancy':
      return keys.where(visibility.tenancy.kind === 'account' ? 'k.account_id' : 'k.partner_id', visibility.tenancy.id);
    case 'all':
      return keys;
    case 'nothing':
      return keys.whereRaw('1 = 0');
  }
}

/** Splits a visibility into parts that each have an index. For both at once, a database would read and sort all keys of the account. */
function listParts(visibility: KeyVisibility): [KeyVisibility, ...KeyVisibility[]] {
  if (visibility.kind !== 'account') return [visibility];
  const { accountId, userId } = visibility;
  return [
    { kind: 'tenancy', tenancy: { kind: 'account', id: accountId } },
    { kind: 'own', userId },
  ];
}

/**
 * Narrows a query on keys, named `k`, and their creators, named `u`, for keys that are looked up one by one. `updateUser` in users/users.ts
 * says why this is different from lists.
 */
export function narrowFoundToVisible(keys: Knex.QueryBuilder, visibility: KeyVisibility): Knex.QueryBuilder {
  if (visibility.kind !== 'partner') return narrowToVisible(keys, visibility);
  return keys.whereRaw('coalesce(u.partner_id, k.partner_id) = ?', [visibility.partnerId]);
}

/**
 * Selects keys by ID, named `k`. They're selected first, because otherwise SQLite would search all keys of a user instead of a hundred IDs.
 */
export function keysById(read: Knex, table: 'api_keys' | 'revoked_api_keys', ids: readonly string[]): Knex.QueryBuilder {
  return read('some as k').withMaterialized('some', read(table).whereIn('id', ids));
}

/**
 * Counts the visible keys, each scope in an index of its own. Hidden keys are counted separately and subtracted, because the index of an
 * account or partner doesn't contain the creator. With 100,000 keys in a scope, this takes 5 ms on SQLite and 60 ms on PostgreSQL.
 */
async function countVisible(read: Knex, visibility: KeyVisibility): Promise<number> {
  const keys = (narrowed: KeyVisibility) => narrowToVisible(read('api_keys as k'), narrowed);
  if (visibility.kind === 'all' || visibility.kind === 'nothing') return countRows(keys(visibility));
  const [scope] = listParts(visibility);
  const ownElsewhere = ({ accountId, userId }: { accountId: string; userId: string }) =>
    keys({ kind: 'own', userId }).where((either) => either.whereNull('k.account_id').orWhereNot('k.account_id', accountId));
  const creators: string[] = (await usersWithHiddenKeys(read, visibility)).map(({ id }: { id: string }) => id);
  const [all, hidden, own] = await Promise.all([
    countRows(keys(scope)),
    creators.length === 0 ? 0 : countRows(keys(scope).whereIn('k.creator_id', creators)),
    visibility.kind === 'account' ? countRows(ownElsewhere(visibility)) : 0,
  ]);
  return all - hidden + own;
}

/** Selects the users whose keys aren't listed while they're being deleted, or moved to another partner, in batches. */
function usersWithHiddenKeys(read: Knex, visibility: KeyVisibility): Knex.QueryBuilder {
  const deleted = read('users').select('id').whereNotNull('deleted_at');
  if (visibility.kind !== 'partner') return deleted;
  // Excludes users who became staff, because most of their keys stay with the partner.
  return deleted.unionAll(read('users').select('id').whereNotNull('moving_keys').whereNot('partner_id', visibility.partnerId));
}

/** Reads two ranges of an index, and stops counting at a limit. */
const countActiveSql = `SELECT (SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE creator_id = ? AND expires_at IS NULL LIMIT ?) AS endless)
  + (SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE creator_id = ? AND expires_at >= ? LIMIT ?) AS ending) AS active`;

/** The creator's columns, from users named `u`. */
const creatorColumns = {
  creator_name: 'u.name',
  creator_email: 'u.email',
  creator_type: 'u.user_type',
  creator_disabled_at: 'u.disabled_at',
  creator_seen_at: 'u.last_sign_in_at',
  creator_current_partner_id: 'u.partner_id',
};
type ListedRow = ApiKeyRow & {
  creator_name: string;
  creator_email: string;
  creator_type: UserRow['user_type'];
  creator_disabled_at: Millis | null;
  creator_seen_at: Millis | null;
  creator_current_partner_id: string | null;
};
type DetailsRow = ListedRow & {
  created_account_name: string | null;
  created_partner_name: string;
  reached_account_id: string | null;
  reached_account_name: string | null;
  reached_partner_id: string;
  reached_partner_name: string;
};

export function apiKeyStore({ console: database, lists, background }: Lanes): ApiKeyStore {
  const { read, write } = database;
  const listed = (read: Knex, visibility: KeyVisibility) =>
    narrowToVisible(read('api_keys as k'), visibility).whereNotIn('k.creator_id', usersWithHiddenKeys(read, visibility));
  const selectKeys = (visibility: KeyVisibility, keys: Knex.QueryBuilder = read('api_keys as k')) =>
    narrowFoundToVisible(withCreator(keys), visibility).whereNull('u.deleted_at');
  const countActive = async (creatorId: string, at: Millis, max: number, on: Knex): Promise<number> => {
    const [counted] = await database.query<{ active: number }>(countActiveSql, [creatorId, max, creatorId, at, max], on);
    return required(counted?.active ?? null, 'active');
  };
  const withCreator = (keys: Knex.QueryBuilder): Knex.QueryBuilder<ListedRow, ListedRow[]> =>
    keys.join('users as u', 'u.id', 'k.creator_id').select('k.*', creatorColumns);

  return {
    create(key, digest, maxActive, event) {
      return write.transaction(async (trx) => {
        // Lock the creator until the end of the transaction. A concurrent request that creates a key for the same
        // user waits, and then counts this key. An import that moves the user waits, too.
        const creator = await trx('users').where({ id: key.creator.id, disabled_at: null }).forNoKeyUpdate().first('partner_id');
        if (creator === undefined) throw unauthorized();
        if ((await countActive(key.creator.id, key.createdAt, maxActive, trx)) >= maxActive) return false;
        await trx('api_keys').insert({
          id: key.id,
          digest,
          name: key.name,
          creator_id: key.creator.id,
          // Staff don't have a partner, so their keys are visible to the administrator of the partner for which they were created.
          creator_partner_id: creator.partner_id ?? key.owningScope.partnerId,
          account_id: key.owningScope.accountId,
          partner_id: key.owningScope.partnerId,
          created_at: key.createdAt,
          expires_at: key.expiresAt,
          expiry_time_zone: key.expiryTimeZone,
          time_zone: key.timeZone,
          last_used_at: null,
        });
        await recordAudit(trx, event);
        return true;
      });
    },

    countActive: (creatorId, at) => countActive(creatorId, at, Number.MAX_SAFE_INTEGER, read),

    async list(visibility, limit) {
      const order = [
        { column: 'k.created_at', order: 'desc' },
        { column: 'k.id', order: 'desc' },
      ];
      // Select only IDs, so that only the index is read: it may contain a million hidden keys.
      const newest = (part: KeyVisibility) =>
        lists.read.from(listed(lists.read, part).select('k.id').orderBy(order).limit(limit).as('newest'));
      const [first, ...others] = listParts(visibility);
      const keys = withCreator(lists.read('api_keys as k').whereIn('k.id', newest(first).unionAll(others.map(newest))))
        .orderBy(order)
        .limit(limit);
      const [rows, total] = await Promise.all([keys, countVisible(lists.read, visibility)]);
      return { apiKeys: rows.map(toApiKey), total };
    },

    async page(visibility, cursor, limit) {
      const keys = withCreator(listed(read, visibility)).orderBy('k.id', 'desc').limit(limit);
      return (await (cursor === null ? keys : keys.where('k.id', '<', cursor))).map(toApiKey);
    },

    async find(visibility, id) {
      const [row] = await selectKeys(visibility).where('k.id', id);
      return row ? toApiKey(row) : null;
    },

    async findToChange(visibility, ids) {
      const rows = await selectKeys(visibility, keysById(read, 'api_keys', ids));
      await database.awaitNodes();
      return rows.map(toApiKey);
    },

    async findByDigest(visibility, digest) {
      const [row] = await selectKeys(visibility).where('k.digest', digest);
      return row ? toApiKey(row) : null;
    },

    async details(visibility, id) {
      const [row]: DetailsRow[] = await selectKeys(visibility)
        .where('k.id', id)
        .leftJoin('accounts as ca', 'ca.id', 'k.account_id')
        .join('partners as cp', 'cp.id', 'k.partner_id')
        .leftJoin('accounts as ra', 'ra.id', read.raw(reachedAccount))
        .join('partners as rp', 'rp.id', read.raw(reachedPartner))
        .select({ created_account_name: 'ca.name', created_partner_name: 'cp.name' })
        .select({ reached_account_id: 'ra.id', reached_account_name: 'ra.name' })
        .select({ reached_partner_id: 'rp.id', reached_partner_name: 'rp.name' });
      return row ? toDetails(row) : null;
    },

    async findRevoked(visibility, id) {
      const [row] = await narrowToVisible(keysById(read, 'revoked_api_keys', [id]), visibility).select('k.*');
      return row
        ? { id: row.id, name: row.name, creator: { id: row.creator_id, name: row.creator_name }, revokedAt: row.revoked_at }
        : null;
    },

    async usage(id, since) {
      const rows: KeyUsageRow[] = await lists.read('api_key_usage').where({ api_key_id: id }).where('quarter_at', '>=', since);
      return rows.map(({ quarter_at, placed, cancelled, refused }) => ({ quarterAt: quarter_at, placed, cancelled, refused }));
    },

    limit(id, before, after, event) {
      return write.transaction(async (trx) => {
        const key = await trx('api_keys').where({ id, limits_version: before }).forUpdate().first('calls_per_day');
        if (!key) return false;
        const startsCounting = key.calls_per_day === null;
        await trx('api_keys')
          .where({ id })
          .update({
            limits_version: after?.version ?? null,
            addresses: after?.addresses ? JSON.stringify(after.addresses) : null,
            calls_per_day: after?.callsPerDay ?? null,
            ...(startsCounting && { calls_counted_from: event.at }),
          });
        // The key may have had a limit earlier today.
        if (startsCounting) await trx('api_key_days').where({ api_key_id: id }).delete();
        await recordAudit(trx, event);
        return true;
      });
    },

    async placedOn(id, day) {
      const row = await read('api_key_days').where({ api_key_id: id, day }).first('placed');
      return row?.placed ?? 0;
    },

    async addresses(id, since, limit) {
      const rows = lists
        .read('api_key_addresses')
        .where({ api_key_id: id })
        .where('used_at', '>=', since)
        .orderBy('used_at', 'desc')
        .limit(limit);
      return (await rows).map(({ address, used_at }) => ({ address, usedAt: used_at }));
    },

    async countQueuedCalls(id) {
      return (await countQueued(lists, [id])).get(id) ?? 0;
    },

    async revoke(ids, options, events) {
      const revoked = await write.transaction(async (trx) => {
        const revoked = await revokeKeys(database, trx, ids, options);
        const left = events.filter(({ subject }) => revoked.includes(subject.id));
        if (left.length > 0) await recordAudits(trx, left);
        return revoked;
      });
      await cancelCallsOfKeys(database, { ids: revoked }, options);
      return revoked;
    },

    async cancelCallsOfMarked(at, signal) {
      const marked = background.read('revoked_api_keys').whereNotNull('cancelling_since').orderBy('id').limit(unmarkBatchSize);
      for (let cancelled = 0, last = ''; ; ) {
        const ids: string[] = await marked.clone().where('id', '>', last).pluck('id');
        const next = ids.at(-1);
        if (next === undefined) return cancelled;
        cancelled += Number(await cancelQueued(background, 'marked', at, { signal }));
        await unmark(background, 'marked', ids);
        last = next;
      }
    },

    async countByDaysLeft(now) {
      const until = (days: number) => plus(now, days * oneDay);
      const [counted] = await database.query<Record<DaysLeft, number>>(byDaysLeft, [now, until(7), until(30)]);
      if (!counted) throw new Error('A count returned no row.');
      return counted;
    },
  };
}

const byDaysLeft = `WITH bounds (now, week, month) AS (VALUES (CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint)))
  SELECT ${[
    ['expired', 'expires_at < now'],
    ['7', 'expires_at >= now AND expires_at <= week'],
    ['30', 'expires_at > week AND expires_at <= month'],
    ['more', 'expires_at > month'],
    ['never', 'expires_at IS NULL'],
  ]
    .map(([daysLeft, ends]) => `(SELECT count(*) FROM api_keys WHERE ${ends}) AS "${daysLeft}"`)
    .join(', ')} FROM bounds`;

function toApiKey(row: ListedRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    creator: {
      id: row.creator_id,
      name: row.creator_name,
      email: row.creator_email,
      isStaff: row.creator_type === 'staff',
      isDisabled: row.creator_disabled_at !== null,
      lastSignInAt: row.creator_seen_at,
    },
    owningScope: { accountId: row.account_id, partnerId: row.partner_id },
    eventScope: toEventScope(row, row.creator_current_partner_id),
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    expiryTimeZone: row.expiry_time_zone,
    timeZone: effectiveTimeZone(row),
    callsCountedFrom: row.calls_counted_from,
    limits: row.limits_version === null ? null : parseLimits(row.limits_version, row),
  };
}

/** Returns the scope of events about a key: the one in which it was created, or the partner that its creator has moved to. */
export function toEventScope(key: Pick<ApiKeyRow, 'account_id' | 'partner_id'>, creatorPartnerId: string | null): OwningScope {
  const partnerId = creatorPartnerId ?? key.partner_id;
  return { accountId: partnerId === key.partner_id ? key.account_id : null, partnerId };
}

function toDetails(row: DetailsRow): ApiKeyDetails {
  return {
    apiKey: toApiKey(row),
    lastUsedAddress: row.last_used_address,
    createdIn: toPlace(row.account_id, row.created_account_name, { id: row.partner_id, name: row.created_partner_name }),
    reach: toPlace(row.reached_account_id, row.reached_account_name, { id: row.reached_partner_id, name: row.reached_partner_name }),
  };
}

function toPlace(accountId: string | null, accountName: string | null, partner: Named): Place {
  return accountId === null
    ? { kind: 'partner', ...partner }
    : { kind: 'account', id: accountId, name: required(accountName, "the account's name") };
}

const revokeStatements = perLane((database) =>
  readSql(import.meta.url, 'revoke', database.kind)
    .split(/^;$/m)
    .map((sql) => database.prepare(sql, 'write')),
);

/** Revokes keys permanently. @returns the IDs of the keys */
export async function revokeKeys(
  database: Lane,
  trx: Knex.Transaction,
  which: readonly string[],
  { at, cancelQueuedCalls }: RevokeOptions,
): Promise<string[]> {
  let ids: string[] = [];
  for (const step of revokeStatements(database)) {
    const { rows } = await step([which.map((id) => [id]), at, cancelQueuedCalls ? at : null], undefined, trx);
    ids = rows.map((row) => String(row['id']));
  }
  return ids;
}

/**
 * Cancels the queued calls of revoked keys, or of a deleted user who still has keys, if the options say so. Revoked keys stay marked until
 * this is done and none of their calls is being handed off. If this fails, takes too long for 'soon' or the process dies, housekeeping
 * finishes it. It also finishes it for the user's other keys, which are marked when they're revoked.
 *
 * @throws CallsNotCancelled if housekeeping has to finish it
 */
export async function cancelCallsOfKeys(
  database: Lane,
  keys: Exclude<KeysWithCalls, 'marked'>,
  { at, cancelQueuedCalls }: RevokeOptions,
): Promise<void> {
  const ids = 'ids' in keys ? keys.ids : null;
  if (ids?.length === 0 || cancelQueuedCalls === false || cancelQueuedCalls === 'later') return;
  try {
    const cancelled = await cancelQueued(database, keys, at, { isSoon: cancelQueuedCalls === 'soon' });
    if (cancelled !== false && ids) await unmark(database, keys, ids);
  } catch (cause) {
    throw new CallsNotCancelled('unavailable', notCancelled, { cause, retryAfter: 60 });
  }
}

const notCancelled =
  "The key was revoked or the user deleted, but some queued calls couldn't be cancelled yet. The core retries every minute. Check the call list for any that remain.";

const unmarkBatchSize = 10_000;

/** Removes the marks, except of keys with calls that are being handed off, because the dialer checks the mark. */
async function unmark(database: Lane, keys: KeysWithCalls, ids: readonly string[]): Promise<void> {
  const handingOff = await keysHandingOff(database, keys);
  const done = ids.filter((id) => !handingOff.has(id));
  for (const chunk of inChunks(done)) await database.write('revoked_api_keys').whereIn('id', chunk).update({ cancelling_since: null });
}
