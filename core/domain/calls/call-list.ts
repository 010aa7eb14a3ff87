import type { CallState } from '#contract/calls/calls.ts';
import type { AnsweredBy } from '#contract/calls/dialer.ts';
import { limits } from '#contract/limits.ts';
import { listCampaigns } from '../directory/directory.ts';
import { scopeFor } from '../directory/scope.ts';
import type { Turn } from '../fair-queue.ts';
import { type Millis, oneMinute, plus } from '../instant.ts';
import type { Viewer } from '../model.ts';
import { capTotal, type Page, type Total, timeCursors, toPage } from '../paging.ts';
import type {
  CallCount,
  CallDetails,
  CallFilter,
  CallScope,
  CountOfCampaign,
  InstantRange,
  ListedCall,
  ListFilter,
  Ports,
  StretchEnd,
} from '../ports.ts';
import { notFound, Problem } from '../problem.ts';
import { chartDays, type Day, type DayRange, firstDayStart, groupByDay, listDays, rangeEnd } from './days.ts';

/** @property campaignId null for all campaigns in scope */
type CallQuery = { campaignId: string | null; cursor: string | null; filter: CallFilter };

/** The list includes outcomes, so key-authenticated requests can't read it. */
export async function listCalls(ports: Ports, viewer: Viewer, query: CallQuery, turn: Turn): Promise<FoundPage & Total> {
  const scope = await toCallScope(ports, viewer, query.campaignId);
  await requireKey(ports, viewer, query.filter);
  const found = await findPage(ports, viewer, scope, query, turn);
  const calls = await withExactMatches(ports, viewer, scope, query, found);
  const page = { ...found, items: await withLastContacts(ports, viewer, calls) };
  return { ...page, ...(await countTotal(ports, scope, query, page, turn)) };
}

/**
 * Adds the calls to the first page of a search whose request ID or number is exactly what's searched for, because the search may take long to
 * reach them. They come last, because they're older. Later pages omit them: each looks for the calls that the first page has added. A number's
 * calls of the last minute aren't added, because the cores' clocks may differ.
 */
async function withExactMatches(
  { stores }: Ports,
  viewer: Viewer,
  scope: CallScope,
  { cursor, filter }: CallQuery,
  { items, nextCursor, begunAt }: FoundPage,
): Promise<ListedCall[]> {
  if (begunAt === null || (cursor === null && nextCursor === null)) return items;
  const before = plus(begunAt, -oneMinute);
  const exact = await stores.callList.matchingExactly(scope, filter, before, scopeFor(viewer).apiKeys, limits.page + 1);
  // Too many for one page; the search will find them.
  if (exact.length > limits.page) return items;
  const ids = new Set(exact.map(({ contactId }) => contactId));
  if (cursor !== null) return items.filter(({ contactId }) => !ids.has(contactId));
  const last = items.at(-1)?.contactId;
  return [...items, ...exact.filter(({ contactId }) => last === undefined || contactId < last)];
}

async function countTotal(ports: Ports, scope: CallScope, { cursor, filter }: CallQuery, page: FoundPage, turn: Turn): Promise<Total> {
  const seen = page.items.length;
  // There's no time left to count the other matches.
  if (page.searchedBackTo !== null) return { total: seen, totalIsMore: true };
  if (cursor === null && page.nextCursor === null) return { total: seen, totalIsMore: false };
  const { total, totalIsMore } = await countCalls(ports, scope, filter, turn);
  return { total: Math.max(total, seen), totalIsMore };
}

/** The caller reads each part of an export in a new turn. */
export async function findCallsToExport(ports: Ports, viewer: Viewer, query: CallQuery, turn: Turn): Promise<Page<ListedCall>> {
  const scope = await toCallScope(ports, viewer, query.campaignId);
  await requireKey(ports, viewer, query.filter);
  return findPage(ports, viewer, scope, query, turn, limits.exportPage);
}

