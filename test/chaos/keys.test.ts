import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { makeKeyValue } from '#contract/key-value.ts';
import { type Answer, ask, readCookies } from '../support/http.ts';
import { createKey, onDemand, openDirect, password, placeCall, signIn } from '../support/tenants.ts';
import { type Attack, describeAttacks, isQuick } from './attack.ts';
import { inParallel, startCrowd, startLoad } from './load.ts';
import { openScene, type Scene } from './scene.ts';

/** Keys are revoked on one core while they're in use on both: no request sent after the response may be accepted. */
const revoke: Attack['run'] = async (trial) => {
  const scene = await openScene(trial);
  const { ledger, cookie } = scene;
  const urls = [scene.core().url, (await scene.start()).url] as const;
  const load = startLoad(scene, { placers: isQuick ? 4 : 8, url: (n) => urls[n % 2 ? 0 : 1] });
  await inParallel(trial, isQuick ? 10 : 1_000, 4, async (n) => {
    const { id, keyValue: key } = await createKey(urls[0], cookie);
    let turn = 0;
    const use = () => scene.place(`revoke-${n}-${turn}`, { key, url: urls[turn++ % 2 ? 0 : 1] });
    const using = startCrowd(trial, 3, use);
    await use();
    const { status } = await ask('DELETE', `${urls[n % 2 ? 0 : 1]}/console/api-keys/${id}`, { cookie });
    if (status === 204) ledger.revoke(key);
    else ledger.fail(`revoking a key got ${status}`);
    for (let times = 0; times < 4; times++) await use();
    await using.stop();
  });
  await load.stop();
  await scene.stopAndCompare();
};

/**
 * While both cores use a key, one limits it to other addresses and then lifts the limit. The long version has 10,000
 * requests that are in progress during such a change.
 */
const narrow: Attack['run'] = async (trial) => {
  const scene = await openScene(trial);
  const { ledger, cookie } = scene;
  const urls = [scene.core().url, (await scene.start()).url] as const;
  const limit = async (n: number, id: string, addresses: string[] | null) => {
    const { status } = await ask('PATCH', `${urls[n % 2 ? 0 : 1]}/console/api-keys/${id}`, { cookie, body: { addresses } });
    if (status !== 200) ledger.fail(`limiting a key got ${status}`);
  };
  await inParallel(trial, 4, 4, async (lane) => {
    const { id, keyValue: key } = await createKey(urls[0], cookie);
    for (let n = 0; n < (isQuick ? 3 : 85); n++) {
      const use = (turn: number) => scene.place(`narrow-${lane}-${n}-${turn}`, { key, url: urls[turn % 2 ? 0 : 1] });
      ledger.allow(key);
      await limit(n, id, null);
      for (const turn of [0, 1]) if ((await use(turn)).status !== 202) ledger.fail('a key that is allowed everywhere was refused');
      const using = Array.from({ length: 30 }, (_, turn) => use(turn + 2));
      await limit(n + 1, id, ['192.0.2.0/24']);
      ledger.revoke(key);
      await Promise.all([...using, use(32), use(33)]);
    }
  });
  await scene.stopAndCompare();
};

/**
 * Another key, strangers and console users do everything they can at the same time, while a key that places an occasional call is served as
 * usual.
 */
const lanes: Attack['run'] = async (trial) => {
  const scene = await openScene(trial);
  const { ledger, campaignId, key, tenants } = scene;
  const { url } = scene.core();
  const quiet = await createKey(url, scene.cookie);
  await addEndedCalls(scene, quiet.id, isQuick ? 20_000 : 300_000);
  const searchers = await Promise.all(Array.from({ length: 4 }, () => signIn(url, tenants.users.account.email)));
  const search = `${url}/console/campaigns/${campaignId}/calls?search=nobody-has-this`;
  const session = `${url}/console/session`;
  const teammate = await signIn(url, tenants.users.teammate.email);
  const startFlood = (width: number, disturb: (n: number) => Promise<unknown>) =>
    startCrowd(trial, width, (n) => disturb(n).catch(() => undefined));
  const floods = [
    startFlood(isQuick ? 32 : 128, () => placeCall(url, campaignId, key)),
    startFlood(16, () => ask('POST', onDemand(url, campaignId), { key: makeKeyValue(randomBytes), body: {} })),
    startFlood(8, (n) => ask('GET', search, { cookie: searchers[n % 4] ?? '' })),
    startFlood(isQuick ? 8 : 200, () => ask('GET', session, { cookie: teammate })),
  ];
  let slowest = 0;
  for (let n = 0; n < (isQuick ? 25 : 500); n++) {
    const startedAt = performance.now();
    await scene.mustPlace(`quiet-${n}`, { key: quiet.keyValue });
    slowest = Math.max(slowest, performance.now() - startedAt);
    const { status } = n % 10 === 0 ? await ask('GET', session, { cookie: scene.cookie }) : { status: 200 };
    if (status !== 200) ledger.fail(`another user of the console got ${status}`);
    await pause(20);
  }
  const counts = await Promise.all(floods.map((one) => one.stop()));
  const disturbances = counts.reduce((sum, count) => sum + count);
  ledger.note(`${disturbances} requests from others; the quiet key waited ${Math.round(slowest)} ms at most`);
  await scene.stopAndCompare();
};

