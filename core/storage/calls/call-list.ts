import type { Knex } from 'knex';
import type { Named } from '#contract/console.ts';
import { phoneDigits } from '#contract/text/text.ts';
import { type Stage, waitingStages } from '../../domain/calls/call-states.ts';
import type { KeyVisibility } from '../../domain/directory/scope.ts';
import type { Millis } from '../../domain/instant.ts';
import type { CallDetails, CallFilter, InstantRange, ListedCall, StretchEnd } from '../../domain/model.ts';
import type { CallListStore, CallScope } from '../../domain/ports.ts';
import { campaignsOf } from '../directory/tenancies.ts';
import { required } from '../engine/columns.ts';
import type { Database, Dialect, Value } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import { keysById, narrowFoundToVisible, narrowToVisible } from '../keys/api-keys.ts';
import { both, type Condition, either, matching } from './text-search.ts';

const listedColumns = [
  ...(['campaign_id', 'request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider', 'held_until', 'time_zone'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

const shownColumns = [
  ...(['variables', 'not_before', 'not_after', 'duration_seconds'] as const),
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

    async list(scope, filter, cursor, visibility, limit) {
      const stretch = await stretchOf(database, scope, filter, cursor, limit);
      const { sql, values } = stretch.calls;
      const columns = listedColumns.map((column) => `calls.${column}`).join(', ');
      const rows = await database.query<ListedRow>(
        `SELECT ${columns} FROM calls WHERE ${sql} ORDER BY contact_id DESC LIMIT ${limit}`,
        values,
      );
      return { calls: await withNames(read, visibility, rows), end: stretch.end };
    },

    async countPlaced(scope, placed, most) {
      const { sql, values } = both(within(kind, scope), placedIn(placed));
      const [row] = await database.query<{ calls: number | string }>(
        `SELECT count(*) AS calls FROM (SELECT 1 FROM calls WHERE ${sql} LIMIT ${most}) AS matching`,
        values,
      );
      return Number(row?.calls ?? 0);
    },

    async count(scope, filter, cursor) {
      const { calls, end } = await stretchOf(database, scope, filter, cursor, 0);
      const rows = await database.query<CountRow & { campaign_id: string }>(
        `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls WHERE ${calls.sql} GROUP BY 1, 2, 3`,
        calls.values,
      );
      return { counts: rows.map(countOfCampaign), end };
    },

    async seesKey(visibility, id) {
      return (await visibleKeys(read, visibility, [id])).size > 0;
    },

    async find(campaignId, contactId, visibility) {
      const columns = [...listedColumns, ...shownColumns];
      const [row]: ShownRow[] = await read('calls').select(columns).where({ campaign_id: campaignId, contact_id: contactId }).limit(1);
      if (!row) return null;
      const [call] = await withNames(read, visibility, [row]);
      return call ? callDetails(row, call) : null;
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
      return rows.map(countOfCampaign);
    },

    async compactCounts() {
      if (kind === 'postgres') await write.raw(compaction);
    },
  };
}

type CountRow = Pick<CallRow, 'state'> & { quarter_at: Millis; calls: number };

function countOfCampaign({ campaign_id, quarter_at, state, calls }: CountRow & { campaign_id: string }) {
  return { campaignId: campaign_id, quarterAt: quarter_at, state, calls };
}

/**
 * Builds the SQL for a summary. Ended calls come from the stored counts. Open calls are counted directly, in the index of due calls. This
 * is one statement, because a call may end between two. The concatenation keeps PostgreSQL from also reading the campaign's ten million
 * calls in another index (measured without statistics for the table).
 */
function summaryOf(tables: readonly string[]): string {
  const ended = tables.map((table) => `SELECT quarter_at, state, calls FROM ${table} WHERE campaign_id = ? AND quarter_at >= ?`);
  const open = `SELECT placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id = (SELECT account_id FROM campaigns WHERE id = ?) AND due_at IS NOT NULL AND (campaign_id || '') = ? AND placed_at >= ?
    GROUP BY 1, 2`;
  return [...ended, open].join(' UNION ALL ');
}

/**
 * Builds the SQL for a summary of several campaigns. The database adds up quarter-hours to days, because twenty campaigns have hundreds of
 * thousands of rows. The order of the joins makes each day of each campaign one range of the primary key.
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

/** Two compactions at the same time are harmless, because each adds up only the rows that it has deleted itself. */
const compaction = `WITH moved AS (DELETE FROM call_count_changes RETURNING campaign_id, quarter_at, state, calls)
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, quarter_at, state, sum(calls) FROM moved GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (campaign_id, quarter_at, state) DO UPDATE SET calls = call_counts.calls + excluded.calls`;

const searchedColumns = ['phone', 'name', 'request_id'];

function matchingCalls(kind: Dialect, { states, apiKey, search }: CallFilter): Condition[] {
  const conditions: Condition[] = [];
  if (states.length > 0) conditions.push({ sql: `state IN (${states.map(() => '?').join(', ')})`, values: [...states] });
  if (apiKey !== null) conditions.push({ sql: 'api_key_id = ?', values: [apiKey] });
  if (search === '') return conditions;
  const found = searchedColumns.map((column) => matching(kind, column, search, 'anywhere'));
  const digits = phoneDigits(search);
  if (digits !== null) found.push(matching(kind, 'phone', digits, 'anywhere'));
  return [...conditions, either(...found)];
}

/** Builds the condition for a time range. IDs narrow the search to one range of the primary key; the time then decides. */
function placedIn({ from, before, ids }: InstantRange): Condition {
  const bounds: [string, Value][] = [
    ['contact_id >= ?', ids.from],
    ['contact_id < ?', ids.before],
    ['placed_at >= ?', from],
    ['placed_at < ?', before],
  ];
  return both(...bounds.flatMap(([sql, value]) => (value === null ? [] : [{ sql, values: [value] }])));
}

/**
 * Builds the condition for a scope. On PostgreSQL, it uses an array: with a subquery, the planner makes a join and reads the calls of all
 * campaigns in the range.
 */
function within(kind: Dialect, scope: CallScope): Condition {
  const { sql, values } = campaignsIn(scope);
  const isOne = scope.kind === 'campaigns' && scope.ids.length === 1;
  if (isOne) return { sql: 'campaign_id = ?', values: [...scope.ids] };
  const ids = `SELECT s.id ${sql}`;
  return { sql: kind === 'postgres' ? `campaign_id = ANY (ARRAY(${ids}))` : `campaign_id IN (${ids})`, values };
}

/** Builds the table of a scope's campaigns, named `s`. */
function campaignsIn(scope: CallScope): Condition {
  switch (scope.kind) {
    case 'campaigns':
      return { sql: `FROM campaigns s WHERE s.id IN (${scope.ids.map(() => '?').join(', ') || 'NULL'})`, values: [...scope.ids] };
    case 'account':
      return { sql: 'FROM campaigns s WHERE s.account_id = ?', values: [scope.accountId] };
    case 'partner':
      return { sql: 'FROM accounts o JOIN campaigns s ON s.account_id = o.id WHERE o.partner_id = ?', values: [scope.partnerId] };
    case 'nothing':
      return { sql: 'FROM campaigns s WHERE 1 = 0', values: [] };
  }
}

/** The number of calls that one statement searches. SQLite and PostgreSQL need 10 to 30 ms for this. */
const stretchOfAll = 5_000;
/** The minimum for each campaign. */
const stretchOfOne = 200;

/**
 * Finds the next matching calls after the cursor, and the end of the stretch that contains them. Each statement is short, no matter how
 * many calls there are. A stretch has a limited number of calls of each campaign, and at least one campaign reaches that limit, so its
 * calls are the newest of all campaigns.
 *
 * @param limit the number of requested calls. It's enough for a stretch if all calls in the range match
 */
async function stretchOf(database: Database, scope: CallScope, filter: CallFilter, cursor: string | null, limit: number) {
  const conditions = matchingCalls(database.kind, filter);
  const isDense = conditions.length === 0 && (filter.placed.from === null || filter.placed.ids.from !== null);
  const length = isDense && limit > 0 ? limit : await sparseLength(database, scope);
  const after: Condition = cursor === null ? { sql: '1 = 1', values: [] } : { sql: 'contact_id < ?', values: [cursor] };
  const placed = placedIn(filter.placed);
  const { ids } = filter.placed;
  const ahead = both(after, placedIn({ from: null, before: null, ids }));
  const end = await endOfStretch(database, scope, ahead, length);
  const from: Condition = end === null ? { sql: '1 = 1', values: [] } : { sql: 'contact_id >= ?', values: [end.contactId] };
  return { calls: both(within(database.kind, scope), after, from, placed, ...conditions), end };
}

async function sparseLength(database: Database, scope: CallScope): Promise<number> {
  if (scope.kind === 'campaigns' && scope.ids.length === 1) return stretchOfAll;
  const { sql, values } = campaignsIn(scope);
  const [row] = await database.query<{ campaigns: number | string }>(`SELECT count(*) AS campaigns ${sql}`, values);
  return Math.max(stretchOfOne, Math.ceil(stretchOfAll / Math.max(1, Number(row?.campaigns ?? 1))));
}

/** Returns the oldest call of the stretch; null if the stretch contains the oldest calls of all campaigns. */
async function endOfStretch(database: Database, scope: CallScope, ahead: Condition, length: number): Promise<StretchEnd> {
  const campaigns = campaignsIn(scope);
  const [row] = await database.query<{ contact_id: string | null }>(
    `SELECT max(contact_id) AS contact_id FROM (SELECT (
       SELECT contact_id FROM calls WHERE campaign_id = s.id AND ${ahead.sql} ORDER BY contact_id DESC LIMIT 1 OFFSET ${length - 1}
     ) AS contact_id ${campaigns.sql}) AS ends`,
    [...ahead.values, ...campaigns.values],
  );
  const contactId = row?.contact_id ?? null;
  if (contactId === null) return null;
  const { sql, values } = within(database.kind, scope);
  const [oldest] = await database.query<{ placed_at: Millis }>(`SELECT placed_at FROM calls WHERE ${sql} AND contact_id = ?`, [
    ...values,
    contactId,
  ]);
  return { contactId, placedAt: required(oldest?.placed_at ?? null, 'placed_at') };
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
  const revoked = narrowToVisible(keysById(read, 'retired_api_keys', ids), visibility).select(...columns, 'k.creator_name');
  const found: KeyRow[][] = await Promise.all([active, revoked]);
  return new Map(found.flat().map((key) => [key.id, key]));
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
    toldLateAt: row.told_late_at,
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
