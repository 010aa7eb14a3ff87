import { connect } from 'node:net';
import { expect } from 'chai';
import { tenancyHeader } from '#contract/console/session.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, password, signIn } from '../support/tenants.ts';
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
      const refused = await create(harness.core);
      expect([refused.status, textAt(refused, 'type')]).to.deep.equal([409, 'urn:callkey:problems#conflict']);
      expect(textAt(refused, 'detail')).to.match(/^You have 5 active API keys, .* Revoke a key that's no longer needed, then try again\.$/);
      await createKey(harness.core.url, await signIn(harness.core.url, 'tom@example.com'));
    });

    it('can be created again when another key is revoked or expires', async () => {
      const { json } = await ask('GET', `${harness.core.url}/console/api-keys`, { cookie });
      const [first] = (json as { apiKeys: { id: string }[] }).apiKeys;
      await ask('DELETE', `${harness.core.url}/console/api-keys/${first?.id}`, { cookie });
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
      const read = await ask('GET', `${core.url}/console/users`, {
        cookie: cookies[0],
        headers: { [tenancyHeader]: `account/${account.id}` },
      });
      expect(read.status, 'with the header alone').to.equal(429);
      expect(read.text).to.contain('At most 300 switches between accounts or partners per minute are allowed.');
      clock.advance({ minutes: 1, milliseconds: 1 });
      expect((await select(10)).status).to.equal(200);
    });
  });
});

describe("a user's changes within an hour", () => {
  // The counters are tested on both databases in storage/throttle.test.ts.
  const clock = fakeClock();
  const harness = openOnce(async () => {
    const opened = await openCore({ clock });
    const other = await startCoreHere(opened.database, { clock });
    return { ...opened, other, close: () => other.close().then(opened.close) };
  });

  it('are limited in all sessions and on all cores together, but not other users, nor what ends or protects something', async () => {
    const { core, other, tenants, direct } = harness;
    const [first, second] = [await signIn(core.url, 'pat@example.com'), await signIn(other.url, 'pat@example.com')];
    const send = (method: string, path: string, sent?: object, cookie = first, url = core.url) =>
      ask(method, `${url}/console/${path}`, { cookie, ...(sent === undefined ? {} : { body: sent }) });
    const key = await createKey(core.url, first);
    const account = { name: 'Many', partnerId: tenants.partner.id };
    const change = (n: number) =>
      [
        () => send('POST', 'directory/accounts', account),
        () => send('POST', 'directory/campaigns', { name: 'Many', accountId: tenants.account.id }, second, other.url),
        () => send('PATCH', `api-keys/${key.id}`, { callsPerDay: 100 + n }, second),
        () => send('PATCH', `directory/accounts/${tenants.siblingAccount.id}`, { name: `Green ${n}` }),
      ][n % 4]?.();
    for (let n = 0; n < 8; n++) expect((await change(n))?.status, `change ${n}`).to.be.oneOf([200, 201]);
    const { write } = direct.storage.database;
    const made = await write('audit_events').where({ actor_id: tenants.users.partner.id, action: 'account.added' });
    const copies = Array.from({ length: 191 }, (_, n) => ({ ...made[0], id: `copy-${n}`, seq: null, hash: null }));
    await write.batchInsert('audit_events', copies, 50);
    clock.advance({ minutes: 50 });
    const refused = await send('POST', 'directory/accounts', account, second, other.url);
    expect([refused.status, Number(refused.headers['retry-after'])]).to.deep.equal([429, 600]);
    expect(textAt(refused, 'detail')).to.contain('200 changes within an hour').and.to.contain('10 minutes');
    for (const [method, path, sent] of [
      ['PATCH', `api-keys/${key.id}`, { callsPerDay: 1 }],
      ['POST', 'api-keys', body],
      ['POST', 'users', { email: 'much@example.com', name: 'Much', userType: 'partner' }],
      ['PATCH', `users/${tenants.users.tied.id}`, { accountId: tenants.siblingAccount.id }],
      ['POST', `users/${tenants.users.tied.id}/password`, undefined],
      ['GET', 'activity.csv', undefined],
      ['POST', 'exports', { list: 'users', rows: 1 }],
    ] as const) {
      expect([path, (await send(method, path, sent)).status]).to.deep.equal([path, 429]);
    }
    for (const [method, path, sent] of [
      ['DELETE', `api-keys/${key.id}`, undefined],
      ['POST', 'do-not-call', { phones: ['+493012345678'], reason: 'asked', partnerId: tenants.partner.id }],
      ['PATCH', `users/${tenants.users.tied.id}`, { disabled: true }],
      ['DELETE', `users/${tenants.users.teammate.id}`, undefined],
      ['POST', 'password', { currentPassword: password, newPassword: 'another long password' }],
      ['DELETE', 'session', undefined],
    ] as const)
      expect((await send(method, path, sent)).status, `${method} ${path}`).to.be.below(300);
    const staff = await signIn(core.url, 'stan@example.com');
    expect((await send('POST', 'directory/accounts', account, staff)).status, 'another user').to.equal(201);
    clock.advance({ minutes: 10, seconds: 1 });
    const again = await signIn(core.url, 'pat@example.com', 'another long password');
    expect((await send('POST', 'directory/accounts', account, again)).status, 'later').to.equal(201);
    expect(await direct.storage.database.read('accounts').where({ name: 'Many' })).to.have.length(4);
  });
});
