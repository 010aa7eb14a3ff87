import type { Knex } from 'knex';
import type { ApiKey, ApiKeyStore, RevokeOptions } from '../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';
import type { KeyVisibility } from '../domain/tenancy.ts';
import { record } from './audit.ts';
import { callKey, cancelledAt } from './calls.ts';
import { inChunks, inShortTransactions } from './chunks.ts';
import type { Database } from './database.ts';
import { isForeignKeyViolation } from './errors.ts';
import { instant, instantOrNull } from './instants.ts';

/** Narrows a query on keys, named `k`, to those that a viewer sees. */
export function narrowToVisible(keys: Knex.QueryBuilder, sight: KeyVisibility): Knex.QueryBuilder {
  switch (sight.kind) {
    case 'own':
      return keys.where('k.creator_id', sight.userId);
    case 'account':
      return keys.where((either) => either.where('k.account_id', sight.accountId).orWhere('k.creator_id', sight.userId));
    case 'partner':
      return keys.where('k.creator_partner_id', sight.partnerId);
    case 'home':
      return keys.where(sight.tenancy.kind === 'account' ? 'k.account_id' : 'k.partner_id', sight.tenancy.id);
    case 'all':
      return keys;
    case 'nothing':
      return keys.whereRaw('1 = 0');
  }
}

/** How many keys a viewer sees: from the tallies where there are any, since a scope may have a million. */
async function countVisible(read: Knex, sight: KeyVisibility): Promise<number> {
  const counted = (keys: Knex.QueryBuilder) => sumOf(keys.count({ total: '*' }));
  const tallied = (scope: string, id: string) => sumOf(read('api_key_tallies').where({ scope, id }).sum({ total: 'keys' }));
  switch (sight.kind) {
    case 'own':
      return tallied('creator_id', sight.userId);
    case 'account': {
      const { accountId, userId } = sight;
      const ownElsewhere = read('api_keys')
        .where('creator_id', userId)
        .where((either) => either.whereNull('account_id').orWhereNot('account_id', accountId));
      const [theirs, own] = await Promise.all([tallied('account_id', accountId), counted(ownElsewhere)]);
      return theirs + own;
    }
    case 'partner':
      return tallied('creator_partner_id', sight.partnerId);
    case 'home':
      return tallied(sight.tenancy.kind === 'account' ? 'account_id' : 'partner_id', sight.tenancy.id);
    case 'all':
    case 'nothing':
      return counted(narrowToVisible(read('api_keys as k'), sight));
  }
}

async function sumOf(query: Knex.QueryBuilder): Promise<number> {
  const row = await query.first<{ total: number | string | null }>();
  return Number(row.total);
}

type ApiKeyRow = {
  id: string;
  name: string;
  creator_id: string;
  creator_name: string;
  account_id: string | null;
  partner_id: string;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  expiry_time_zone: string | null;
};

export function apiKeyStore(database: Database): ApiKeyStore {
  const { kind, read, write } = database;
  const inSight = (sight: KeyVisibility) => narrowToVisible(read('api_keys as k'), sight);
  const withCreator = (keys: Knex.QueryBuilder): Knex.QueryBuilder<ApiKeyRow, ApiKeyRow[]> =>
    keys.join('users as u', 'u.id', 'k.creator_id').select('k.*', 'u.name as creator_name');

  return {
    async create(key, digest, event) {
      const creating = write.transaction(async (trx) => {
        // Held until the end: an import that moves the creator waits, and then finds this key.
        const creator: { partner_id: string | null } | undefined = await trx('users')
          .where({ id: key.creator.id })
          .forShare()
          .first('partner_id');
        await trx('api_keys').insert({
          id: key.id,
          digest,
          name: key.name,
          creator_id: key.creator.id,
          // Whose administrator sees the key: staff are under no partner, and their keys are the business of the one that they were made for.
          creator_partner_id: creator?.partner_id ?? key.home.partnerId,
          account_id: key.home.accountId,
          partner_id: key.home.partnerId,
          created_at: key.createdAt.toMillis(),
          expires_at: key.expiresAt?.toMillis() ?? null,
          expiry_time_zone: key.expiryTimeZone,
          last_used_at: null,
        });
        await record(trx, event);
      });
      await creating.catch(rejectOrphan);
    },

    async list(sight, limit) {
      const newest = inSight(sight).orderBy([
        { column: 'k.created_at', order: 'desc' },
        { column: 'k.id', order: 'desc' },
      ]);
      const [rows, total] = await Promise.all([withCreator(newest).limit(limit), countVisible(read, sight)]);
      return { apiKeys: rows.map(apiKeyOf), total };
    },

    async find(sight, id) {
      const [row] = await withCreator(inSight(sight).where('k.id', id));
      return row ? apiKeyOf(row) : null;
    },

    async findByDigest(sight, digest) {
      const [row] = await withCreator(inSight(sight).where('k.digest', digest));
      return row ? apiKeyOf(row) : null;
    },

    async countQueuedCalls(id) {
      const counted = await read('calls')
        .where({ api_key_id: id })
        .whereRaw(`state = 'queued'`)
        .count({ queued: '*' })
        .first<{ queued: number | string }>();
      return Number(counted.queued);
    },

    async revoke(id, options, event) {
      const revoked = await write.transaction(async (trx) => {
        const ids = await revokeKeys(trx, { id }, options);
        if (ids.length > 0) await record(trx, event);
        return ids;
      });
      await cancelInFlight(database, revoked, options);
      return revoked.length > 0;
    },

    async finishCancelling(at, signal) {
      const ids: string[] = await read('retired_api_keys').whereNotNull('cancelling_since').pluck('id');
      return finishCancelling(database, ids, at.toMillis(), signal);
    },

    async compactCounts() {
      if (kind === 'postgres') await write.raw(folding);
    },
  };
}

