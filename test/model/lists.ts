import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { campaignsSchema } from '#contract/console/directory.ts';
import { usersSchema } from '#contract/console/users.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import type { Answer } from '../support/http.ts';
import { type Call, getState, type Model } from './model.ts';
import { day, type Viewer } from './people.ts';
import { listNodes } from './requests.ts';
import type { World } from './world.ts';

function expectSame(what: string, actual: unknown, expected: unknown): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${what}:\n  should be ${wanted}\n  but is    ${got}`);
}

const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);

/**
 * Compares everything that a viewer sees. The viewer must be signed in.
 *
 * @param compared campaigns whose calls were already compared. They're skipped, because everyone who sees a campaign sees the same calls
 */
export async function compareLists(model: Model, world: World, viewer: Viewer, compared = new Set<string>()): Promise<void> {
  const who = model.users.get(viewer.user)?.email;
  const get = (path: string) => world.as(viewer, 0, 'GET', path);

  const { apiKeys, total } = apiKeysSchema.parse((await get('/console/api-keys')).json);
  const seen = [...model.keys.values()].filter((key) => !key.revoked && model.seesKey(viewer, key));
  const newestFirst = seen.sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1));
  expectSame(
    `the keys of ${who}`,
    apiKeys.map(({ id, expired, ownerDisabled = false, owner }) => [id, expired, ownerDisabled, owner?.isYou]),
    newestFirst.map(({ id, expiresAt, creator }) => [
      id,
      expiresAt !== null && model.now > expiresAt,
      model.users.get(creator)?.isDisabled,
      model.users.get(viewer.user)?.type === 'account' ? undefined : creator === viewer.user,
    ]),
  );
  expectSame(`the number of keys of ${who}`, total, seen.length);

  const scope = model.findScope(viewer);
  const inScope = listNodes(model, 'campaign').filter(({ id }) => model.isWithin(id, scope));
  const { campaigns: listed } = campaignsSchema.parse((await get('/console/campaigns')).json);
  expectSame(
    `the campaigns of ${who}`,
    listed.map(({ id, name, account }) => ({ id, name, account: account.id })).sort(byId),
    inScope.map(({ id, name, parent }) => ({ id, name, account: parent })).sort(byId),
  );
  for (const { id: campaign } of inScope) {
    if (compared.has(campaign)) continue;
    compared.add(campaign);
    const path = `/console/campaigns/${campaign}/calls`;
    const calls = [...model.calls.values()].filter((call) => call.campaign === campaign);
    expectSame(
      `the calls that ${who} sees`,
      await readPages(path, get, readCalls),
      calls.sort(byId).map((call) => ({ id: call.id, state: getState(call), isErased: call.isErased })),
    );
    const { days } = callsSummarySchema.parse((await get(`${path}/summary?timeZone=UTC`)).json);
    const today = days.at(-1)?.day;
    for (const { day: date, states } of days)
      expectSame(`the chart of ${date}`, sorted(states), sorted(countStates(calls, date, date === today)));
  }
  if (scope !== null) {
    const entries = [...model.directory.values()].flatMap(({ id, listed }) =>
      model.isWithin(id, scope) ? [...listed].map((phone) => ({ id: `${id} ${phone}` })) : [],
    );
    expectSame(`the do-not-call list of ${who}`, await readPages('/console/do-not-call', get, readEntries), entries.sort(byId));
  }
  const other = listNodes(model, 'campaign').find(({ id }) => !model.isWithin(id, scope));
  if (other) expectSame(`a campaign hidden from ${who}`, (await get(`/console/campaigns/${other.id}/calls`)).status, 404);

  const users = await get('/console/users');
  if (model.users.get(viewer.user)?.type === 'account') return expectSame(`the users of ${who}`, users.status, 403);
  const ids = usersSchema
    .parse(users.json)
    .users.map(({ id, disabledAt, account }) => ({ id, isDisabled: disabledAt !== null, account: account?.id ?? null }));
  const expected = [...model.users.values()].filter((user) => model.seesUser(viewer, user));
  expectSame(
    `the users of ${who}`,
    ids.sort(byId),
    expected.sort(byId).map(({ id, isDisabled, home }) => ({ id, isDisabled, account: model.isPartner(home) ? null : home })),
  );
}

type Get = (path: string) => Promise<Answer>;
type Page<Item> = { items: Item[]; nextCursor: string | null };

function readCalls(json: unknown) {
  const { calls, nextCursor } = callsSchema.parse(json);
  return { items: calls.map(({ contactId: id, state, contact }) => ({ id, state, isErased: contact.phone === null })), nextCursor };
}

function readEntries(json: unknown) {
  const { entries, nextCursor } = doNotCallSchema.parse(json);
  return { items: entries.map(({ phone, scope: { id } }) => ({ id: `${id} ${phone}` })), nextCursor };
}

/** Reads all pages of a list, sorted. @param read reads the items of a page */
async function readPages<Item extends { id: string }>(path: string, get: Get, read: (json: unknown) => Page<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = read((await get(`${path}${cursor === '' ? '' : `?cursor=${cursor}`}`)).json);
    found.push(...page.items);
    cursor = page.nextCursor;
  }
  return found.sort(byId);
}

/** Calls placed while the clock was ahead count as today's. */
function countStates(calls: readonly Call[], date: string, isToday: boolean): Record<string, number> {
  const counts: Record<string, number> = {};
  const from = Date.parse(date);
  for (const call of calls)
    if (call.placedAt >= from && (isToday || call.placedAt < from + day)) counts[getState(call)] = (counts[getState(call)] ?? 0) + 1;
  return counts;
}

const sorted = (counts: object) => Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1));
