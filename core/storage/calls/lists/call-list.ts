import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import { type Stage, waitingStages } from '../../../domain/calls/call-states.ts';
import type { KeyVisibility } from '../../../domain/directory/scope.ts';
import type { Millis } from '../../../domain/instant.ts';
import type { CallDetails, ListedCall } from '../../../domain/model.ts';
import type { CallListStore } from '../../../domain/ports.ts';
import { selectCampaigns } from '../../directory/tenancies.ts';
import type { Condition } from '../../engine/conditions.ts';
import type { Database, Value } from '../../engine/database.ts';
import { byShard, inEachShard, shardOf } from '../../engine/shards.ts';
import type { CallRow } from '../../engine/tables.ts';
import { keysById, narrowFoundToVisible, narrowToVisible } from '../../keys/api-keys.ts';
import { countUpTo, findStretch } from './call-search.ts';
import { compaction, summaryOfAll, summarySql } from './call-summary.ts';

const listedColumns = [
  ...(['campaign_id', 'request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider', 'held_until', 'time_zone'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

const shownColumns = [
  ...(['variables', 'not_before', 'not_after', 'duration_seconds'] as const),
  ...(['attempt', 'first_attempt_at', 'due_at', 'handoff', 'late_outcome_at'] as const),
];
type ShownRow = ListedRow & Pick<CallRow, (typeof shownColumns)[number]>;

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore(database: Database): CallListStore {
  const { kind, read } = database;
  return {
    async hasCampaign(access, campaignId) {
      const [campaign]: { id: string }[] = await selectCampaigns(read, access).where('c.id', campaignId).select('c.id').limit(1);
      return campaign !== undefined;
    },

    async list(scope, filter, cursor, visibility, limit) {
      const { shards, end } = await findStretch(database, scope, filter, cursor, limit);
      const pages = await Promise.all(shards.map(({ shard, calls }) => shard.query<ListedRow>(pageSql(calls, limit), valuesOf(calls))));
      const rows = pages.length === 1 ? pages.flat() : newestOf(pages.flat(), limit);
      return { calls: await withNames(read, visibility, rows), end };
    },

    countUpTo: (scope, filter, max) => countUpTo(database, scope, filter, max),

    async count(scope, filter, cursor) {
      const { shards, end } = await findStretch(database, scope, filter, cursor, 0);
      const rows = await Promise.all(
        shards.map(({ shard, calls }) =>
          shard.query<CountRow & { campaign_id: string }>(
            `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls
         FROM (${unionSql(calls, 'campaign_id, placed_at, state')}) AS matching GROUP BY 1, 2, 3`,
            valuesOf(calls),
          ),
        ),
      );
      return { counts: rows.flat().map(countOfCampaign), end };
    },

    async seesKey(visibility, id) {
      return (await visibleKeys(read, visibility, [id])).size > 0;
    },

    async find(campaignId, contactId, visibility) {
      const columns = [...listedColumns, ...shownColumns];
      const calls = shardOf(database, campaignId).read('calls');
      const [row]: ShownRow[] = await calls.select(columns).where({ campaign_id: campaignId, contact_id: contactId }).limit(1);
      if (!row) return null;
      const [call] = await withNames(read, visibility, [row]);
      return call ? callDetails(row, call) : null;
    },

    async summary(campaignId, since) {
      const sql = summarySql(kind === 'postgres' ? ['call_counts', 'call_count_changes'] : ['call_counts']);
      const bindings = kind === 'postgres' ? [campaignId, since, campaignId, since] : [campaignId, since];
      const rows = await shardOf(database, campaignId).query<CountRow>(sql, [...bindings, campaignId, campaignId, since]);
      return rows.map(({ quarter_at, state, calls }) => ({ quarterAt: quarter_at, state, calls }));
    },

    async summaryOfAll(campaignIds, days, before) {
      if (campaignIds.length === 0) return [];
      const bounds = days.flatMap((from, index) => [from, days[index + 1] ?? before ?? Number.MAX_SAFE_INTEGER]);
      const rows = await Promise.all(
        Array.from(byShard(database, campaignIds, String), ([shard, ids]) => {
          const sql = summaryOfAll(kind, ids.length, days.length);
          return shard.query<CountRow & { campaign_id: string }>(sql, [...bounds, ...ids, days[0] ?? 0]);
        }),
      );
      return rows.flat().map(countOfCampaign);
    },

    async compactCounts() {
      if (kind === 'postgres') await inEachShard(database, async ({ write }) => write.raw(compaction));
    },
  };
}

/**
 * Builds the SQL for a page. Sorts only the IDs, and then reads the rows, because the rows are long and several campaigns may have
 * thousands of matches.
 */
function pageSql(conditions: readonly Condition[], limit: number): string {
  const columns = listedColumns.map((column) => `calls.${column}`).join(', ');
  const page = `${unionSql(conditions, 'campaign_id, contact_id')} ORDER BY contact_id DESC LIMIT ${limit}`;
  return `SELECT ${columns} FROM (${page}) AS page
    CROSS JOIN calls WHERE calls.campaign_id = page.campaign_id AND calls.contact_id = page.contact_id ORDER BY calls.contact_id DESC`;
}

function valuesOf(conditions: readonly Condition[]): Value[] {
  return conditions.flatMap(({ values }) => values);
}

function newestOf(rows: readonly ListedRow[], limit: number): ListedRow[] {
  return rows.toSorted((a, b) => (a.contact_id > b.contact_id ? -1 : 1)).slice(0, limit);
}

function unionSql(conditions: readonly Condition[], columns: string): string {
  return conditions.map(({ sql }) => `SELECT ${columns} FROM calls WHERE ${sql}`).join(' UNION ALL ');
}

type CountRow = Pick<CallRow, 'state'> & { quarter_at: Millis; calls: number };

function countOfCampaign({ campaign_id, quarter_at, state, calls }: CountRow & { campaign_id: string }) {
  return { campaignId: campaign_id, quarterAt: quarter_at, state, calls };
}

/** Adds the names of the calls' campaigns, and of their keys if the viewer can see them. */
async function withNames(read: Knex, visibility: KeyVisibility, rows: readonly ListedRow[]): Promise<ListedCall[]> {
  const keys = await visibleKeys(read, visibility, [...new Set(rows.map((row) => row.api_key_id))]);
  const campaignIds = [...new Set(rows.map((row) => row.campaign_id))];
  const campaigns: Named[] = await read('campaigns').select('id', 'name').whereIn('id', campaignIds);
  const names = new Map(campaigns.map(({ id, name }) => [id, name]));
  return rows.map((row) => listedCall(row, keys.get(row.api_key_id), names.get(row.campaign_id) ?? ''));
}

/** Returns the visible keys with these IDs, active and revoked. */
async function visibleKeys(read: Knex, visibility: KeyVisibility, ids: string[]): Promise<Map<string, KeyRow>> {
  const columns = ['k.id', 'k.name', 'k.creator_id'];
  const active = narrowFoundToVisible(keysById(read, 'api_keys', ids).join('users as u', 'u.id', 'k.creator_id'), visibility).select(
    ...columns,
    'u.name as creator_name',
  );
  const revoked = narrowToVisible(keysById(read, 'revoked_api_keys', ids), visibility).select(...columns, 'k.creator_name');
  const rows: KeyRow[][] = await Promise.all([active, revoked]);
  return new Map(rows.flat().map((key) => [key.id, key]));
}

function callDetails(row: ShownRow, call: ListedCall): CallDetails {
  const stage: Stage | null = row.state === 'dialing' ? row.handoff : row.state;
  const isWaiting = waitingStages.some((waiting) => waiting === stage);
  return {
    call,
    variables: row.variables === null ? null : Object.fromEntries(JSON.parse(row.variables)),
    notBefore: row.not_before,
    notAfter: row.not_after,
    durationSeconds: row.duration_seconds,
    attempts: row.attempt,
    firstAttemptAt: row.first_attempt_at,
    nextAttemptAt: isWaiting ? row.due_at : null,
    toldLateAt: row.late_outcome_at,
  };
}

function listedCall(row: ListedRow, key: KeyRow | undefined, campaignName: string): ListedCall {
  return {
    requestId: row.request_id,
    contactId: row.contact_id,
    phone: row.phone,
    name: row.name,
    state: row.state,
    detail: row.detail,
    placedAt: row.placed_at,
    dialedAt: row.dialed_at,
    endedAt: row.ended_at,
    apiKey: key ? { id: key.id, name: key.name, creator: { id: key.creator_id, name: key.creator_name } } : null,
    isSimulated: row.provider === 'simulated',
    heldUntil: row.ended_at === null ? row.held_until : null,
    timeZone: row.time_zone,
    campaign: { id: row.campaign_id, name: campaignName },
  };
}
