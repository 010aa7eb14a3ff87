import type { Knex } from 'knex';
import { type Stage, waitingStages } from '../domain/call-states.ts';
import type { CallDetails, CallStretch, ListedCall } from '../domain/model.ts';
import type { CallListStore } from '../domain/ports.ts';
import type { KeyVisibility } from '../domain/scope.ts';
import { keysById, narrowToVisible } from './api-keys.ts';
import { instant, instantOrNull } from './columns.ts';
import type { Database } from './database.ts';
import type { CallRow } from './tables.ts';
import { campaignsOf } from './tenancies.ts';
import { either, matching } from './text-search.ts';

const listedColumns = [
  ...(['request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

const shownColumns = [
  ...(['time_zone', 'variables', 'not_before', 'not_after', 'duration_seconds'] as const),
  ...(['attempt', 'first_attempt_at', 'due_at', 'handoff', 'told_late_at'] as const),
];
type ShownRow = ListedRow & Pick<CallRow, (typeof shownColumns)[number]>;

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore(database: Database): CallListStore {
  const { kind, read, write } = database;
  return {
    async hasCampaign(access, campaignId) {
      const [found]: { id: string }[] = await campaignsOf(read, access).where('c.id', campaignId).select('c.id').limit(1);
      return found !== undefined;
    },

    async list(campaignId, { state, search, cursor }, visibility, limit) {
      const isFiltered = state !== null || search !== '';
      const end = isFiltered ? await endOfStretch(database, campaignId, cursor) : null;
      const calls = read('calls').select(listedColumns).where('campaign_id', campaignId).orderBy('contact_id', 'desc').limit(limit);
      if (cursor !== null) calls.where('contact_id', '<', cursor);
      if (end !== null) calls.where('contact_id', '>=', end.contactId);
      if (state !== null) calls.where({ state });
      if (search !== '') {
        const { sql, values } = either(...searchedColumns.map((column) => matching(kind, column, search, 'anywhere')));
        calls.whereRaw(sql, values);
      }
      const rows: ListedRow[] = await calls;
      const keys = await visibleKeys(read, visibility, [...new Set(rows.map((row) => row.api_key_id))]);
      return { calls: rows.map((row) => listedCall(row, keys.get(row.api_key_id))), end };
    },

    async find(campaignId, contactId, visibility) {
      const columns = [...listedColumns, ...shownColumns];
      const [row]: ShownRow[] = await read('calls').select(columns).where({ campaign_id: campaignId, contact_id: contactId }).limit(1);
      if (!row) return null;
      const keys = await visibleKeys(read, visibility, [row.api_key_id]);
      return callDetails(row, keys.get(row.api_key_id));
    },

    async summary(campaignId, since) {
      const sql = summaryOf(kind === 'postgres' ? ['call_counts', 'call_count_changes'] : ['call_counts']);
      const bindings = kind === 'postgres' ? [campaignId, since, campaignId, since] : [campaignId, since];
      const rows = await database.query<CountRow>(sql, [...bindings, campaignId, campaignId, since]);
      return rows.map(({ quarter_at, state, calls }) => ({ quarterAt: quarter_at, state, calls }));
    },

    async summaryOfAll(campaignIds, days) {
      if (campaignIds.length === 0) return [];
      const sql = summaryOfAll(
        kind === 'postgres' ? ['call_counts', 'call_count_changes'] : ['call_counts'],
        campaignIds.length,
        days.length,
      );
      const bounds = days.flatMap((from, index) => [from, days[index + 1] ?? Number.MAX_SAFE_INTEGER]);
      const rows = await database.query<CountRow & { campaign_id: string }>(sql, [...bounds, ...campaignIds, days[0] ?? 0]);
      return rows.map(({ campaign_id, quarter_at, state, calls }) => ({ campaignId: campaign_id, quarterAt: quarter_at, state, calls }));
    },

    async compactCounts() {
      if (kind === 'postgres') await write.raw(compaction);
    },
  };
}

type CountRow = Pick<CallRow, 'state'> & { quarter_at: number; calls: number };

/**
 * Ended calls as they were counted, and the open ones themselves: those are in the index of what is due. One statement, since a call may end
 * between two. The concatenation keeps PostgreSQL from reading the campaign's ten million calls in another index as well (measured without
 * statistics of the table).
 */
function summaryOf(tables: readonly string[]): string {
  const ended = tables.map((table) => `SELECT quarter_at, state, calls FROM ${table} WHERE campaign_id = ? AND quarter_at >= ?`);
  const open = `SELECT placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id = (SELECT account_id FROM campaigns WHERE id = ?) AND due_at IS NOT NULL AND (campaign_id || '') = ? AND placed_at >= ?
    GROUP BY 1, 2`;
  return [...ended, open].join(' UNION ALL ');
}

/**
 * The same for some campaigns. The database adds the quarters up to days: sent one by one, those of twenty campaigns are
 * hundreds of thousands of rows. The order of the joins makes each day of each campaign one stretch of the primary key.
 */
function summaryOfAll(tables: readonly string[], campaigns: number, days: number): string {
  const bounds = Array(days).fill('(CAST(? AS bigint), CAST(? AS bigint))').join(', ');
  const ended = tables.map(
    (table) => `SELECT t.campaign_id, d.from_at AS quarter_at, t.state, CAST(sum(t.calls) AS bigint) AS calls
      FROM days d CROSS JOIN scope s CROSS JOIN ${table} t
      WHERE t.campaign_id = s.id AND t.quarter_at >= d.from_at AND t.quarter_at < d.until_at GROUP BY 1, 2, 3`,
  );
  const open = `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id IN (SELECT account_id FROM scope) AND due_at IS NOT NULL AND (campaign_id || '') IN (SELECT id FROM scope) AND placed_at >= ?
    GROUP BY 1, 2, 3`;
  const scope = `SELECT id, account_id FROM campaigns WHERE id IN (${Array(campaigns).fill('?')})`;
  return `WITH days (from_at, until_at) AS (VALUES ${bounds}), scope AS (${scope}) ${[...ended, open].join(' UNION ALL ')}`;
}

/** Two at once do no harm: each sums up only the rows that it has deleted itself. */
const compaction = `WITH moved AS (DELETE FROM call_count_changes RETURNING campaign_id, quarter_at, state, calls)
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, quarter_at, state, sum(calls) FROM moved GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (campaign_id, quarter_at, state) DO UPDATE SET calls = call_counts.calls + excluded.calls`;

const searchedColumns = ['phone', 'name', 'request_id'];

/** Calls in a stretch: SQLite and PostgreSQL search them in 10 to 30 ms. */
const stretch = 5_000;

/** The oldest call of the stretch that begins after the cursor; null if it has the campaign's oldest one in it. */
async function endOfStretch(database: Database, campaignId: string, cursor: string | null): Promise<CallStretch['end']> {
  const before = cursor === null ? '' : 'AND contact_id < ?';
  const [row] = await database.query<{ contact_id: string; placed_at: number }>(
    `SELECT contact_id, placed_at FROM calls WHERE campaign_id = ? AND contact_id =
       (SELECT contact_id FROM calls WHERE campaign_id = ? ${before} ORDER BY contact_id DESC LIMIT 1 OFFSET ${stretch - 1})`,
    [campaignId, campaignId, ...(cursor === null ? [] : [cursor])],
  );
  return row ? { contactId: row.contact_id, placedAt: instant(row.placed_at) } : null;
}

/** The visible ones among these keys, active and revoked. */
async function visibleKeys(read: Knex, visibility: KeyVisibility, ids: string[]): Promise<Map<string, KeyRow>> {
  const columns = ['k.id', 'k.name', 'k.creator_id'];
  const active = narrowToVisible(keysById(read, 'api_keys', ids), visibility)
    .join('users as u', 'u.id', 'k.creator_id')
    .select(...columns, 'u.name as creator_name');
  const revoked = narrowToVisible(keysById(read, 'retired_api_keys', ids), visibility).select(...columns, 'k.creator_name');
  const found: KeyRow[][] = await Promise.all([active, revoked]);
  return new Map(found.flat().map((key) => [key.id, key]));
}

function callDetails(row: ShownRow, key: KeyRow | undefined): CallDetails {
  const stage: Stage | null = row.state === 'dialing' ? row.handoff : row.state;
  const isWaiting = waitingStages.some((waiting) => waiting === stage);
  return {
    call: listedCall(row, key),
    timeZone: row.time_zone,
    variables: row.variables === null ? null : Object.fromEntries(JSON.parse(row.variables)),
    notBefore: instantOrNull(row.not_before),
    notAfter: instantOrNull(row.not_after),
    durationSeconds: row.duration_seconds,
    attempts: row.attempt,
    firstAttemptAt: instantOrNull(row.first_attempt_at),
    nextAttemptAt: isWaiting ? instantOrNull(row.due_at) : null,
    toldLateAt: instantOrNull(row.told_late_at),
  };
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
