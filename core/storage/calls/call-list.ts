import type { Knex } from 'knex';
import { answerers } from '#contract/calls/dialer.ts';
import { callStates } from '#contract/calls/states.ts';
import type { Named } from '#contract/console/common.ts';
import { parsePhoneDigits, toPhonePrefix } from '#contract/text/text.ts';
import { countAttempts, type Stage, waitingStages } from '../../domain/calls/call-states.ts';
import { latestDialing } from '../../domain/calls/dialing.ts';
import type { KeyVisibility } from '../../domain/directory/scope.ts';
import type { Millis } from '../../domain/instant.ts';
import type { CallCount, CallDetails, CallFilter, CallListStore, CallScope, ListedCall, StretchEnd } from '../../domain/ports.ts';
import { contactKey, readContacts } from '../dialing/contact-limits.ts';
import { campaignsIn, hasCampaign, isInCampaigns } from '../directory/directory.ts';
import { callLane, callLanes, groupByLane, inCallLanes } from '../engine/call-lanes.ts';
import { both, type Condition, countUpTo, either, idsIn, inRange, matching, oneSelected, splitRange } from '../engine/conditions.ts';
import { type Dialect, type Lane, type Lanes, required } from '../engine/database.ts';
import { countedState } from '../engine/ended-calls.ts';
import type { CallRow } from '../engine/tables.ts';
import { keysById, narrowFoundToVisible, narrowToVisible } from '../keys/api-keys.ts';
import { readCampaignRules } from '../protection/known.ts';

const listedColumns = [
  ...(['campaign_id', 'request_id', 'contact_id', 'api_key_id', 'phone', 'name', 'state'] as const),
  ...(['detail', 'placed_at', 'dialed_at', 'ended_at', 'provider', 'held_until', 'held_for', 'answered_by', 'time_zone'] as const),
  ...(['not_before', 'not_after'] as const),
];
type ListedRow = Pick<CallRow, (typeof listedColumns)[number]>;

const shownColumns = [
  ...(['variables', 'duration_seconds', 'attempt'] as const),
  ...(['first_attempt_at', 'due_at', 'handoff', 'late_outcome_at'] as const),
];
type ShownRow = ListedRow & Pick<CallRow, (typeof shownColumns)[number]>;

type KeyRow = { id: string; name: string; creator_id: string; creator_name: string };