/** Two at once do no harm: each sums up the rows that it has removed itself. */
const folding = `WITH changed AS (SELECT scope, id FROM api_key_tallies GROUP BY scope, id HAVING count(*) > 1),
  removed AS (
    DELETE FROM api_key_tallies t USING changed c WHERE t.scope = c.scope AND t.id = c.id RETURNING t.scope, t.id, t.keys
  )
  INSERT INTO api_key_tallies SELECT scope, id, sum(keys) FROM removed GROUP BY scope, id`;

/**
 * Takes keys out of use, for good: the row with the digest goes, so that nothing is left that could let the key in again.
 *
 * @returns the ids of the keys
 */
export async function revokeKeys(
  trx: Knex.Transaction,
  which: { id: string } | { creator_id: string },
  options: RevokeOptions,
): Promise<string[]> {
  const ids: string[] = await trx('api_keys').where(which).forUpdate().pluck('id');
  const at = options.at.toMillis();
  const cancellingSince = options.cancelQueuedCalls ? at : null;
  const columns = ['id', 'name', 'creator_id', 'creator_partner_id', 'account_id', 'partner_id'];
  const creatorName = trx('users').select('name').where('users.id', trx.ref('api_keys.creator_id'));
  const retired = ['retired_api_keys', ...columns, 'creator_name', 'retired_at', 'cancelling_since'];
  await trx(trx.raw('?? (??, ??, ??, ??, ??, ??, ??, ??, ??)', retired)).insert(
    trx('api_keys')
      .select(...columns, creatorName.as('creator_name'), trx.raw('CAST(? AS bigint), CAST(? AS bigint)', [at, cancellingSince]))
      .where(which),
  );
  await trx('api_keys').where(which).delete();
  return ids;
}

/**
 * Cancels what is queued of keys that have gone, if that was asked for. The keys are noted until it is done: where this fails, or the
 * process dies, a sweep finishes it.
 *
 * @throws Problem `unavailable` where calls are left to the sweep
 */
export async function cancelInFlight(database: Database, ids: readonly string[], options: RevokeOptions): Promise<void> {
  if (!options.cancelQueuedCalls) return;
  try {
    await finishCancelling(database, ids, options.at.toMillis());
  } catch (cause) {
    throw new Problem('unavailable', notCancelled, { cause, retryAfter: 60 });
  }
}

const notCancelled =
  'It is revoked, but calls that it has placed may still be queued: not all could be cancelled now. The core tries again each minute. Look among the calls whether any is left.';

async function finishCancelling(database: Database, ids: readonly string[], at: number, signal?: AbortSignal): Promise<number> {
  let changed = 0;
  for (const some of inChunks(ids)) {
    changed += await cancelQueued(database, some, at, signal);
    // A batch that had looked before the keys went may be written after: once it has ended, nothing more can come.
    if (!(await database.awaitWriters())) throw new Error('A statement that writes calls has not ended in time.');
    changed += await cancelQueued(database, some, at, signal);
    await database.write('retired_api_keys').whereIn('id', some).update({ cancelling_since: null });
  }
  return changed;
}

/** One statement for 300,000 calls would hold SQLite's writer for seconds, and run into PostgreSQL's time limit. */
const cancelledAtOnce = 1_000;

/** @param size of a step */
export async function cancelQueued(
  { kind, write }: Database,
  ids: readonly string[],
  at: number,
  signal?: AbortSignal,
  size = cancelledAtOnce,
): Promise<number> {
  // The state stands there as the partial index has it: as a parameter, it would rule the index out.
  const queued = () => write('calls').whereRaw(`state = 'queued'`);
  const cancelSome = (busy: 'pass over' | 'wait') => (limit: number) => {
    const some = queued().select(callKey).whereIn('api_key_id', ids).limit(limit);
    if (kind === 'postgres') some.forUpdate();
    if (kind === 'postgres' && busy === 'pass over') some.skipLocked();
    return queued().withMaterialized('some', some).whereIn(callKey, write('some').select(callKey)).update(cancelledAt(at));
  };
  // Waiting with a thousand calls in hand invites deadlocks: those that others are busy with come last.
  const passing = await inShortTransactions(cancelSome('pass over'), size, signal);
  return passing + (await inShortTransactions(cancelSome('wait'), size, signal));
}

/** The user was deleted while a request of theirs was under way. */
export function rejectOrphan(error: unknown): never {
  throw isForeignKeyViolation(error) ? new Problem('unauthorized', unauthorizedDetail) : error;
}

function apiKeyOf(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    creator: { id: row.creator_id, name: row.creator_name },
    home: { accountId: row.account_id, partnerId: row.partner_id },
    createdAt: instant(row.created_at),
    lastUsedAt: instantOrNull(row.last_used_at),
    expiresAt: instantOrNull(row.expires_at),
    expiryTimeZone: row.expiry_time_zone,
  };
}