/** Adds the calls that a search has to read. */
async function addEndedCalls({ database, campaignId, tenants }: Scene, keyId: string, count: number): Promise<void> {
  await using direct = await openDirect(database);
  const of = { campaign_id: campaignId, account_id: tenants.account.id, api_key_id: keyId, state: 'completed', placed_at: 1, ended_at: 1 };
  const rows = Array.from({ length: count }, (_, n) => ({ ...of, contact_id: `old-${n}`, request_id: `old-${n}`, name: 'Ada' }));
  await direct.storage.database.write.batchInsert('calls', rows, 100);
}

/** In ms. The short version runs in parallel with other tests, and only records how long a sign-in took. */
const maxSignInMs = 10_000;
const patience = 60_000;

/** Returns a network: every third network belongs to the same provider, and the other networks to as many providers as possible. */
function newNetwork(n: number): string {
  const group = () => randomInt(0x1_0000).toString(16);
  if (n % 3 === 0) return `2001:db8:${group()}::1`;
  return n % 3 === 1 ? `${randomInt(1, 224)}.${randomInt(256)}.${randomInt(256)}.1` : `2${randomInt(0x1000).toString(16)}:${group()}::1`;
}

/** A flood of sign-ins for invented users, each from its own network, while real users sign in and a quiet key places calls. */
const signIns: Attack['run'] = async (trial) => {
  const scene = await openScene(trial, { environment: { TRUSTED_PROXIES: '127.0.0.1' } });
  const { ledger } = scene;
  const { url } = scene.core();
  const attempt = (email: string, secret: string, from: string, cookie?: string): Promise<Answer> => {
    const headers = { 'X-Forwarded-For': from };
    return ask('POST', `${url}/console/session`, { body: { email, password: secret }, headers, ...(cookie ? { cookie } : {}) });
  };
  const known = readCookies(await attempt('ada@example.com', password, '198.51.100.1'));
  const flooding = startCrowd(trial, isQuick ? 64 : 256, (n) =>
    attempt(`nobody${n}@example.com`, 'a password', newNetwork(n)).catch(() => undefined),
  );
  const placing = startCrowd(trial, 1, async (n) => {
    await scene.mustPlace(`quiet-${n}`);
    await pause(100);
  });
  const start = performance.now();
  let slowest = 0;
  for (let n = 0; n < (isQuick ? 1 : 10); n++) {
    await pause(500);
    const since = performance.now();
    let answer = await attempt('ada@example.com', password, `192.0.2.${n}`);
    while (answer.status === 429 && performance.now() - since < patience) {
      await pause(Number(answer.headers['retry-after']) * 1_000);
      answer = await attempt('ada@example.com', password, `192.0.2.${n}`);
    }
    const waited = performance.now() - since;
    slowest = Math.max(slowest, waited);
    if (answer.status !== 201 || (waited > maxSignInMs && !isQuick))
      ledger.fail(`a correct password got ${answer.status} after ${Math.round(waited)} ms`);
    const again = await attempt('ada@example.com', password, newNetwork(n), known);
    if (again.status !== 201) ledger.fail(`a known browser got ${again.status}`);
  }
  const seconds = (performance.now() - start) / 1_000;
  const [attempts, quiet] = await Promise.all([flooding.stop(), placing.stop()]);
  ledger.note(
    `at ${Math.round(attempts / seconds)} attempts per second, a new browser was signed in after ${Math.round(slowest)} ms at most, and a quiet key placed ${quiet} calls`,
  );
  await scene.stopAndCompare();
};

describeAttacks(
  {
    name: 'lanes',
    title: 'floods of requests with another key, with unknown keys and in one session, and of slow searches by four users',
    run: lanes,
  },
  { name: 'revoke', title: 'keys revoked on one core and used on another', quickOn: 'postgres', run: revoke },
  { name: 'narrow', title: 'keys limited to other addresses on one core and used on another', quickOn: 'postgres', run: narrow },
  { name: 'sign-ins', title: 'a flood of sign-ins, each from a new network', run: signIns },
);
