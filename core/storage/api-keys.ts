import type { Knex } from 'knex';
import type { ApiKey, ApiKeyStore, RevokeOptions } from '../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';
import type { KeySight } from '../domain/tenancy.ts';
import { record } from './audit.ts';
import { cancelled } from './calls.ts';
import type { Database } from './database.ts';
import { isForeignKeyViolation } from './faults.ts';
import { instant, instantOrNull } from './instants.ts';
import { inSteps } from './steps.ts';

/** Narrows a query on keys, named `k`, to those that a viewer sees. */
export function narrowToSight(keys: Knex.QueryBuilder, sight: KeySight): Knex.QueryBuilder {
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
async function countInSight(read: Knex, sight: KeySight): Promise<number> {
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
      return counted(narrowToSight(read('api_keys as k'), sight));
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
  const inSight = (sight: KeySight) => narrowToSight(read('api_keys as k'), sight);
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
      const [rows, total] = await Promise.all([withCreator(newest).limit(limit), countInSight(read, sight)]);
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
        const ids = await retire(trx, { id }, options);
        if (ids.length > 0) await record(trx, event);
        return ids;
      });
      await cancelLate(database, revoked, options);
      return revoked.length > 0;
    },

    async foldTallies() {
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
export async function retire(
  trx: Knex.Transaction,
  which: { id: string } | { creator_id: string },
  options: RevokeOptions,
): Promise<string[]> {
  const ids: string[] = await trx('api_keys').where(which).forUpdate().pluck('id');
  const at = options.at.toMillis();
  const columns = ['id', 'name', 'creator_id', 'creator_partner_id', 'account_id', 'partner_id'];
  const creatorName = trx('users').select('name').where('users.id', trx.ref('api_keys.creator_id'));
  await trx(trx.raw('?? (??, ??, ??, ??, ??, ??, ??, ??)', ['retired_api_keys', ...columns, 'creator_name', 'retired_at'])).insert(
    trx('api_keys')
      .select(...columns, creatorName.as('creator_name'), trx.raw('CAST(? AS bigint)', [at]))
      .where(which),
  );
  if (options.cancelQueuedCalls) await cancelQueued(trx, ids, at);
  await trx('api_keys').where(which).delete();
  return ids;
}

/**
 * Cancels what was being placed with keys while they went: a batch that had looked before may have been written after. To be done once
 * they have gone, so that nothing more can come.
 */
export async function cancelLate({ write, awaitWriters }: Database, ids: readonly string[], options: RevokeOptions): Promise<void> {
  if (!options.cancelQueuedCalls || ids.length === 0) return;
  if (!(await awaitWriters())) throw new Problem('unavailable', notCancelled);
  await cancelQueued(write, ids, options.at.toMillis());
}

const notCancelled =
  'It is revoked, but a call that was being placed at that moment has not come to an end. Look among the calls whether it has come through.';

async function cancelQueued(on: Knex, ids: readonly string[], at: number): Promise<void> {
  for (const some of inSteps(ids)) {
    const places = some.map(() => '?').join(', ');
    await on.raw(`UPDATE calls SET ${cancelled('?')} WHERE state = 'queued' AND api_key_id IN (${places})`, [at, at, ...some]);
  }
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