async function findPage(ports: Ports, viewer: Viewer, scope: CallScope, query: CallQuery, turn: Turn, size: number = limits.page) {
  const calls: ListedCall[] = [];
  const cursor = callCursors.read(query.cursor);
  const begunAt = query.filter.search === '' ? null : (cursor?.at ?? ports.clock.now());
  const toPosition = (call: { contactId: string; placedAt: Millis }) => ({ at: begunAt ?? call.placedAt, id: call.contactId });
  for (let after = cursor?.id ?? null; ; ) {
    const rows = size + 1 - calls.length;
    const rowsFound = await ports.stores.callList.list(scope, query.filter, after, scopeFor(viewer).apiKeys, rows);
    calls.push(...rowsFound.calls);
    const { end } = rowsFound;
    if (calls.length > size || end === null) return { ...toPage(callCursors, size, calls, toPosition), searchedBackTo: null, begunAt };
    // A campaign may have ten million calls without a match, so an incomplete page is a valid result.
    const nextCursor = callCursors.write(toPosition(end));
    if (!(await turn.yieldTurn())) return { items: calls, nextCursor, searchedBackTo: end.placedAt, begunAt };
    after = end.contactId;
  }
}

/**
 * A position has the last call, and the time when the first page of a search was read. Without a search, it has the time of the call, so that
 * an unchanged list has the same ETag.
 */
const callCursors = timeCursors('calls');

async function countCalls(ports: Ports, scope: CallScope, filter: CallFilter, turn: Turn): Promise<Total> {
  const max = limits.countedMatches;
  const counted = await ports.stores.callList.countUpTo(scope, filter, max + 1);
  if (counted !== null) return capTotal(counted);
  let total = 0;
  for (let cursor: string | null = null; ; ) {
    const { counts, end }: { counts: CallCount[]; end: StretchEnd } = await ports.stores.callList.count(scope, filter, cursor);
    for (const { calls } of counts) total += calls;
    if (end === null || total > max) return capTotal(total);
    if (!(await turn.yieldTurn())) return { total, totalIsMore: true };
    cursor = end.contactId;
  }
}

/**
 * @property searchedBackTo the time back to which calls were searched, if the search stopped before the page was full
 * @property begunAt when the first page of a search was read; null without a search
 */
type FoundPage = Page<ListedCall> & { searchedBackTo: Millis | null; begunAt: Millis | null };

export async function showCall(ports: Ports, viewer: Viewer, campaignId: string, contactId: string): Promise<CallDetails> {
  await requireCampaign(ports, viewer, campaignId);
  const found = await ports.stores.callList.find(campaignId, contactId, scopeFor(viewer).apiKeys);
  if (!found) throw new Problem('not-found', "This call doesn't exist in this campaign.");
  const [call = found.call] = await withLastContacts(ports, viewer, [found.call]);
  return { ...found, call };
}

function withLastContacts({ stores, clock }: Ports, viewer: Viewer, calls: readonly ListedCall[]): Promise<ListedCall[]> {
  return stores.callList.withLastContacts(calls, scopeFor(viewer).campaigns.kind !== 'account', clock.now());
}

type ChartQuery = { days: DayRange; filter: CallFilter };

/** Counts a campaign's calls by their current state and by the day they were placed, in a time zone. */
export async function summarizeCalls(ports: Ports, viewer: Viewer, campaignId: string, query: ChartQuery, turn: Turn) {
  await requireCampaign(ports, viewer, campaignId);
  const { days, countedBackTo } = await readChart(ports, viewer, [campaignId], query, turn);
  return { days: days.map(({ day, counts }) => ({ day, ...groupByOutcome(counts) })), countedBackTo };
}

/** Does the same for each campaign on a page of the viewer's campaigns. */
export async function summarizeAllCalls(ports: Ports, viewer: Viewer, page: ListFilter, query: ChartQuery, turn: Turn) {
  const campaigns = await listCampaigns(ports, viewer, page);
  const ids = campaigns.items.map(({ id }) => id);
  const chart = await readChart(ports, viewer, ids, query, turn);
  const days = chart.days.map(({ day, counts }) => {
    const ofCampaign = Map.groupBy(counts, ({ campaignId }) => campaignId);
    return { day, campaigns: [...ofCampaign].map(([id, own]) => ({ id, ...groupByOutcome(own) })) };
  });
  return { days, countedBackTo: chart.countedBackTo };
}

