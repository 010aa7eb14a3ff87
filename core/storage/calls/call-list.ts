import type { Knex } from 'knex';
import { type CallState, callStates } from '#contract/calls/states.ts';
import type { Named } from '#contract/console/common.ts';
import { parsePhoneDigits } from '#contract/text/text.ts';
import { areOpen, areUncommon, commonStates, isOpen, type Stage, waitingStages } from '../../domain/calls/call-states.ts';
import type { KeyVisibility } from '../../domain/directory/scope.ts';
import { type Millis, quarterHour } from '../../domain/instant.ts';
import type { CallDetails, CallFilter, ListedCall, StretchEnd } from '../../domain/model.ts';
import type { CallListStore, CallScope } from '../../domain/ports.ts';
import { selectCampaigns } from '../directory/directory.ts';
import { callLane, callLanes, groupByLane, inCallLanes } from '../engine/call-lanes.ts';
import { both, type Condition, either, idsIn, inRange, matching, splitRange } from '../engine/conditions.ts';
import type { Dialect, Lane, Lanes, Value } from '../engine/database.ts';
import { required } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import { keysById, narrowFoundToVisible, narrowToVisible } from '../keys/api-keys.ts';

const listedColumns = [
  ...(['campaign_id', 'request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider', 'held_until', 'held_for', 'answered_by', 'time_zone'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

const shownColumns = [
  ...(['variables', 'not_before', 'not_after', 'duration_seconds'] as const),
  ...(['attempt', 'first_attempt_at', 'due_at', 'handoff', 'late_outcome_at'] as const),
];
type ShownRow = ListedRow & Pick<CallRow, (typeof shownColumns)[number]>;

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore({ lists: database, background }: Lanes): CallListStore {
  const { kind, read } = database;
  return {
    async hasCampaign(access, campaignId) {
      const [campaign]: { id: string }[] = await selectCampaigns(read, access).where('c.id', campaignId).select('c.id').limit(1);
      return campaign !== undefined;
    },

    async list(scope, filter, cursor, visibility, limit) {
      const { lanes, end } = await findStretch(database, scope, filter, cursor, limit);
      const pages = await Promise.all(lanes.map(({ lane, calls }) => lane.query<ListedRow>(pageSql(calls, limit), valuesOf(calls))));
      const rows = pages.length === 1 ? pages.flat() : newestOf(pages.flat(), limit);
      return { calls: await withNames(read, visibility, rows), end };
    },

    countUpTo: (scope, filter, max) => countUpTo(database, scope, filter, max),

    async count(scope, filter, cursor) {
      const { lanes, end } = await findStretch(database, scope, filter, cursor, 0);
      const rows = await Promise.all(
        lanes.map(({ lane, calls }) =>
          lane.query<CountRow & { campaign_id: string }>(
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
      const calls = callLane(database, campaignId).read('calls');
      const [row]: ShownRow[] = await calls.select(columns).where({ campaign_id: campaignId, contact_id: contactId }).limit(1);
      if (!row) return null;
      const [call] = await withNames(read, visibility, [row]);
      return call ? callDetails(row, call) : null;
    },

    async summary(campaignId, since) {
      const sql = summarySql(kind === 'postgres' ? ['call_counts', 'call_count_changes'] : ['call_counts']);
      const bindings = kind === 'postgres' ? [campaignId, since, campaignId, since] : [campaignId, since];
      const rows = await callLane(database, campaignId).query<CountRow>(sql, [...bindings, campaignId, campaignId, since]);
      return rows.map(({ quarter_at, state, calls }) => ({ quarterAt: quarter_at, state, calls }));
    },

    async summaryOfAll(campaignIds, days, before) {
      if (campaignIds.length === 0) return [];
      const bounds = days.flatMap((from, index) => [from, days[index + 1] ?? before ?? Number.MAX_SAFE_INTEGER]);
      const rows = await Promise.all(
        Array.from(groupByLane(database, campaignIds, String), ([lane, ids]) => {
          const sql = summaryOfAll(kind, ids.length, days.length);
          return lane.query<CountRow & { campaign_id: string }>(sql, [...bounds, ...ids, days[0] ?? 0]);
        }),
      );
      return rows.flat().map(countOfCampaign);
    },

    async compactCounts() {
      if (kind === 'postgres') await inCallLanes(background, async ({ write }) => write.raw(compaction));
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
    heldFor: row.ended_at === null ? row.held_for : null,
    answeredBy: row.answered_by,
    timeZone: row.time_zone,
    campaign: { id: row.campaign_id, name: campaignName },
  };
}

const timeColumns = { id: 'contact_id', at: 'placed_at' };
const searchedColumns = ['phone', 'name', 'request_id'];

/** Written as text, because the condition of a partial index doesn't match parameters: see `calls_in_uncommon_states`. */
const uncommon: Condition = { sql: `state NOT IN (${commonStates.map((state) => `'${state}'`).join(', ')})`, values: [] };

/** Builds the condition for everything but the campaigns and the time range. */
function matchingCalls(kind: Dialect, { states, apiKey, search }: CallFilter): Condition {
  return both(
    states.length === 0 ? null : inStates(states),
    areUncommon(states) ? uncommon : null,
    apiKey === null ? null : { sql: 'api_key_id = ?', values: [apiKey] },
    search === '' ? null : containing(kind, search),
  );
}

function inStates(states: readonly CallState[]): Condition {
  return { sql: `state IN (${states.map(() => '?').join(', ')})`, values: [...states] };
}

function containing(kind: Dialect, search: string): Condition {
  const conditions = searchedColumns.map((column) => matching(kind, column, search, 'anywhere'));
  const digits = parsePhoneDigits(search);
  // Fewer digits would match nearly every number.
  if (digits !== null && digits.replace('+', '').length >= 3) conditions.push(matching(kind, 'phone', digits, 'anywhere'));
  return either(...conditions);
}

/**
 * Builds the condition for a scope. On PostgreSQL, it uses an array, because the planner would turn a subquery into a join and read the
 * calls of all campaigns in the range.
 */
function within(kind: Dialect, scope: CallScope): Condition {
  return isOneCampaign(scope) ? { sql: 'campaign_id = ?', values: [...scope.ids] } : isAmong(kind, 'campaign_id', 'id', scope);
}

function isOneCampaign(scope: CallScope): scope is Extract<CallScope, { kind: 'campaigns' }> {
  return scope.kind === 'campaigns' && scope.ids.length === 1;
}

/** Builds the condition that a call's campaign or account is in scope. */
function isAmong(kind: Dialect, column: string, campaignColumn: 'id' | 'account_id', scope: CallScope): Condition {
  const { sql, values } = campaignsIn(scope);
  const select = `SELECT s.${campaignColumn} ${sql}`;
  return { sql: kind === 'postgres' ? `${column} = ANY (ARRAY(${select}))` : `${column} IN (${select})`, values };
}

/** Builds the FROM and WHERE clauses that select a scope's campaigns, as `s`. */
function campaignsIn(scope: CallScope): Condition {
  switch (scope.kind) {
    case 'campaigns':
      return { sql: `FROM campaigns s WHERE s.id IN (${scope.ids.map(() => '?').join(', ') || 'NULL'})`, values: [...scope.ids] };
    case 'account':
      return { sql: 'FROM campaigns s WHERE s.account_id = ?', values: [scope.accountId] };
    case 'partner':
      return { sql: 'FROM accounts o JOIN campaigns s ON s.account_id = o.id WHERE o.partner_id = ?', values: [scope.partnerId] };
    case 'all':
      return { sql: 'FROM campaigns s', values: [] };
    case 'nothing':
      return { sql: 'FROM campaigns s WHERE 1 = 0', values: [] };
  }
}

/** See `CallListStore.countUpTo`. */
async function countUpTo(database: Lane, scope: CallScope, filter: CallFilter, max: number): Promise<number | null> {
  const counts = await Promise.all(lanesIn(database, scope).map((lane) => countInLane(lane, scope, filter, max)));
  if (counts.includes(max)) return max;
  return counts.reduce((sum, count) => (sum === null || count === null ? null : Math.min(sum + count, max)), 0);
}

async function countInLane(database: Lane, scope: CallScope, filter: CallFilter, max: number): Promise<number | null> {
  const { kind } = database;
  if (isDense(filter)) return (await countStored(database, scope, filter)) < max ? null : max;
  const ofKey = filter.search === '' ? await buildKeyConditions(database, scope, filter) : null;
  if (!ofKey && !isOneRange(filter)) return null;
  const calls = ofKey ?? [both(within(kind, scope), matchingCalls(kind, filter))];
  const parts = splitRange(timeColumns, filter.placed).flatMap((part) => calls.map((each) => both(each, part)));
  return countMatching(database, parts, max);
}

/** Adds up some of the stored counts for charts. The sum is a lower bound, because there are usually more matching calls. */
async function countStored(database: Lane, scope: CallScope, { states, placed }: CallFilter): Promise<number> {
  const campaigns = campaignsIn(scope);
  const counts = both(
    { sql: `c.campaign_id = s.id AND c.state IN (${states.map(() => '?').join(', ')})`, values: [...states] },
    placed.from && { sql: 'c.quarter_at >= ?', values: [placed.from.at] },
    placed.before && { sql: 'c.quarter_at <= ?', values: [placed.before.at - quarterHour] },
  );
  // LATERAL and OFFSET 0 keep PostgreSQL from reading the counts of all campaigns first.
  const ofEach =
    database.kind === 'postgres'
      ? `LATERAL (SELECT c.calls FROM call_counts AS c WHERE ${counts.sql} OFFSET 0) AS c`
      : `call_counts AS c WHERE ${counts.sql}`;
  const [row] = await database.query<Counted>(
    `SELECT sum(calls) AS calls FROM (SELECT c.calls FROM (SELECT s.id ${campaigns.sql}) AS s CROSS JOIN ${ofEach} LIMIT ${maxStoredCounts}) AS counted`,
    [...campaigns.values, ...counts.values],
  );
  return Number(row?.calls ?? 0);
}

/** How many stored counts to read, which takes 10 ms. In campaigns with millions of calls, each count stands for several calls. */
const maxStoredCounts = 3_000;

/** Whether only a call's state has to be checked, and most calls probably match. */
function isDense({ states, apiKey, search }: CallFilter): boolean {
  return apiKey === null && search === '' && states.includes('completed');
}

/** Whether the matching calls of a campaign are one range of an index for each state. */
function isOneRange({ states, apiKey, search }: CallFilter): boolean {
  return apiKey === null && search === '' && (states.length === 0 || areUncommon(states));
}

/** The number of calls that one statement searches. SQLite and PostgreSQL need 10 to 30 ms for this. */
const stretchOfAll = 5_000;
/** The minimum number of calls that one statement searches in each campaign. */
const stretchOfOne = 200;
/** The number of calls that one statement searches in each campaign if most calls match. */
const stretchOfDense = 60;

/**
 * @property callsUntil returns the conditions that select the stretch's calls back to an end: its own, or that of a shorter stretch in
 * another lane. Each of these calls matches exactly one condition
 */
type Stretch = { callsUntil: (end: StretchEnd) => readonly Condition[]; end: StretchEnd };

/** The calls of a stretch in a lane. */
type StretchOfLane = { lane: Lane; calls: readonly Condition[] };

/**
 * Finds the next stretch in all lanes. It ends where the shortest of their stretches ends, because that lane's older calls haven't been
 * searched yet.
 */
async function findStretch(
  database: Lane,
  scope: CallScope,
  filter: CallFilter,
  cursor: string | null,
  limit: number,
): Promise<{ lanes: StretchOfLane[]; end: StretchEnd }> {
  const found = await Promise.all(
    lanesIn(database, scope).map(async (lane) => ({ lane, ...(await findInLane(lane, scope, filter, cursor, limit)) })),
  );
  const end = found.reduce<StretchEnd>((last, { end }) => (last === null || (end && end.contactId > last.contactId) ? end : last), null);
  return { lanes: found.map(({ lane, callsUntil }) => ({ lane, calls: callsUntil(end) })), end };
}

/** Returns the lanes that may have calls in a scope. */
function lanesIn(database: Lane, scope: CallScope): readonly Lane[] {
  return scope.kind === 'campaigns' ? [...new Set(scope.ids.map((id) => callLane(database, id)))] : callLanes(database);
}

/**
 * Finds the next matching calls after the cursor, and the end of the stretch that contains them. Each statement is short, no matter how
 * many calls there are. A stretch contains all calls of all campaigns back to its end, and ends as soon as one campaign has the maximum
 * number of calls in it. If the filter asks for uncommon states or a key, the maximum applies to each state instead.
 *
 * @param limit the number of requested calls. If all calls in the range match, a stretch of this length is enough
 */
async function findInLane(database: Lane, scope: CallScope, filter: CallFilter, cursor: string | null, limit: number): Promise<Stretch> {
  const { kind } = database;
  const until = (calls: readonly Condition[]) => (end: StretchEnd) => {
    const inPage = inRange(timeColumns, filter.placed, { from: end?.contactId ?? null, before: cursor });
    return calls.map((each) => both(each, inPage));
  };
  const matches = matchingCalls(kind, filter);
  const open = areOpen(filter.states) ? await openCalls(database, scope) : null;
  if (open) return { callsUntil: until([both(open, matches)]), end: null };
  const ofKey = await buildKeyConditions(database, scope, filter);
  // The index by key includes the campaign, so the key's calls in this campaign are found without reading its rows for other campaigns.
  if (ofKey && isOneCampaign(scope) && filter.search === '') return { callsUntil: until(ofKey), end: null };
  const starts = ofKey ? toKeyStarts(filter) : listStarts(scope, filter);
  const isRange = ofKey ? filter.search === '' : isOneRange(filter);
  const length = limit > 0 && isRange ? limit : limit > 0 && isDense(filter) ? stretchOfDense : await sparseLength(database, starts);
  const ahead = idsIn('contact_id', filter.placed, { from: null, before: cursor });
  const end = await findStretchEnd(database, starts, ahead, length);
  const calls = ofKey ?? [both(within(kind, scope), matches)];
  return { callsUntil: until(calls), end };
}

/**
 * Builds the conditions for a key's matching calls: those that have ended are in an index by key, and all others are in the queue. Hides
 * the campaign, so that the planner doesn't choose another index.
 *
 * @returns null without a key, if the queue is too long to search, or if the key may have far more calls in other campaigns
 */
async function buildKeyConditions(database: Lane, scope: CallScope, filter: CallFilter): Promise<Condition[] | null> {
  const { states, apiKey, search, placed } = filter;
  if (apiKey === null) return null;
  const { kind } = database;
  const ofKey: Condition = { sql: 'api_key_id = ?', values: [apiKey] };
  const { open, ended } = splitStates(states);
  if (isOneCampaign(scope) && ended.length > 0) {
    const calls = both(ofKey, hasEnded, inStates(ended), idsIn('contact_id', placed, { from: null, before: null }));
    if ((await countMatching(database, [calls], fewOfKey + 1)) > fewOfKey) return null;
  }
  const matches = both(ofKey, search === '' ? null : containing(kind, search));
  const parts = ended.length === 0 ? [] : [both(hasEnded, inStates(ended), matches, isAmong(kind, `(campaign_id || '')`, 'id', scope))];
  if (open.length === 0) return parts;
  const queue = await openCalls(database, scope);
  return queue && [...parts, both(queue, inStates(open), matches)];
}

/** If a key has at most this many calls in the range, all of them are read, in three statements. */
const fewOfKey = 10_000;

/** The condition of the partial index `calls_by_api_key`. */
const hasEnded: Condition = { sql: 'due_at IS NULL', values: [] };

function splitStates(states: readonly CallState[]): { open: CallState[]; ended: CallState[] } {
  const requested = states.length === 0 ? callStates : states;
  return { open: requested.filter(isOpen), ended: requested.filter((state) => !isOpen(state)) };
}

/**
 * Builds the condition for all calls in a scope that haven't ended; null if there are too many. Hides the campaign, so that the planner
 * doesn't choose another index.
 */
async function openCalls(database: Lane, scope: CallScope): Promise<Condition | null> {
  const { kind } = database;
  const queue = both(isAmong(kind, 'account_id', 'account_id', scope), { sql: 'due_at IS NOT NULL', values: [] });
  return (await countMatching(database, [queue], stretchOfAll + 1)) > stretchOfAll
    ? null
    : both(queue, isAmong(kind, `(campaign_id || '')`, 'id', scope));
}

type Counted = { calls: number | string };

/** Counts calls up to `max`. @param parts conditions. Each call matches at most one */
async function countMatching(database: Lane, parts: readonly Condition[], max: number): Promise<number> {
  const matching = parts.map(({ sql }) => `SELECT 1 FROM calls WHERE ${sql}`).join(' UNION ALL ');
  const [row] = await database.query<Counted>(
    `SELECT count(*) AS calls FROM (${matching} LIMIT ${max}) AS matching`,
    parts.flatMap(({ values }) => values),
  );
  return Number(row?.calls ?? 0);
}

/**
 * The ranges of an index that a stretch consists of: one for each campaign, for each uncommon state of a campaign, or for each state of a
 * key's calls. The stretch ends in one of them.
 *
 * @property table has a row for each range
 * @property start the column of that row that identifies the range. In all calls of the range, `column` has the same value
 * @property isStart the condition that a call is in the range
 * @property shared the condition that calls of all ranges meet
 */
type Starts = { table: Condition; start: 's.id' | 'asked.column1'; column: 'campaign_id' | 'state'; isStart: string; shared: Condition };

function listStarts(scope: CallScope, { states }: CallFilter): Starts {
  const table = campaignsIn(scope);
  const ofCampaign = { start: 's.id', column: 'campaign_id' } as const;
  if (!areUncommon(states)) return { ...ofCampaign, table, isStart: 'campaign_id = s.id', shared: both() };
  return {
    ...ofCampaign,
    table: { sql: table.sql.replace(/^FROM /, `FROM ${valuesTable(states)} CROSS JOIN `), values: [...states, ...table.values] },
    isStart: 'campaign_id = s.id AND state = asked.column1',
    shared: uncommon,
  };
}

function toKeyStarts({ states, apiKey }: CallFilter): Starts {
  const { ended } = splitStates(states);
  return {
    table: { sql: `FROM ${valuesTable(ended)}`, values: ended },
    ...{ start: 'asked.column1', column: 'state', isStart: 'state = asked.column1' },
    shared: both(hasEnded, { sql: 'api_key_id = ?', values: [apiKey] }),
  };
}

function valuesTable(states: readonly CallState[]): string {
  return `(VALUES ${states.map(() => '(?)').join(', ')}) AS asked`;
}

async function sparseLength(database: Lane, { table }: Starts): Promise<number> {
  const [row] = await database.query<Counted>(`SELECT count(*) AS calls ${table.sql}`, table.values);
  return Math.max(stretchOfOne, Math.ceil(stretchOfAll / Math.max(1, Number(row?.calls ?? 1))));
}

/** Returns the oldest call of the stretch; null if the stretch contains the oldest calls of all ranges. */
async function findStretchEnd(database: Lane, starts: Starts, ahead: Condition, length: number): Promise<StretchEnd> {
  const { table, start, column, isStart, shared } = starts;
  const inStart = both({ sql: isStart, values: [] }, shared, ahead);
  const [row] = await database.query<{ start: string; contact_id: string | null }>(
    `SELECT ${start} AS start, (
       SELECT contact_id FROM calls WHERE ${inStart.sql} ORDER BY contact_id DESC LIMIT 1 OFFSET ${length - 1}
     ) AS contact_id ${table.sql} ORDER BY contact_id DESC NULLS LAST LIMIT 1`,
    [...inStart.values, ...table.values],
  );
  if (!row || row.contact_id === null) return null;
  const call = both({ sql: `${column} = ? AND contact_id = ?`, values: [row.start, row.contact_id] }, shared);
  const [oldest] = await database.query<{ placed_at: Millis }>(`SELECT placed_at FROM calls WHERE ${call.sql}`, call.values);
  return { contactId: row.contact_id, placedAt: required(oldest?.placed_at ?? null, 'placed_at') };
}

/**
 * Builds the SQL for a summary. Ended calls come from the stored counts. Open calls are counted directly, in the index of due calls. It's a
 * single statement, because a call may end between two statements. The concatenation keeps PostgreSQL from also reading the campaign's ten
 * million calls in another index (measured on a table without statistics).
 */
function summarySql(tables: readonly string[]): string {
  const ended = tables.map((table) => `SELECT quarter_at, state, calls FROM ${table} WHERE campaign_id = ? AND quarter_at >= ?`);
  const open = `SELECT placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id = (SELECT account_id FROM campaigns WHERE id = ?) AND due_at IS NOT NULL AND (campaign_id || '') = ? AND placed_at >= ?
    GROUP BY 1, 2`;
  return [...ended, open].join(' UNION ALL ');
}

/**
 * Builds the SQL for a summary of several campaigns. The database adds up the quarter-hours of each day, because twenty campaigns have
 * hundreds of thousands of rows. Each day of each campaign is one range of the primary key, grouped only by state. Grouping all rows at
 * once takes seven times as long on PostgreSQL, and three times as long on SQLite.
 */
function summaryOfAll(kind: Dialect, campaigns: number, days: number): string {
  const bounds = Array(days).fill('(CAST(? AS bigint), CAST(? AS bigint))').join(', ');
  const ofDay = `SELECT t.state, sum(t.calls) AS calls FROM call_counts t
    WHERE t.campaign_id = s.id AND t.quarter_at >= d.from_at AND t.quarter_at < d.until_at GROUP BY t.state`;
  // SQLite has no lateral joins, but its table functions can be joined like that.
  const ended =
    kind === 'postgres'
      ? `SELECT s.id AS campaign_id, d.from_at AS quarter_at, t.state, CAST(t.calls AS bigint) AS calls
         FROM days d CROSS JOIN scope s CROSS JOIN LATERAL (${ofDay}) AS t`
      : `SELECT s.id AS campaign_id, d.from_at AS quarter_at, t.key AS state, t.value AS calls
         FROM days d CROSS JOIN scope s CROSS JOIN json_each((SELECT json_group_object(state, calls) FROM (${ofDay}))) AS t`;
  // This table has no index, because housekeeping keeps it short.
  const changes = `SELECT t.campaign_id, d.from_at AS quarter_at, t.state, CAST(sum(t.calls) AS bigint) AS calls
    FROM call_count_changes t JOIN scope s ON t.campaign_id = s.id JOIN days d ON t.quarter_at >= d.from_at AND t.quarter_at < d.until_at
    GROUP BY 1, 2, 3`;
  const open = `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id IN (SELECT account_id FROM scope) AND due_at IS NOT NULL AND (campaign_id || '') IN (SELECT id FROM scope) AND placed_at >= ?
    GROUP BY 1, 2, 3`;
  const scope = `SELECT id, account_id FROM campaigns WHERE id IN (${Array(campaigns).fill('?')})`;
  const parts = [ended, ...(kind === 'postgres' ? [changes] : []), open];
  return `WITH days (from_at, until_at) AS (VALUES ${bounds}), scope AS (${scope}) ${parts.join(' UNION ALL ')}`;
}

/** Two compactions at the same time are harmless, because each adds up only the rows that it has deleted itself. */
const compaction = `WITH moved AS (DELETE FROM call_count_changes RETURNING campaign_id, quarter_at, state, calls)
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, quarter_at, state, sum(calls) FROM moved GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (campaign_id, quarter_at, state) DO UPDATE SET calls = call_counts.calls + excluded.calls`;
