import { type CallState, callStates } from '#contract/calls/states.ts';
import { parsePhoneDigits } from '#contract/text/text.ts';
import { areOpen, areUncommon, commonStates, isOpen } from '../../../domain/calls/call-states.ts';
import { type Millis, quarterHour } from '../../../domain/instant.ts';
import type { CallFilter, StretchEnd } from '../../../domain/model.ts';
import type { CallScope } from '../../../domain/ports.ts';
import { required } from '../../engine/columns.ts';
import { both, type Condition, either, idsIn, inRange, matching, splitRange } from '../../engine/conditions.ts';
import type { Database, Dialect } from '../../engine/database.ts';
import { shardOf, shardsOf } from '../../engine/shards.ts';

const timeColumns = { id: 'contact_id', at: 'placed_at' };
const searchedColumns = ['phone', 'name', 'request_id'];

/** Written as text, because the condition of a partial index doesn't match parameters: see migrations/021-list-filters-additive.ts. */
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
    case 'nothing':
      return { sql: 'FROM campaigns s WHERE 1 = 0', values: [] };
  }
}

/** See `CallListStore.countUpTo`. */
export async function countUpTo(database: Database, scope: CallScope, filter: CallFilter, max: number): Promise<number | null> {
  const counts = await Promise.all(shardsIn(database, scope).map((shard) => countInShard(shard, scope, filter, max)));
  if (counts.includes(max)) return max;
  return counts.reduce((sum, count) => (sum === null || count === null ? null : Math.min(sum + count, max)), 0);
}

async function countInShard(database: Database, scope: CallScope, filter: CallFilter, max: number): Promise<number | null> {
  const { kind } = database;
  if (isDense(filter)) return (await countStored(database, scope, filter)) < max ? null : max;
  const ofKey = filter.search === '' ? await buildKeyConditions(database, scope, filter) : null;
  if (!ofKey && !isOneRange(filter)) return null;
  const calls = ofKey ?? [both(within(kind, scope), matchingCalls(kind, filter))];
  const parts = splitRange(timeColumns, filter.placed).flatMap((part) => calls.map((each) => both(each, part)));
  return countMatching(database, parts, max);
}

/** Adds up some of the stored counts for charts. The sum is a lower bound, because there are usually more matching calls. */
async function countStored(database: Database, scope: CallScope, { states, placed }: CallFilter): Promise<number> {
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
 * another shard. Each of these calls matches exactly one condition
 */
type Stretch = { callsUntil: (end: StretchEnd) => readonly Condition[]; end: StretchEnd };

/** The calls of a stretch in a shard. */
type StretchOfShard = { shard: Database; calls: readonly Condition[] };

/**
 * Finds the next stretch in all shards. It ends where the shortest of their stretches ends, because that shard's older calls haven't been
 * searched yet.
 */
export async function findStretch(
  database: Database,
  scope: CallScope,
  filter: CallFilter,
  cursor: string | null,
  limit: number,
): Promise<{ shards: StretchOfShard[]; end: StretchEnd }> {
  const inShards = await Promise.all(
    shardsIn(database, scope).map(async (shard) => ({ shard, ...(await findInShard(shard, scope, filter, cursor, limit)) })),
  );
  const end = inShards.reduce<StretchEnd>((last, { end }) => (last === null || (end && end.contactId > last.contactId) ? end : last), null);
  return { shards: inShards.map(({ shard, callsUntil }) => ({ shard, calls: callsUntil(end) })), end };
}

/** Returns the shards that may have calls in a scope. */
function shardsIn(database: Database, scope: CallScope): readonly Database[] {
  return scope.kind === 'campaigns' ? [...new Set(scope.ids.map((id) => shardOf(database, id)))] : shardsOf(database);
}

/**
 * Finds the next matching calls after the cursor, and the end of the stretch that contains them. Each statement is short, no matter how
 * many calls there are. A stretch contains all calls of all campaigns back to its end, and ends as soon as one campaign has the maximum
 * number of calls in it. If the filter asks for uncommon states or a key, the maximum applies to each state instead.
 *
 * @param limit the number of requested calls. If all calls in the range match, a stretch of this length is enough
 */
async function findInShard(
  database: Database,
  scope: CallScope,
  filter: CallFilter,
  cursor: string | null,
  limit: number,
): Promise<Stretch> {
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
async function buildKeyConditions(database: Database, scope: CallScope, filter: CallFilter): Promise<Condition[] | null> {
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

/** The condition of a partial index: see migrations/030-calls-by-key-additive.ts. */
const hasEnded: Condition = { sql: 'due_at IS NULL', values: [] };

function splitStates(states: readonly CallState[]): { open: CallState[]; ended: CallState[] } {
  const requested = states.length === 0 ? callStates : states;
  return { open: requested.filter(isOpen), ended: requested.filter((state) => !isOpen(state)) };
}

/**
 * Builds the condition for all calls in a scope that haven't ended; null if there are too many. Hides the campaign, so that the planner
 * doesn't choose another index.
 */
async function openCalls(database: Database, scope: CallScope): Promise<Condition | null> {
  const { kind } = database;
  const queue = both(isAmong(kind, 'account_id', 'account_id', scope), { sql: 'due_at IS NOT NULL', values: [] });
  return (await countMatching(database, [queue], stretchOfAll + 1)) > stretchOfAll
    ? null
    : both(queue, isAmong(kind, `(campaign_id || '')`, 'id', scope));
}

type Counted = { calls: number | string };

/** Counts calls up to `max`. @param parts conditions. Each call matches at most one */
async function countMatching(database: Database, parts: readonly Condition[], max: number): Promise<number> {
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

async function sparseLength(database: Database, { table }: Starts): Promise<number> {
  const [row] = await database.query<Counted>(`SELECT count(*) AS calls ${table.sql}`, table.values);
  return Math.max(stretchOfOne, Math.ceil(stretchOfAll / Math.max(1, Number(row?.calls ?? 1))));
}

/** Returns the oldest call of the stretch; null if the stretch contains the oldest calls of all ranges. */
async function findStretchEnd(database: Database, starts: Starts, ahead: Condition, length: number): Promise<StretchEnd> {
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
