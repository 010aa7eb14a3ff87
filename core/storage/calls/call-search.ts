import { phoneDigits } from '#contract/text/text.ts';
import { areOpen, areUncommon, commonStates } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import type { CallFilter, StretchEnd } from '../../domain/model.ts';
import type { CallScope } from '../../domain/ports/calls.ts';
import { required } from '../engine/columns.ts';
import type { Database, Dialect } from '../engine/database.ts';
import { idsIn, inRange, partsOfRange } from '../instant-range.ts';
import { both, type Condition, either, matching } from './text-search.ts';

const timeColumns = { id: 'contact_id', at: 'placed_at' };
const searchedColumns = ['phone', 'name', 'request_id'];

/** Written as text, because the condition of a partial index doesn't match parameters: see migrations/021-list-filters-additive.ts. */
const uncommon: Condition = { sql: `state NOT IN (${commonStates.map((state) => `'${state}'`).join(', ')})`, values: [] };

/** Builds the condition for everything but the campaigns and the time range. */
function matchingCalls(kind: Dialect, { states, apiKey, search }: CallFilter): Condition {
  return both(
    states.length === 0 ? null : { sql: `state IN (${states.map(() => '?').join(', ')})`, values: [...states] },
    areUncommon(states) ? uncommon : null,
    apiKey === null ? null : { sql: 'api_key_id = ?', values: [apiKey] },
    search === '' ? null : containing(kind, search),
  );
}

function containing(kind: Dialect, search: string): Condition {
  const conditions = searchedColumns.map((column) => matching(kind, column, search, 'anywhere'));
  const digits = phoneDigits(search);
  if (digits !== null) conditions.push(matching(kind, 'phone', digits, 'anywhere'));
  return either(...conditions);
}

/**
 * Builds the condition for a scope. On PostgreSQL, it uses an array: with a subquery, the planner makes a join and reads the calls of all
 * campaigns in the range.
 */
function within(kind: Dialect, scope: CallScope): Condition {
  const isOne = scope.kind === 'campaigns' && scope.ids.length === 1;
  return isOne ? { sql: 'campaign_id = ?', values: [...scope.ids] } : isAmong(kind, 'campaign_id', 'id', scope);
}

