import type { Knex } from 'knex';
import type { CallState } from '#contract/calls.ts';
import type { CallListStore, ListedCall } from '../domain/call-list.ts';
import type { KeyVisibility } from '../domain/tenancy.ts';
import { narrowToVisible } from './api-keys.ts';
import type { Database } from './database.ts';
import { instant, instantOrNull } from './instants.ts';
import { campaignsOf } from './tenancies.ts';

type CallRow = {
  request_id: string;
  contact_id: string;
  api_key_id: string;
  phone: string | null;
  name: string | null;
  state: CallState;
  detail: string | null;
  placed_at: number;
  dialed_at: number | null;
  ended_at: number | null;
  provider: string | null;
};

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore({ read }: Database): CallListStore {
  return {
    async hasCampaign(reach, campaignId) {
      const [found]: unknown[] = await campaignsOf(read, reach).where('c.id', campaignId).select('c.id').limit(1);
      return found !== undefined;
    },

    async list(campaignId, { state, search, cursor }, sight, limit) {
      const calls = read('calls')
        .select(
          'request_id',
          'contact_id',
          'api_key_id',
          'phone',
          'name',
          'state',
          'detail',
          'placed_at',
          'dialed_at',
          'ended_at',
          'provider',
        )
        .where('campaign_id', campaignId)
        .orderBy('contact_id', 'desc')
        .limit(limit);
      if (state !== null) calls.where({ state });
      if (cursor !== null) calls.where('contact_id', '<', cursor);
      if (search !== '') calls.where((either) => containing(either, search));
      const rows: CallRow[] = await calls;
      const keys = await visibleKeys(read, sight, [...new Set(rows.map((row) => row.api_key_id))]);
      return rows.map((row) => listedCall(row, keys.get(row.api_key_id)));
    },
  };
}

function containing(calls: Knex.QueryBuilder, search: string): void {
  // As it was typed, too: SQLite folds the case of ASCII letters alone.
  const patterns = new Set(
    [search.normalize('NFC'), search.normalize('NFC').toLowerCase()].map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`),
  );
  for (const column of ['phone', 'name', 'request_id']) {
    for (const pattern of patterns) {
      calls.orWhereRaw(`${column} LIKE ? ESCAPE '\\'`, [pattern]).orWhereRaw(`lower(${column}) LIKE ? ESCAPE '\\'`, [pattern]);
    }
  }
}

/** The keys that placed calls, those that have been revoked since among them. */
async function visibleKeys(read: Knex, sight: KeyVisibility, ids: string[]): Promise<Map<string, KeyRow>> {
  const columns = ['k.id', 'k.name', 'k.creator_id'];
  const standing = narrowToVisible(read('api_keys as k'), sight)
    .join('users as u', 'u.id', 'k.creator_id')
    .select(...columns, 'u.name as creator_name');
  const retired = narrowToVisible(read('retired_api_keys as k'), sight).select(...columns, 'k.creator_name');
  const found: KeyRow[][] = await Promise.all([standing.whereIn('k.id', ids), retired.whereIn('k.id', ids)]);
  return new Map(found.flat().map((key) => [key.id, key]));
}

function listedCall(row: CallRow, key: KeyRow | undefined): ListedCall {
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
