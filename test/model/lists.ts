import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema, callsSummarySchema } from '#contract/console/calls.ts';
import { campaignsSchema } from '#contract/console/directory.ts';
import { usersSchema } from '#contract/console/users.ts';
import { stopsSchema } from '#contract/protection/dialing.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import { untilServed } from '../support/http.ts';
import { day } from './basics.ts';
import { type Call, getState, type Model } from './model.ts';
import type { Viewer } from './people.ts';
import { listNodes } from './requests.ts';
import type { World } from './world.ts';

/**
 * Compares everything that a viewer sees. The viewer must be signed in.
 *
 * @param compared campaigns whose calls were already compared. They're skipped, because everyone who sees a campaign sees the same calls
 */
export async function compareLists(model: Model, world: World, viewer: Viewer, compared = new Set<string>()): Promise<void> {
  const { email, type } = model.users.require(viewer.user);
  const scope = model.findScope(viewer);
  const get = (path: string) => untilServed(() => world.as(viewer, 0, 'GET', path));
  const expectSame = (what: string, actual: unknown, expected: unknown) => {
    const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (got !== wanted) throw new Error(`${what}, as ${email} sees it:\n  should be ${wanted}\n  but is    ${got}`);
  };
  /** Compares rows in any order, because only the order of keys is promised. */
  const expectRows = (what: string, ...rows: [actual: readonly unknown[], expected: readonly unknown[]]) => {
    const [actual, expected] = rows.map((some) => some.map((row) => JSON.stringify(row)).sort());
    expectSame(what, actual, expected);
  };
  async function readPages<Page extends { nextCursor: string | null }>(path: string, schema: { parse(json: unknown): Page }) {
    const pages: Page[] = [];
    for (let cursor: string | null = ''; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null)
      pages.push(schema.parse((await get(`${path}${cursor === '' ? '' : `?cursor=${cursor}`}`)).json));
    return pages;
  }

  const { apiKeys, total } = apiKeysSchema.parse((await get('/console/api-keys')).json);
  const keys = [...model.keys.values()].filter((key) => !key.revoked && model.seesKey(viewer, key));
  const newestFirst = keys.sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1));
  expectSame(
    'the list of keys',
    apiKeys.map(({ id, expired, ownerDisabled = false, owner }) => [id, expired, ownerDisabled, owner?.isYou]),
    newestFirst.map(({ id, expiresAt, creator }) => [
      ...[id, model.now > expiresAt, model.users.get(creator)?.isDisabled],
      type === 'account' ? undefined : creator === viewer.user,
    ]),
  );
  expectSame('the number of keys', total, keys.length);

  const { stops } = stopsSchema.parse((await get('/console/stops')).json);
  const seenStops = [...model.stops.values()].filter((stop) => model.seesStop(viewer, stop));
  expectRows(
    'what is stopped',
    stops.map(({ id, target, mayResume }) => [id, target?.id ?? null, mayResume]),
    seenStops.map((stop) => [stop.id, stop.target, model.mayResume(viewer, stop)]),
  );

  const campaigns = Map.groupBy(listNodes(model, 'campaign'), ({ id }) => model.isWithin(id, scope));
  const inScope = campaigns.get(true) ?? [];
  expectRows(
    'the list of campaigns',
    campaignsSchema.parse((await get('/console/campaigns')).json).campaigns.map(({ id, name, account }) => [id, name, account.id]),
    inScope.map(({ id, name, parent }) => [id, name, parent]),
  );
  for (const { id, name } of inScope.filter((campaign) => !compared.has(campaign.id))) {
    compared.add(id);
    const path = `/console/campaigns/${id}/calls`;
    const calls = [...model.calls.values()].filter(({ campaign }) => campaign === id);
    const pages = await readPages(path, callsSchema);
    expectRows(
      `the list of calls of ${name}`,
      pages.flatMap((page) => page.calls.map(({ contactId, state, contact }) => [contactId, state, contact.phone === null])),
      calls.map((call) => [call.id, getState(call), call.isErased]),
    );
    const { days } = callsSummarySchema.parse((await get(`${path}/summary?timeZone=UTC`)).json);
    for (const [n, { day: date, states, answeredBy = {} }] of days.entries()) {
      const placed = placedOn(calls, date, n === days.length - 1);
      const answered = placed.filter((call) => getState(call) === 'completed' && call.answeredBy !== null);
      expectRows(`the chart of ${date}`, Object.entries(states), countBy(placed, getState));
      expectRows(
        `who answered on ${date}`,
        Object.entries(answeredBy),
        countBy(answered, (call) => call.answeredBy),
      );
    }
  }
  if (scope !== null) {
    const pages = await readPages('/console/do-not-call', doNotCallSchema);
    const listed = model.directory.values().filter(({ id }) => model.isWithin(id, scope));
    expectRows(
      'the do-not-call list',
      pages.flatMap(({ entries }) => entries.map((entry) => [entry.scope.id, entry.phone])),
      [...listed].flatMap((node) => [...node.listed].map((phone) => [node.id, phone])),
    );
  }
  const [hidden] = campaigns.get(false) ?? [];
  if (hidden) expectSame('a campaign elsewhere', (await get(`/console/campaigns/${hidden.id}/calls`)).status, 404);

  const users = await get('/console/users');
  if (type === 'account') return expectSame('the list of users', users.status, 403);
  const seen = [...model.users.values()].filter((user) => model.seesUser(viewer, user));
  expectRows(
    'the list of users',
    usersSchema.parse(users.json).users.map(({ id, disabledAt, account }) => [id, disabledAt !== null, account?.id ?? null]),
    seen.map(({ id, isDisabled, home }) => [id, isDisabled, model.isPartner(home) ? null : home]),
  );
}

/** Calls placed while the clock was ahead count as today's. */
function placedOn(calls: readonly Call[], date: string, isToday: boolean): Call[] {
  const from = Date.parse(date);
  return calls.filter(({ placedAt }) => placedAt >= from && (isToday || placedAt < from + day));
}

function countBy<Name>(calls: readonly Call[], name: (call: Call) => Name): [Name, number][] {
  return [...Map.groupBy(calls, name)].map(([group, { length }]) => [group, length]);
}
