import { connect } from 'node:net';
import { expect } from 'chai';
import { tenancyHeader } from '#contract/console/session.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, insertKeys, password, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const environment = { MAX_ACTIVE_KEYS_PER_USER: '5' };
const body = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'UTC' };

describe("a user's active API keys", () => {
  onEachDatabase((kind) => {
    let other: RunningCore;
    let cookie: string;
    const clock = fakeClock();
    const harness = openOnce(() => openCore({ kind, clock, environment }));
    before(async () => {
      other = await startCoreHere(harness.database, { clock, environment });
    });
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      await harness.direct.storage.database.write('api_keys').delete();
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });
    after(() => other.close());
    const create = (core: RunningCore, more = {}) => ask('POST', `${core.url}/console/api-keys`, { cookie, body: { ...body, ...more } });
    const activeKeys = () => harness.direct.ports.stores.apiKeys.countActive(harness.tenants.users.account.id, clock.now());

    it('never exceed the limit, even if two cores create many at the same time', async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => create(n % 2 === 0 ? harness.core : other)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([...Array(5).fill(201), ...Array(7).fill(409)]);
      expect(await activeKeys()).to.equal(5);
    });

    it('are refused at the limit with a message that says what to do, while teammates can still create theirs', async () => {
      await insertKeys(harness.direct, harness.tenants, ['1', '2', '3', '4', '5']);
      const refused = await create(harness.core);
      expect([refused.status, textAt(refused, 'type')]).to.deep.equal([409, 'urn:callkey:problems#conflict']);
      expect(textAt(refused, 'detail')).to.match(/^You have 5 active API keys, .* Revoke a key that's no longer needed, then try again\.$/);
      await createKey(harness.core.url, await signIn(harness.core.url, 'tom@example.com'));
    });

    it('can be created again when another key is revoked or expires', async () => {
      await insertKeys(harness.direct, harness.tenants, ['1', '2', '3', '4', '5']);
      await ask('DELETE', `${harness.core.url}/console/api-keys/1`, { cookie });
      expect((await create(harness.core, { expiration: { kind: 'years', years: 1 } })).status).to.equal(201);
      expect((await create(harness.core)).status).to.equal(409);
      clock.advance({ years: 1, days: 1 });
      cookie = await signIn(harness.core.url, 'ada@example.com');
      expect((await create(harness.core)).status).to.equal(201);
      expect((await create(harness.core)).status).to.equal(409);
    });
  });
});

describe("a user's changes", () => {
  const harness = openOnce(() => openCore());

  it("are made one at a time across sessions, are refused if too many wait, and don't delay other users' changes", async () => {
    const { url } = harness.core;
    const create = (cookie: string, sent = body) => ask('POST', `${url}/console/api-keys`, { cookie, body: sent });
    const cookies = [await signIn(url, 'ada@example.com'), await signIn(url, 'ada@example.com')];
    const text = JSON.stringify(body);
    // Soon refused, once it's this request's turn.
    const wrong = { ...body, name: '' };
    const slow = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
    const head = `POST /console/api-keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: ${cookies[0]}\r\n`;
    slow.write(`${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n{`);
    // The user's other changes wait until the rest of this request's body has arrived.
    const other = await signIn(url, 'tom@example.com');
    const statuses: number[] = [];
    const all = Array.from({ length: 264 }, async (_, n) => statuses.push((await create(cookies[n % 2] ?? '', wrong)).status));
    await until(() => statuses.includes(429));
    expect((await create(other)).status).to.equal(201);
    slow.write(text.slice(1));
    await Promise.all(all);
    slow.destroy();
    expect(statuses).to.include(422);
  });
});

