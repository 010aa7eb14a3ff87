// Measures how long the console waits if the queue is long and there are years of calls, and how much that slows down a key that's placing
// calls at the same time.
import { setTimeout as pause } from 'node:timers/promises';
import { pathTo } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes.ts';
import { password } from '../support/direct-database.ts';
import { placeAtRate } from './measure.ts';
import type { DatabaseKind } from './processes.ts';
import { computeSpread, count, databaseLabel, repeat, say, table, timed } from './spread.ts';
import { insertKeys, makeQueuedCalls, openStage, type Stage } from './stage.ts';

/** A request of the console. @property path with its query @property as the user who makes it @property body sent with POST */
type Asked = { name: string; path: string; as: 'account' | 'partner' | 'staff'; method?: 'GET' | 'DELETE' | 'POST'; body?: object };

const [repeats, perSecond] = [5, 100];

/**
 * Makes every request that shows something in the console, and those that cancel the whole queue, while another key places 100 calls a second.
 *
 * @param queued calls in the queue of one account @param ended other calls, and keys @returns Markdown
 */
export async function measureConsole(kind: DatabaseKind, queued: number, ended: number): Promise<string> {
  await using stage = await openStage(kind, ended);
  const { database, owner, storage, tenants } = stage;
  const keyIds = [0, 1, 2].map((n) => `${tenants.users.account.id}-${n}`);
  const queue = (keyId: string) => makeQueuedCalls(storage.database, database, { ...owner, keyId }, keyIds.indexOf(keyId) * queued, queued);
  await queue(keyIds[0] ?? '');
  say(`${kind}: ${count(queued)} calls queued, ${count(ended)} ended`);
  const cookies = await signInAll(stage);
  // A key of another user, which none of the requests revokes.
  const [key = ''] = await insertKeys(storage.database, 1, tenants.users.teammate, tenants.account);
  const beside = (work: Promise<unknown>) => placeAtRate(stage, key, perSecond, work);
  await beside(pause(5_000));
  const alone = (await beside(pause(5_000))).p99;
  const rows: string[][] = [];
  const note = (name: string, first: number, again: number | null, p99: number, status: string) => {
    const times = [first.toFixed(0), again?.toFixed(0) ?? '', p99.toFixed(1), (p99 / alone).toFixed(1)];
    rows.push([name, databaseLabel(kind), ...times, status]);
    say(`${kind}: ${rows.at(-1)?.join(', ')}`);
  };
  for (const asked of shown(stage)) {
    const ask = () => request(stage, asked, cookies[asked.as]);
    const first = await ask();
    const again = repeat(repeats, ask);
    const { p99 } = await beside(Promise.all([again, pause(2_000)]));
    note(asked.name, first.ms, computeSpread((await again).map(({ ms }) => ms)).median, p99, first.status);
  }
  for (const [n, asked] of changes(stage, keyIds).entries()) {
    if (n > 0) await queue(keyIds[n] ?? '');
    const changing = request(stage, asked, cookies[asked.as]);
    const { p99 } = await beside(changing);
    note(asked.name, (await changing).ms, null, p99, (await changing).status);
  }
  const title = `${count(queued)} calls queued, ${count(ended)} ended; p99 of a key alone: ${alone.toFixed(1)} ms`;
  return table([title, 'database', 'first, in ms', 'again', "a key's p99", 'p99 / alone', 'status'], rows);
}

async function signInAll({ core, tenants }: Stage): Promise<Record<Asked['as'], Record<string, string>>> {
  const { account, partner, staff } = tenants.users;
  const signIn = async (email: string) => {
    const headers = { 'Content-Type': 'application/json', Origin: core.url };
    const answer = await fetch(`${core.url}/console/session`, { method: 'POST', headers, body: JSON.stringify({ email, password }) });
    if (!answer.ok) throw new Error(`Signing in got ${answer.status}: ${await answer.text()}`);
    const cookie = answer.headers.getSetCookie().map((each) => each.split(';', 1)[0]);
    return { Cookie: cookie.join('; ') };
  };
  const [asAccount, asPartner, asStaff] = [await signIn(account.email), await signIn(partner.email), await signIn(staff.email)];
  const headers = { 'Content-Type': 'application/json', Origin: core.url, ...asStaff };
  const body = JSON.stringify({ kind: 'partner', id: tenants.partner.id });
  await fetch(`${core.url}/console/session/tenancy`, { method: 'PUT', headers, body });
  return { account: asAccount, partner: asPartner, staff: asStaff };
}

