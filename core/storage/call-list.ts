import type { Knex } from 'knex';
import type { ListedCall } from '../domain/model.ts';
import type { CallListStore } from '../domain/ports.ts';
import type { KeyVisibility } from '../domain/scope.ts';
import { narrowToVisible } from './api-keys.ts';
import { instant, instantOrNull } from './columns.ts';
import type { Database } from './database.ts';
import type { CallRow } from './tables.ts';
import { campaignsOf } from './tenancies.ts';

const listedColumns = [
  ...(['request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore({ read }: Database): CallListStore {
  return {
    async hasCampaign(access, campaignId) {
      const [found]: { id: string }[] = await campaignsOf(read, access).where('c.id', campaignId).select('c.id').limit(1);
      return found !== undefined;
    },

    async list(campaignId, { state, search, cursor }, visibility, limit) {
      const calls = read('calls').select(listedColumns).where('campaign_id', campaignId).orderBy('contact_id', 'desc').limit(limit);
      if (state !== null) calls.where({ state });
      if (cursor !== null) calls.where('contact_id', '<', cursor);
      if (search !== '') calls.where((either) => containing(either, search));
      const rows: ListedRow[] = await calls;
      const keys = await visibleKeys(read, visibility, [...new Set(rows.map((row) => row.api_key_id))]);
      return rows.map((row) => listedCall(row, keys.get(row.api_key_id)));
    },
  };
}

function containing(calls: Knex.QueryBuilder, search: string): void {
  // Also as typed, since SQLite folds the case of ASCII letters only.
  const patterns = new Set(
    [search.normalize('NFC'), search.normalize('NFC').toLowerCase()].map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`),
  );
  for (const column of ['phone', 'name', 'request_id']) {
    for (const pattern of patterns) {
      calls.orWhereRaw(`${column} LIKE ? ESCAPE '\\'`, [pattern]).orWhereRaw(`lower(${column}) LIKE ? ESCAPE '\\'`, [pattern]);
    }
  }
}

/** The visible ones among these keys, active and revoked. */
async function visibleKeys(read: Knex, visibility: KeyVisibility, ids: string[]): Promise<Map<string, KeyRow>> {
  const columns = ['k.id', 'k.name', 'k.creator_id'];
  const active = narrowToVisible(read('api_keys as k'), visibility)
    .join('users as u', 'u.id', 'k.creator_id')
    .select(...columns, 'u.name as creator_name');
  const revoked = narrowToVisible(read('retired_api_keys as k'), visibility).select(...columns, 'k.creator_name');
  const found: KeyRow[][] = await Promise.all([active.whereIn('k.id', ids), revoked.whereIn('k.id', ids)]);
  return new Map(found.flat().map((key) => [key.id, key]));
}

function listedCall(row: ListedRow, key: KeyRow | undefined): ListedCall {
  return {
    requestId: row.request_id,
    contactId: row.contact_id,
    phone: row.phone,
    name: row.name,
    state: row.state,
    detail: row.detail,
    placedAt: instant(row.placed_at),
    dialedAt: instantOrNull(row.dialed_at),
    endedAt: instantOrNull(row.ended_at),
    apiKey: key ? { id: key.id, name: key.name, creator: { id: key.creator_id, name: key.creator_name } } : null,
    isSimulated: row.provider === 'simulated',
  };
}