describe("a staff user's tenancy changes", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const harness = openOnce(() => openCore({ kind, clock }));

    it('record one event per tenancy, session and hour, when the tenancy is used, in whatever way it was chosen', async () => {
      const { core, tenants, direct } = harness;
      const { account, otherAccount, partner } = tenants;
      const table = () => direct.storage.database.read('audit_events').where({ action: 'tenancy.selected' });
      const before = (await table()).length;
      const recorded = async () => (await table().orderBy('id')).slice(before).map(({ subject_id }) => subject_id);
      const [first, second] = [await signIn(core.url, 'stan@example.com'), await signIn(core.url, 'stan@example.com')];
      const read = (cookie: string, path: string, tenancy?: string) =>
        ask('GET', `${core.url}/console/${path}`, { cookie, headers: tenancy === undefined ? {} : { [tenancyHeader]: tenancy } });
      await ask('PUT', `${core.url}/console/session/tenancy`, { cookie: first, body: { kind: 'account', id: account.id } });
      await read(first, 'session');
      expect(await recorded(), 'nothing was shown yet').to.deep.equal([]);
      await Promise.all([read(first, 'users'), read(first, 'api-keys'), read(first, 'calls', `account/${account.id}`)]);
      expect(await recorded()).to.deep.equal([account.id]);
      await read(first, 'activity.csv', `account/${otherAccount.id}`);
      await read(first, 'do-not-call', `partner/${partner.id}`);
      await read(first, 'users', `partner/${partner.id}`);
      await read(second, 'users', `account/${account.id}`);
      expect(await recorded()).to.deep.equal([account.id, otherAccount.id, partner.id, account.id]);
      clock.advance({ hours: 1, milliseconds: 1 });
      await read(second, 'users', `account/${account.id}`);
      expect((await recorded()).slice(4)).to.deep.equal([account.id]);
      const [event] = await table().orderBy('id', 'desc').limit(1);
      expect(event).to.deep.include({ partner_id: partner.id, account_id: account.id, address: '127.0.0.1' });
    });

    // The counters are tested on both databases in storage/throttle.test.ts.
    if (kind === 'postgres') return;

    it("are limited per minute, but selecting the current tenancy again isn't counted", async () => {
      // Starts a minute in which nothing was counted.
      clock.advance({ minutes: 2 });
      const { core, tenants, direct } = harness;
      const cookies = [await signIn(core.url, 'stan@example.com'), await signIn(core.url, 'stan@example.com')];
      const { account, otherAccount } = tenants;
      // Each request changes the tenancy of one of the two sessions.
      const select = (n: number, more = {}) =>
        ask('PUT', `${core.url}/console/session/tenancy`, {
          cookie: cookies[n % 2] ?? '',
          body: { kind: 'account', id: (n % 4 < 2 ? account : otherAccount).id },
          ...more,
        });
      const statuses: number[] = [];
      for (let n = 0; n < 8; n++) statuses.push((await select(n)).status);
      const attempts = direct.storage.database.write('sign_in_attempts').where('key', 'like', 'tenancy:%');
      expect(await attempts.clone().pluck('attempts')).to.deep.equal([8]);
      await attempts.update({ attempts: 298 });
      for (let n = 8; n < 12; n++) statuses.push((await select(n)).status);
      expect(statuses).to.deep.equal([...Array(10).fill(200), 429, 429]);
      expect((await select(8)).status).to.equal(200);
      const named = await select(10, { headers: { [tenancyHeader]: `account/${account.id}` } });
      expect(Number(named.headers['retry-after']), 'a change of the session, but not of the request').to.be.within(1, 60);
      const read = () =>
        ask('GET', `${core.url}/console/users`, { cookie: cookies[0], headers: { [tenancyHeader]: `account/${account.id}` } });
      expect((await read()).status, 'with the header alone').to.equal(429);
      const again = await read();
      expect(again.status, 'and again, because nothing was recorded').to.equal(429);
      expect(again.text).to.contain('At most 300 switches between accounts or partners per minute are allowed.');
      clock.advance({ minutes: 1, milliseconds: 1 });
      expect((await select(10)).status).to.equal(200);
    });
  });
});