/** Builds the requests that show something. */
function shown({ tenants, owner, core }: Stage): Asked[] {
  const routes = consoleRoutes;
  const { campaign, account, partner, users } = tenants;
  const zone = 'timeZone=Europe/Berlin';
  const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);
  const month = `${zone}&from=${day(29)}&to=${day(0)}`;
  const calls = routes.listAllCalls.path;
  const campaignCalls = pathTo(routes.listCalls, campaign);
  const summary = pathTo(routes.summarizeCalls, campaign);
  const key = { id: owner.keyId };
  const of = (as: Asked['as'], named: Readonly<Record<string, string>>): Asked[] =>
    Object.entries(named).map(([name, path]) => ({ name, path, as }));
  return [
    ...of('partner', {
      session: routes.showSession.path,
      keys: routes.listApiKeys.path,
      'a key': `${pathTo(routes.showApiKey, key)}?${zone}`,
      'what revoking a key does': pathTo(routes.previewRevocation, key),
      'what deleting a user does': pathTo(routes.previewDeletion, users.account),
      calls,
      'calls of a month': `${calls}?${month}`,
      'failed calls': `${calls}?state=failed`,
      'completed calls of a day': `${calls}?state=completed&${zone}&from=${day(1)}&to=${day(1)}`,
      'calls of a key': `${calls}?apiKey=${owner.keyId}`,
      'search for a number': `${calls}?search=%2B4930123456`,
      'search for a request ID': `${calls}?search=c4711`,
      'search for what no call has': `${calls}?search=nothing-at-all`,
      "a campaign's calls": campaignCalls,
      "search in a campaign's calls": `${campaignCalls}?search=%2B4930123456`,
      "a campaign's chart": `${summary}?${month}`,
      'the chart of failed calls': `${summary}?${month}&state=failed`,
      'the chart of all campaigns': `${routes.summarizeAllCalls.path}?${month}`,
      users: routes.listUsers.path,
      'search for a user': `${routes.listUsers.path}?search=filler-77`,
      activity: routes.listActivity.path,
      'activity with three filters': `${routes.listActivity.path}?${month}&action=api-key.created&actor=${users.account.id}&search=ada`,
      'filters of activity': routes.listActivityFacets.path,
      'do-not-call list': routes.listDoNotCall.path,
      'calling hours': `${routes.showCallingHours.path}?scope=account&id=${account.id}`,
      'contact limits': `${routes.showContactLimits.path}?scope=partner&id=${partner.id}`,
      stops: routes.listStops.path,
      accounts: routes.listAccounts.path,
      campaigns: routes.listCampaigns.path,
    }),
    ...of('account', { "an account's calls": calls, "an account's keys": routes.listApiKeys.path }),
    ...of('staff', {
      'customers that staff search for': `${routes.searchTenancies.path}?search=blue`,
      'directory of accounts': routes.listDirectoryAccounts.path,
      'directory of campaigns': routes.listDirectoryCampaigns.path,
      metrics: `${core.managementUrl}/metrics`,
    }),
  ];
}

/** Builds the requests that cancel everything in the queue. @param keyIds the key whose calls are queued before each */
function changes({ tenants }: Stage, keyIds: readonly string[]): Asked[] {
  const { stopDialing, revokeApiKey, deleteUser } = consoleRoutes;
  const cancelling = 'cancelQueuedCalls=true';
  const stop = { scope: 'campaign', id: tenants.campaign.id, cancelQueuedCalls: true };
  return [
    { name: 'stopping a campaign and cancelling its calls', method: 'POST', path: stopDialing.path, body: stop, as: 'partner' },
    {
      name: 'revoking a key and cancelling its calls',
      ...{ method: 'DELETE', path: `${pathTo(revokeApiKey, { id: keyIds[1] ?? '' })}?${cancelling}`, as: 'partner' },
    },
    {
      name: 'deleting a user and cancelling their calls',
      ...{ method: 'DELETE', path: `${pathTo(deleteUser, tenants.users.account)}?${cancelling}`, as: 'partner' },
    },
  ];
}

async function request({ core }: Stage, { path, name, method = 'GET', body }: Asked, headers: Record<string, string>) {
  const { result, ms } = await timed(async () => {
    const sent = { method, headers: { ...headers, Origin: core.url, ...(body && { 'Content-Type': 'application/json' }) } };
    const answer = await fetch(new URL(path, core.url), { ...sent, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, text: await answer.text() };
  });
  if (result.status >= 400 && result.status !== 422) throw new Error(`${name} got ${result.status}: ${result.text}`);
  const continues = /"(?:searchedBackTo|countedBackTo)":"/.test(result.text) ? ', continues' : '';
  return { ms, status: `${result.status}${continues}` };
}