export function callListStore({ lists: database, background }: Lanes): CallListStore {
  const { kind, read } = database;
  return {
    hasCampaign: (access, campaignId) => hasCampaign(read, access, campaignId),

    async list(scope, filter, cursor, visibility, limit) {
      const { lanes, calls, end } = await findStretch(database, scope, filter, cursor, limit);
      const pages = await Promise.all(lanes.map(({ query }) => query<ListedRow>(pageSql(calls, limit), calls.values)));
      const rows = pages.length === 1 ? pages.flat() : newestOf(pages.flat(), limit);
      return { calls: await withNames(read, visibility, rows), end };
    },

    async matchingExactly(scope, filter, before, visibility, limit) {
      const others = both(
        isInCampaigns(database, scope),
        matchingCalls(kind, { ...filter, search: '' }),
        inRange(timeColumns, filter.placed),
      );
      const withRequestId = both({ sql: 'request_id = ?', values: [filter.search] }, others);
      const withNumber = both(
        { sql: `first_attempt_at < ? AND (SELECT count(*) FROM found) <= ${mostOfNumber}`, values: [before] },
        others,
      );
      const phone = toPhonePrefix(filter.search);
      const number = phone === null ? null : ofNumber(kind, scope, phone);
      const pages = await Promise.all(
        lanesIn(database, scope).flatMap(({ query }) => [
          query<ListedRow>(pageSql(withRequestId, limit), withRequestId.values),
          number &&
            query<ListedRow>(
              `WITH found AS MATERIALIZED (SELECT * FROM calls WHERE ${number.sql} LIMIT ${mostOfNumber + 1}) ${pageSql(withNumber, limit, 'found')}`,
              [...number.values, ...withNumber.values],
            ),
        ]),
      );
      const rows = new Map(pages.flatMap((page) => page ?? []).map((row) => [row.contact_id, row]));
      return withNames(read, visibility, newestOf([...rows.values()], limit));
    },

    async countUpTo(scope, filter, max) {
      if (!matchesAll(filter)) return null;
      const parts = splitRange(timeColumns, filter.placed).map((part) => both(isInCampaigns(database, scope), part));
      const counts = await Promise.all(lanesIn(database, scope).map((lane) => countUpTo(lane, 'calls', parts, max)));
      return counts.reduce((sum, count) => Math.min(sum + count, max), 0);
    },

    async count(scope, filter, cursor) {
      const { lanes, calls, end } = await findStretch(database, scope, filter, cursor, 0);
      const sql = `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, ${countedState} AS state, count(*) AS calls
        FROM calls WHERE ${calls.sql} GROUP BY 1, 2, 3`;
      const rows = await Promise.all(lanes.map(({ query }) => query<CountRow & { campaign_id: string }>(sql, calls.values)));
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

    async withLastContacts(calls, ofPartner, now) {
      const limited = calls.filter(({ heldFor }) => heldFor === 'contact-limit');
      if (limited.length === 0) return [...calls];
      const rules = await readCampaignRules(database, [...new Set(limited.map(({ campaign }) => campaign.id))]);
      const toContact = ({ heldFor, campaign, phone }: ListedCall) => {
        const limits = heldFor === 'contact-limit' ? rules.get(campaign.id)?.contactLimits : null;
        return limits && phone !== null && (ofPartner || limits.counts.accountId !== null) ? { limits, phone } : null;
      };
      const contacts = limited.flatMap((call) => toContact(call) ?? []);
      const times = await readContacts(database, contacts, now);
      return calls.map((call) => {
        const contact = toContact(call);
        return contact ? { ...call, lastCalledAt: times.get(contactKey(contact))?.[0] } : call;
      });
    },

    async summary(campaignId, since) {
      const sql = summarySql(kind === 'postgres' ? ['call_counts', 'call_count_changes'] : ['call_counts']);
      const bindings = kind === 'postgres' ? [campaignId, since, campaignId, since] : [campaignId, since];
      const rows = await callLane(database, campaignId).query<CountRow>(sql, [...bindings, campaignId, campaignId, since]);
      return rows.map(toCount);
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

/** SQL for a page. Sorts only the IDs, and then reads the rows, because these are long, and campaigns may have thousands of matches. */
function pageSql({ sql }: Condition, limit: number, table = 'calls'): string {
  const columns = listedColumns.map((column) => `calls.${column}`).join(', ');
  const page = `SELECT campaign_id, contact_id FROM ${table} WHERE ${sql} ORDER BY contact_id DESC LIMIT ${limit}`;
  return `SELECT ${columns} FROM (${page}) AS page
    CROSS JOIN calls WHERE calls.campaign_id = page.campaign_id AND calls.contact_id = page.contact_id ORDER BY calls.contact_id DESC`;
}

function newestOf(rows: readonly ListedRow[], limit: number): ListedRow[] {
  return rows.toSorted((a, b) => (a.contact_id > b.contact_id ? -1 : 1)).slice(0, limit);
}

/** @property state the {@link countedState} */
type CountRow = { quarter_at: Millis; state: string; calls: number };

function toCount({ quarter_at, state: counted, calls }: CountRow): CallCount {
  const answeredBy = answerers.find((answerer) => counted === `completed by ${answerer}`) ?? null;
  return { quarterAt: quarter_at, state: callStates.find((state) => state === counted) ?? 'completed', answeredBy, calls };
}

function countOfCampaign({ campaign_id, ...row }: CountRow & { campaign_id: string }) {
  return { campaignId: campaign_id, ...toCount(row) };
}

/** Adds the names of the calls' campaigns, and of their keys if the viewer can see them. */
async function withNames(read: Knex, visibility: KeyVisibility, rows: readonly ListedRow[]): Promise<ListedCall[]> {
  const keys = await visibleKeys(read, visibility, [...new Set(rows.map((row) => row.api_key_id))]);
  const campaignIds = [...new Set(rows.map((row) => row.campaign_id))];
  const campaigns: Named[] = await read('campaigns').select('id', 'name').whereIn('id', campaignIds);
  const names = new Map(campaigns.map(({ id, name }) => [id, name]));
  return rows.map((row) => listedCall(row, keys.get(row.api_key_id), names.get(row.campaign_id) ?? ''));
}

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
  const isAfterWindow = row.not_after !== null && (row.due_at ?? 0) > row.not_after;
  return {
    call,
    variables: row.variables === null ? null : Object.fromEntries(JSON.parse(row.variables)),
    notBefore: row.not_before,
    notAfter: row.not_after,
    durationSeconds: row.duration_seconds,
    attempts: countAttempts(row.attempt),
    firstAttemptAt: row.first_attempt_at,
    nextAttemptAt: isWaiting && !isHeldForUnknownTime(row) && !call.lapses && !isAfterWindow ? row.due_at : null,
    toldLateAt: row.late_outcome_at,
  };
}

/** The row says only when a dialer looks at such a call again. */
function isHeldForUnknownTime({ held_for }: ListedRow): boolean {
  return held_for === 'stop' || held_for === 'pace';
}

function listedCall(row: ListedRow, key: KeyRow | undefined, campaignName: string): ListedCall {
  const latest = latestDialing({ placedAt: row.placed_at, notBefore: row.not_before, notAfter: row.not_after });
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
    heldUntil: row.ended_at === null && !isHeldForUnknownTime(row) ? row.held_until : null,
    heldFor: row.ended_at === null ? row.held_for : null,
    lapses: row.ended_at === null && row.held_for === 'contact-limit' && row.held_until !== null && row.held_until >= latest,
    answeredBy: row.answered_by,
    timeZone: row.time_zone,
    campaign: { id: row.campaign_id, name: campaignName },
  };
}

const timeColumns = { id: 'contact_id', at: 'placed_at' };
const searchedColumns = ['phone', 'name', 'request_id'];

function matchingCalls(kind: Dialect, { states, apiKey, search }: CallFilter): Condition {
  return both(
    states.length === 0 ? null : { sql: `state IN (${states.map(() => '?').join(', ')})`, values: [...states] },
    apiKey === null ? null : { sql: 'api_key_id = ?', values: [apiKey] },
    search === '' ? null : containing(kind, search),
  );
}

function containing(kind: Dialect, search: string): Condition {
  const conditions = searchedColumns.map((column) => matching(kind, column, search, 'anywhere'));
  const digits = parsePhoneDigits(search);
  // Fewer digits would match nearly every number.
  if (digits !== null && digits.replace('+', '').length >= 3) conditions.push(matching(kind, 'phone', digits, 'anywhere'));
  return either(...conditions);
}

/** The most calls of one number that a search for it reads at once. A test number may have millions. */
const mostOfNumber = 1_000;

/** Builds the condition for the calls of a number in a scope's accounts that were handed off, which have an index (`calls_of_number`). */
function ofNumber(kind: Dialect, scope: CallScope, phone: string): Condition {
  return both(
    { sql: 'phone = ? AND handoff IS NOT NULL', values: [phone] },
    scope.kind === 'all' ? null : oneSelected(kind, 'account_id', 's.account_id', campaignsIn(scope)),
  );
}

/** Whether every call in a campaign's time range matches, so that the range of its index is all there is to read. */
function matchesAll({ states, apiKey, search }: CallFilter): boolean {
  return states.length === 0 && apiKey === null && search === '';
}

/** Returns the lanes that may have calls in a scope. */
function lanesIn(database: Lane, scope: CallScope): readonly Lane[] {
  return scope.kind === 'campaigns' ? [...new Set(scope.ids.map((id) => callLane(database, id)))] : callLanes(database);
}

/** The number of calls that one statement searches. SQLite and PostgreSQL need 10 to 30 ms for this. */
const stretchOfAll = 5_000;
/** The minimum number of calls that one statement searches in each campaign. */
const stretchOfOne = 200;

/**
 * Finds the next stretch after the cursor. Each statement is short, no matter how many calls there are. A stretch contains all calls of all
 * campaigns back to its end, and ends as soon as one campaign has the maximum number of calls in it.
 *
 * @param limit the number of requested calls. If all calls in the range match, a stretch of this length is enough
 */
async function findStretch(database: Lane, scope: CallScope, filter: CallFilter, cursor: string | null, limit: number) {
  const lanes = lanesIn(database, scope);
  const length = limit > 0 && matchesAll(filter) ? limit : await stretchLength(database, scope);
  const ahead = idsIn('contact_id', filter.placed, { from: null, before: cursor });
  const ends = await Promise.all(lanes.map((lane) => findEnd(lane, scope, ahead, length)));
  const end = ends.reduce<StretchEnd>((last, each) => (last === null || (each && each.contactId > last.contactId) ? each : last), null);
  const inStretch = inRange(timeColumns, filter.placed, { from: end?.contactId ?? null, before: cursor });
  const { kind } = database;
  return { lanes, calls: both(isInCampaigns(database, scope), matchingCalls(kind, filter), inStretch), end };
}

async function stretchLength(database: Lane, scope: CallScope): Promise<number> {
  const { sql, values } = campaignsIn(scope);
  const [row] = await database.query<{ calls: number | string }>(`SELECT count(*) AS calls ${sql}`, values);
  return Math.max(stretchOfOne, Math.ceil(stretchOfAll / Math.max(1, Number(row?.calls ?? 1))));
}

/** Returns the oldest call of the stretch; null if it contains the oldest calls of all campaigns. */
async function findEnd({ query }: Lane, scope: CallScope, ahead: Condition, length: number): Promise<StretchEnd> {
  const campaigns = campaignsIn(scope);
  const { sql, values } = both({ sql: 'campaign_id = s.id', values: [] }, ahead);
  const [row] = await query<{ id: string; contact_id: string | null }>(
    `SELECT s.id, (SELECT contact_id FROM calls WHERE ${sql} ORDER BY contact_id DESC LIMIT 1 OFFSET ${length - 1}) AS contact_id
     ${campaigns.sql} ORDER BY contact_id DESC NULLS LAST LIMIT 1`,
    [...values, ...campaigns.values],
  );
  if (!row || row.contact_id === null) return null;
  const [oldest] = await query<{ placed_at: Millis }>(`SELECT placed_at FROM calls WHERE campaign_id = ? AND contact_id = ?`, [
    ...[row.id, row.contact_id],
  ]);
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