describe("a user's changes within an hour", () => {
  // The counters are tested on both databases in storage/throttle.test.ts.
  const clock = fakeClock('2026-11-21T09:00:00.000Z');
  const harness = openOnce(async () => {
    const opened = await openCore({ clock });
    const other = await startCoreHere(opened.database, { clock });
    return { ...opened, other, close: () => other.close().then(opened.close) };
  });
  let keyId: string;
  let entryId: string;
  let stopId: string;
  let cookie: string;

  const send = (method: string, path: string, sent?: object, as = cookie, url = harness.core.url) =>
    ask(method, `${url}/console/${path}`, { cookie: as, ...(sent === undefined ? {} : { body: sent }) });
  const addAccount = (as = cookie, url = harness.core.url) =>
    send('POST', 'directory/accounts', { name: 'Many', partnerId: harness.tenants.partner.id }, as, url);
  /** Sends these requests. @returns the status of each */
  const tryEach = async (requests: readonly (readonly [method: string, path: string, sent?: object])[]) => {
    const statuses: Record<string, number> = {};
    for (const [method, path, sent] of requests) statuses[`${method} ${path}`] = (await send(method, path, sent)).status;
    return statuses;
  };

  before(async function makeAllChanges() {
    const { core, other, tenants, direct } = harness;
    const [first, second] = [await signIn(core.url, 'pat@example.com'), await signIn(other.url, 'pat@example.com')];
    keyId = (await createKey(core.url, first)).id;
    for (let n = 0; n < 2; n++)
      for (const answer of [
        await addAccount(first),
        await send('POST', 'directory/campaigns', { name: 'Many', accountId: tenants.account.id }, second, other.url),
        await send('PATCH', `api-keys/${keyId}`, { callsPerDay: 100 + n }, second),
        await send('PATCH', `directory/accounts/${tenants.siblingAccount.id}`, { name: `Green ${n}` }, first),
      ])
        expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    const { partner, sibling } = tenants.users;
    await send('POST', 'do-not-call', { phones: [somePhone()], reason: 'asked', partnerId: tenants.partner.id }, first);
    entryId = Object((await send('GET', 'do-not-call', undefined, first)).json).entries[0].id;
    stopId = Object((await send('POST', 'stops', { scope: 'account', id: tenants.account.id }, first)).json).stop.id;
    await send('PATCH', `users/${sibling.id}`, { disabled: true }, first);
    const input = { email: 'sam@example.com', name: 'Sam', userType: 'staff', accountId: null, partnerId: null } as const;
    const { user: staff } = await createUser(direct.ports, operator, input, password);
    const { write } = direct.storage.database;
    const made = await write('audit_events').where({ actor_id: partner.id, action: 'account.added' });
    const copy = (actor_id: string, length: number) =>
      Array.from({ length }, (_, n) => ({ ...made[0], id: `copy-${n} ${actor_id}`, actor_id, seq: null, hash: null }));
    await write.batchInsert('audit_events', [...copy(partner.id, 191), ...copy(staff.id, 200)], 50);
  });
  beforeEach(async () => {
    clock.set('2026-11-21T09:50:00.000Z');
    cookie = await signIn(harness.core.url, 'pat@example.com');
  });

  it('are limited in all sessions and on all cores together', async () => {
    const { core, other, direct } = harness;
    const countAccounts = async () => (await direct.storage.database.read('accounts').where({ name: 'Many' })).length;
    const before = await countAccounts();
    for (const { url } of [core, other]) {
      const refused = await addAccount(await signIn(url, 'pat@example.com'), url);
      expect([refused.status, Number(refused.headers['retry-after'])]).to.deep.equal([429, 600]);
      expect(textAt(refused, 'detail')).to.contain('200 changes within an hour').and.to.contain('10 minutes');
    }
    expect(await countAccounts()).to.equal(before);
  });

  it('are limited whatever they change, and so are exports', async () => {
    const { users, partner, account, siblingAccount, campaign } = harness.tenants;
    const ofPartner = `scope=partner&id=${partner.id}`;
    const statuses = await tryEach([
      ['PATCH', `api-keys/${keyId}`, { callsPerDay: 1 }],
      ['POST', 'api-keys', body],
      ['POST', 'users', { email: 'much@example.com', name: 'Much', userType: 'partner' }],
      ['PATCH', `users/${users.tied.id}`, { accountId: siblingAccount.id }],
      ['POST', `users/${users.tied.id}/password`],
      ['GET', 'activity.csv'],
      ['POST', 'exports', { list: 'users', rows: 1 }],
      ['PATCH', `users/${users.sibling.id}`, { disabled: false }],
      ['PATCH', `directory/accounts/${account.id}`, { name: 'Changed' }],
      ['POST', 'directory/campaigns', { name: 'More', accountId: account.id }],
      ['PATCH', `directory/campaigns/${campaign.id}`, { name: 'Changed' }],
      ['DELETE', `do-not-call/${entryId}`, { reason: 'a mistake' }],
      ['PUT', `calling-hours?${ofPartner}`, { rules: [] }],
      ['PUT', `numbers?${ofPartner}`, { countries: ['DE'], kinds: null }],
      ['PUT', `pace?scope=account&id=${account.id}`, { perSecond: 1, liveCalls: null }],
      ['PUT', `contact-limits?${ofPartner}`, { limits: null }],
      ['DELETE', `stops/${stopId}`],
    ]);
    expect(new Set(Object.values(statuses)), JSON.stringify(statuses)).to.deep.equal(new Set([429]));
  });

  it('are limited for staff, too, and so is the use of a tenancy', async () => {
    const { id } = harness.tenants.partner;
    const staff = await signIn(harness.core.url, 'sam@example.com');
    const adding = await send('POST', 'directory/partners', { name: 'More' }, staff);
    const renaming = await send('PATCH', `directory/partners/${id}`, { name: 'Changed' }, staff);
    await send('PUT', 'session/tenancy', { kind: 'partner', id }, staff);
    const using = await send('GET', 'users', undefined, staff);
    expect([adding.status, renaming.status, using.status]).to.deep.equal([429, 429, 429]);
  });

  it("aren't limited if they end or protect something", async () => {
    const { users, partner } = harness.tenants;
    const newPassword = 'another long password';
    const statuses = await tryEach([
      ['DELETE', `api-keys/${keyId}`],
      ['POST', 'do-not-call', { phones: ['+493012345678'], reason: 'asked', partnerId: partner.id }],
      ['PATCH', `users/${users.tied.id}`, { disabled: true }],
      ['DELETE', `users/${users.teammate.id}`],
      ['POST', 'password', { currentPassword: password, newPassword }],
      ['DELETE', 'session'],
    ]);
    expect(Object.values(statuses), JSON.stringify(statuses)).to.deep.equal([204, 201, 200, 204, 204, 204]);
    // The other tests use the usual password.
    cookie = await signIn(harness.core.url, 'pat@example.com', newPassword);
    await send('POST', 'password', { currentPassword: newPassword, newPassword: password });
  });

  it("don't limit those of other users", async () => {
    expect((await addAccount(await signIn(harness.core.url, 'stan@example.com'))).status).to.equal(201);
  });

  it('are allowed again an hour after the first one', async () => {
    clock.advance({ minutes: 10, seconds: 1 });
    expect((await addAccount()).status).to.equal(201);
  });
});