/** Builds the condition that a call's campaign or account is in scope. */
function isAmong(kind: Dialect, column: string, campaignColumn: 'id' | 'account_id', scope: CallScope): Condition {
  const { sql, values } = campaignsIn(scope);
  const select = `SELECT s.${campaignColumn} ${sql}`;
  return { sql: kind === 'postgres' ? `${column} = ANY (ARRAY(${select}))` : `${column} IN (${select})`, values };
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

/** See the port. */
export async function countUpTo(database: Database, scope: CallScope, filter: CallFilter, max: number): Promise<number | null> {
  const { kind } = database;
  if (isDense(filter)) return (await countKept(database, scope, filter)) < max ? null : max;
  if (!isOneRange(filter)) return null;
  const inRanges = partsOfRange(timeColumns, filter.placed);
  const matches = matchingCalls(kind, filter);
  const parts = inRanges.map((part) => both(within(kind, scope), matches, part));
  const values = parts.flatMap((part) => part.values);
  const [row] = await database.query<Counted>(countedUpTo(parts, max), values);
  return Number(row?.calls ?? 0);
}

/** Adds up some of the counts for charts. There are at least this many matching calls, and usually more. */
async function countKept(database: Database, scope: CallScope, { states, placed }: CallFilter): Promise<number> {
  const campaigns = campaignsIn(scope);
  const counts = both(
    { sql: `c.campaign_id = s.id AND c.state IN (${states.map(() => '?').join(', ')})`, values: [...states] },
    placed.from && { sql: 'c.quarter_at >= ?', values: [placed.from.at] },
    placed.before && { sql: 'c.quarter_at <= ?', values: [placed.before.at - quarterMs] },
  );
  // Otherwise, PostgreSQL would read the counts of all campaigns first.
  const ofEach =
    database.kind === 'postgres'
      ? `LATERAL (SELECT c.calls FROM call_counts AS c WHERE ${counts.sql} OFFSET 0) AS c`
      : `call_counts AS c WHERE ${counts.sql}`;
  const [row] = await database.query<Counted>(
    `SELECT sum(calls) AS calls FROM (SELECT c.calls FROM (SELECT s.id ${campaigns.sql}) AS s CROSS JOIN ${ofEach} LIMIT ${keptCounts}) AS counted`,
    [...campaigns.values, ...counts.values],
  );
  return Number(row?.calls ?? 0);
}

const quarterMs = 900_000;
/** Reading these takes 10 ms. Campaigns with millions of calls have several in each. */
const keptCounts = 3_000;

/** Whether only the state has to be read, and most calls are probably in it. */
function isDense({ states, apiKey, search }: CallFilter): boolean {
  return apiKey === null && search === '' && states.includes('completed');
}

/** Whether the matching calls of a campaign are one range of an index for each state. */
function isOneRange({ states, apiKey, search }: CallFilter): boolean {
  return apiKey === null && search === '' && (states.length === 0 || areUncommon(states));
}

/** The number of calls that one statement searches. SQLite and PostgreSQL need 10 to 30 ms for this. */
const stretchOfAll = 5_000;
/** The minimum for each campaign. */
const stretchOfOne = 200;
/** The number for each campaign if most calls match. */
const stretchOfDense = 60;

type Stretch = { calls: Condition; end: StretchEnd };

/**
 * Finds the next matching calls after the cursor, and the end of the stretch that contains them. Each statement is short, no matter how
 * many calls there are. A stretch has a limited number of calls of each campaign, and at least one campaign reaches that limit, so its
 * calls are the newest of all campaigns. If the filter asks for uncommon states, it has a limited number of calls in each state.
 *
 * @param limit the number of requested calls. It's enough for a stretch if all calls in the range match
 */
export async function findStretch(
  database: Database,
  scope: CallScope,
  filter: CallFilter,
  cursor: string | null,
  limit: number,
): Promise<Stretch> {
  const { kind } = database;
  const matches = matchingCalls(kind, filter);
  const inPage = (from: string | null) => inRange(timeColumns, filter.placed, { from, before: cursor });
  const open = areOpen(filter.states) ? await openCalls(database, scope) : null;
  if (open) return { calls: both(open, matches, inPage(null)), end: null };
  const starts = listStarts(scope, filter);
  const length =
    limit > 0 && isOneRange(filter) ? limit : limit > 0 && isDense(filter) ? stretchOfDense : await sparseLength(database, starts);
  const ahead = idsIn('contact_id', filter.placed, { from: null, before: cursor });
  const end = await endOfStretch(database, starts, ahead, length);
  return { calls: both(within(kind, scope), matches, inPage(end?.contactId ?? null)), end };
}

/** Builds the condition for all calls in a scope that haven't ended, if they're few. Hides the campaign from the other indexes. */
async function openCalls(database: Database, scope: CallScope): Promise<Condition | null> {
  const { kind } = database;
  const queue = both(isAmong(kind, 'account_id', 'account_id', scope), { sql: 'due_at IS NOT NULL', values: [] });
  const [row] = await database.query<Counted>(countedUpTo([queue], stretchOfAll + 1), queue.values);
  return Number(row?.calls ?? 0) > stretchOfAll ? null : both(queue, isAmong(kind, `(campaign_id || '')`, 'id', scope));
}

type Counted = { calls: number | string };

/** Builds the SQL that counts calls up to `most`. @param parts don't overlap */
function countedUpTo(parts: readonly Condition[], max: number): string {
  const matching = parts.map(({ sql }) => `SELECT 1 FROM calls WHERE ${sql}`).join(' UNION ALL ');
  return `SELECT count(*) AS calls FROM (${matching} LIMIT ${max}) AS matching`;
}

/** The ranges of an index in which a stretch can end: the campaigns, or their uncommon states. */
type Starts = { table: Condition; isStart: string };

function listStarts(scope: CallScope, { states }: CallFilter): Starts {
  const { sql, values } = campaignsIn(scope);
  if (!areUncommon(states)) return { table: { sql, values }, isStart: 'campaign_id = s.id' };
  const asked = `(VALUES ${states.map(() => '(?)').join(', ')}) AS asked`;
  return {
    table: { sql: sql.replace(/^FROM /, `FROM ${asked} CROSS JOIN `), values: [...states, ...values] },
    isStart: `campaign_id = s.id AND state = asked.column1 AND ${uncommon.sql}`,
  };
}

async function sparseLength(database: Database, { table }: Starts): Promise<number> {
  const [row] = await database.query<Counted>(`SELECT count(*) AS calls ${table.sql}`, table.values);
  return Math.max(stretchOfOne, Math.ceil(stretchOfAll / Math.max(1, Number(row?.calls ?? 1))));
}

/** Returns the oldest call of the stretch; null if the stretch contains the oldest calls of all campaigns. */
async function endOfStretch(database: Database, { table, isStart }: Starts, ahead: Condition, length: number): Promise<StretchEnd> {
  const [row] = await database.query<{ campaign_id: string; contact_id: string | null }>(
    `SELECT s.id AS campaign_id, (
       SELECT contact_id FROM calls WHERE ${isStart} AND ${ahead.sql} ORDER BY contact_id DESC LIMIT 1 OFFSET ${length - 1}
     ) AS contact_id ${table.sql} ORDER BY contact_id DESC NULLS LAST LIMIT 1`,
    [...ahead.values, ...table.values],
  );
  const { campaign_id = '', contact_id = null } = row ?? {};
  if (contact_id === null) return null;
  const [oldest] = await database.query<{ placed_at: Millis }>('SELECT placed_at FROM calls WHERE campaign_id = ? AND contact_id = ?', [
    campaign_id,
    contact_id,
  ]);
  return { contactId: contact_id, placedAt: required(oldest?.placed_at ?? null, 'placed_at') };
}
