import type { Knex } from 'knex';
import type { ApiKey } from '../domain/model.ts';
import type { ApiKeyStore } from '../domain/ports.ts';
import type { KeyVisibility } from '../domain/scope.ts';
import { recordAudit } from './audit.ts';
import { instant, instantOrNull } from './columns.ts';
import type { Database } from './database.ts';
import { rejectOrphan } from './errors.ts';
import { countQueued } from './queued-calls.ts';
import { cancelInFlight, finishCancelling, revokeKeys } from './revocation.ts';
import type { ApiKeyRow } from './tables.ts';

/** @param keys a query on keys, named `k` */
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

/** From the kept counts where it can, since a scope may have a million keys. */
async function countVisible(read: Knex, visibility: KeyVisibility): Promise<number> {
  const countOf = (keys: Knex.QueryBuilder) => sumOf(keys.count({ total: '*' }));
  const keptCount = (scope: string, id: string) => sumOf(read('api_key_tallies').where({ scope, id }).sum({ total: 'keys' }));
  switch (visibility.kind) {
    case 'own':
      return keptCount('creator_id', visibility.userId);
    case 'account': {
      const { accountId, userId } = visibility;
      const ownElsewhere = read('api_keys')
        .where('creator_id', userId)
        .where((either) => either.whereNull('account_id').orWhereNot('account_id', accountId));
      const [theirs, own] = await Promise.all([keptCount('account_id', accountId), countOf(ownElsewhere)]);
      return theirs + own;
    }
    case 'partner':
      return keptCount('creator_partner_id', visibility.partnerId);
    case 'tenancy':
      return keptCount(visibility.tenancy.kind === 'account' ? 'account_id' : 'partner_id', visibility.tenancy.id);
    case 'all':
    case 'nothing':
      return countOf(narrowToVisible(read('api_keys as k'), visibility));
  }
}

async function sumOf(query: Knex.QueryBuilder): Promise<number> {
  const row = await query.first<{ total: number | string | null }>();
  return Number(row.total);
}

type ListedRow = ApiKeyRow & { creator_name: string };

export function apiKeyStore(database: Database): ApiKeyStore {
  const { kind, read, write } = database;
  const visible = (visibility: KeyVisibility) => narrowToVisible(read('api_keys as k'), visibility);
  const withCreator = (keys: Knex.QueryBuilder): Knex.QueryBuilder<ListedRow, ListedRow[]> =>
    keys.join('users as u', 'u.id', 'k.creator_id').select('k.*', 'u.name as creator_name');

  return {
    async create(key, digest, event) {
      const creating = write.transaction(async (trx) => {
        // Locks until the end: an import that moves the creator waits, and then finds this key.
        const creator = await trx('users').where({ id: key.creator.id }).forShare().first('partner_id');
        await trx('api_keys').insert({
          id: key.id,
          digest,
          name: key.name,
          creator_id: key.creator.id,
          // Staff have no partner: the administrator of the partner that the key is for sees it.
          creator_partner_id: creator?.partner_id ?? key.owningScope.partnerId,
          account_id: key.owningScope.accountId,
          partner_id: key.owningScope.partnerId,
          created_at: key.createdAt.toMillis(),
          expires_at: key.expiresAt?.toMillis() ?? null,
          expiry_time_zone: key.expiryTimeZone,
          last_used_at: null,
        });
        await recordAudit(trx, event);
      });
      await creating.catch(rejectOrphan);
    },

    async list(visibility, limit) {
      const newest = visible(visibility).orderBy([
        { column: 'k.created_at', order: 'desc' },
        { column: 'k.id', order: 'desc' },
      ]);
      const [rows, total] = await Promise.all([withCreator(newest).limit(limit), countVisible(read, visibility)]);
      return { apiKeys: rows.map(apiKeyOf), total };
    },

    async find(visibility, id) {
      const [row] = await withCreator(visible(visibility).where('k.id', id));
      return row ? apiKeyOf(row) : null;
    },

    async findByDigest(visibility, digest) {
      const [row] = await withCreator(visible(visibility).where('k.digest', digest));
      return row ? apiKeyOf(row) : null;
    },

    async countQueuedCalls(id) {
      return (await countQueued(database, [id])).get(id) ?? 0;
    },

    async revoke(id, options, event) {
      const revoked = await write.transaction(async (trx) => {
        const ids = await revokeKeys(trx, { id }, options);
        if (ids.length > 0) await recordAudit(trx, event);
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
      if (kind === 'postgres') await write.raw(compaction);
    },
  };
}

/** Two at once do no harm: each sums up only the rows that it has deleted itself. */
const compaction = `WITH changed AS (SELECT scope, id FROM api_key_tallies GROUP BY scope, id HAVING count(*) > 1),
  removed AS (
    DELETE FROM api_key_tallies t USING changed c WHERE t.scope = c.scope AND t.id = c.id RETURNING t.scope, t.id, t.keys
  )
  INSERT INTO api_key_tallies SELECT scope, id, sum(keys) FROM removed GROUP BY scope, id`;

function apiKeyOf(row: ListedRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    creator: { id: row.creator_id, name: row.creator_name },
    owningScope: { accountId: row.account_id, partnerId: row.partner_id },
    createdAt: instant(row.created_at),
    lastUsedAt: instantOrNull(row.last_used_at),
    expiresAt: instantOrNull(row.expires_at),
    expiryTimeZone: row.expiry_time_zone,
  };
}