async function readChart(ports: Ports, viewer: Viewer, campaignIds: readonly string[], { days: range, filter }: ChartQuery, turn: Turn) {
  await requireKey(ports, viewer, filter);
  const now = ports.clock.now();
  const days = listDays(now, range);
  const isKept = firstDayStart(days) >= firstDayStart(chartDays(now, range.timeZone));
  const { counts, countedBackTo } =
    isKept && filter.apiKey === null && filter.search === ''
      ? { counts: await readStoredCounts(ports, campaignIds, days, filter.placed.before?.at ?? null), countedBackTo: null }
      : await countByReading(ports, campaignIds, { ...filter, placed: chartStart(ports, filter, days) }, turn);
  const { states, placed } = filter;
  const matching = counts.filter(
    ({ state, quarterAt }) => (states.length === 0 || states.includes(state)) && (placed.before === null || quarterAt < placed.before.at),
  );
  return { days: groupByDay(days, matching), countedBackTo };
}

async function readStoredCounts({ stores }: Ports, campaignIds: readonly string[], days: readonly Day[], before: Millis | null) {
  const [campaignId = '', ...others] = campaignIds;
  const starts = days.map(({ from }) => from);
  if (others.length > 0) return stores.callList.summaryOfAll(campaignIds, starts, before);
  return campaignId === ''
    ? []
    : (await stores.callList.summary(campaignId, firstDayStart(days))).map((count) => ({ ...count, campaignId }));
}

/** Without a range, or if it's too long, a chart shows only the newest days. */
function chartStart({ randomness }: Ports, { placed }: CallFilter, days: readonly Day[]): InstantRange {
  const from = firstDayStart(days);
  return placed.from !== null && placed.from.at >= from ? placed : { ...placed, from: rangeEnd(randomness, from) };
}

/** Counts newest first until it runs out of time. The stored counts don't cover older days, and can't be filtered by key or search. */
async function countByReading({ stores }: Ports, ids: readonly string[], filter: CallFilter, turn: Turn) {
  const counts: CountOfCampaign[] = [];
  for (let cursor: string | null = null; ; ) {
    const stretch: { counts: CountOfCampaign[]; end: StretchEnd } = await stores.callList.count({ kind: 'campaigns', ids }, filter, cursor);
    counts.push(...stretch.counts);
    if (stretch.end === null) return { counts, countedBackTo: null };
    if (!(await turn.yieldTurn())) return { counts, countedBackTo: stretch.end.placedAt };
    cursor = stretch.end.contactId;
  }
}

function groupByOutcome(counts: readonly CallCount[]) {
  const states: Partial<Record<CallState, number>> = sumBy(counts, ({ state }) => state);
  const answeredBy: Partial<Record<AnsweredBy, number>> = sumBy(counts, (count) => count.answeredBy);
  return { states, ...(Object.keys(answeredBy).length > 0 && { answeredBy }) };
}

/** Omits names without calls. */
function sumBy(counts: readonly CallCount[], name: (count: CallCount) => string | null): Record<string, number> {
  const sums = new Map<string, number>();
  for (const count of counts) {
    const own = name(count);
    if (own !== null) sums.set(own, (sums.get(own) ?? 0) + count.calls);
  }
  return Object.fromEntries([...sums].filter(([, calls]) => calls > 0));
}

async function requireCampaign(ports: Ports, viewer: Viewer, campaignId: string): Promise<void> {
  const isInScope = await ports.stores.callList.hasCampaign(scopeFor(viewer).campaigns, campaignId);
  if (!isInScope) throw notFound('campaign');
}

async function toCallScope(ports: Ports, viewer: Viewer, campaignId: string | null): Promise<CallScope> {
  if (campaignId === null) return scopeFor(viewer).campaigns;
  await requireCampaign(ports, viewer, campaignId);
  return { kind: 'campaigns', ids: [campaignId] };
}

/** Refuses a filter by a key that the viewer can't see, because it would show which calls the key has placed. */
async function requireKey(ports: Ports, viewer: Viewer, { apiKey }: CallFilter): Promise<void> {
  if (apiKey === null || (await ports.stores.callList.seesKey(scopeFor(viewer).apiKeys, apiKey))) return;
  throw notFound('API key');
}
