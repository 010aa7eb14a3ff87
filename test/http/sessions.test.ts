import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { consoleRoutes } from '#contract/routes/console.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { changePassword, changeUser, createUser, deleteUser, resetPassword } from '../../core/domain/directory/users.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCode, readCookies } from '../support/http.ts';
import { type DirectAccess, password, signIn, type Tenants } from '../support/tenants.ts';

describe('sessions', () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let close: CoreHarness['close'];
    let direct: DirectAccess;
    let tenants: Tenants;
    let clock: FakeClock;

    before(async () => {
      clock = fakeClock();
      ({ database, core, direct, tenants, close } = await openCore({ kind, clock, environment: { TRUSTED_PROXIES: '127.0.0.1' } }));
    });
    after(() => close());

    const session = (cookie: string) => ask('GET', `${core.url}/console/session`, { cookie });
    const tryPassword = (email: string, attempt: string, headers: Record<string, string> = {}, cookie?: string) =>
      ask('POST', `${core.url}/console/session`, {
        body: { email, password: attempt },
        headers,
        ...(cookie === undefined ? {} : { cookie }),
      });
    /** Throttle counters are by address, so each test has its own. */
    let addresses = 0;
    const fromElsewhere = () => ({ 'X-Forwarded-For': `198.51.100.${++addresses}` });

    describe('signing in', () => {
      it('returns 201 with the session and sets its cookie', async () => {
        const answer = await tryPassword('ada@example.com', password);
        expect(answer.status).to.equal(201);
        expect(sessionSchema.strict().parse(answer.json)).to.deep.equal({
          viewer: {
            id: tenants.users.account.id,
            email: 'ada@example.com',
            name: 'Ada Account',
            userType: 'account',
            account: { id: tenants.account.id, name: 'Blue Clinic' },
            partner: null,
          },
          tenancy: null,
          dialer: 'off',
          reference: true,
          secondFactor: false,
        });
        expect((await session(readCookies(answer))).text).to.equal(answer.text);
      });

      it('ignores the case of the email address', async () => {
        expect((await tryPassword(' ADA@Example.com ', password)).status).to.equal(201);
      });

      it('sets a signed, HttpOnly, SameSite=Strict cookie', async () => {
        const [cookie = '', signature = ''] = setCookies(await tryPassword('ada@example.com', password));
        for (const attribute of ['httponly', 'samesite=strict', 'path=/']) expect(`${cookie}; `.toLowerCase()).to.contain(`${attribute}; `);
        expect(cookie).to.match(/^callkey_session=[\w-]{43};/);
        expect(signature).to.match(/^callkey_session\.sig=/);
        expect(cookie.toLowerCase()).not.to.contain('secure');
      });

      it('sets a Secure cookie with the __Host- prefix over HTTPS', async () => {
        // The scheme of the client's connection comes first.
        const answer = await tryPassword('ada@example.com', password, { 'X-Forwarded-Proto': 'HTTPS , http' });
        for (const cookie of setCookies(answer)) expect(cookie).to.match(/^__Host-callkey_.*; secure/i);
        const cookie = readCookies(answer);
        const seen = await ask('GET', `${core.url}/console/session`, { cookie, headers: { 'X-Forwarded-Proto': 'https' } });
        expect(seen.status).to.equal(200);
        expect((await session(cookie)).status).to.equal(401);
      });

      it('creates a new session ID each time, and ends the previous session', async () => {
        const first = await signIn(core.url, 'ada@example.com');
        const answer = await tryPassword('ada@example.com', password, {}, first);
        expect(readCookies(answer)).not.to.equal(first);
        expect((await session(first)).status).to.equal(401);
        expect((await session(readCookies(answer))).status).to.equal(200);
      });

      it("doesn't adopt a session ID chosen by someone else", async () => {
        const mine = 'callkey_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
        const answer = await tryPassword('ada@example.com', password, {}, mine);
        expect(readCookies(answer)).not.to.contain('AAAAAAAAAA');
      });

      it('stores only a digest of the session ID', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        const id = /callkey_session=([\w-]+)/.exec(cookie)?.[1] ?? '';
        const rows = JSON.stringify(await direct.storage.database.read('sessions'));
        expect(id).to.have.length(43);
        expect(rows).not.to.contain(id);
      });

      for (const [what, body] of [
        ['a missing password', { email: 'ada@example.com' }],
        ["a password that isn't text", { email: 'ada@example.com', password: 1 }],
        ['an unknown field', { email: 'ada@example.com', password, remember: true }],
      ] as const) {
        it(`returns 422 for ${what}`, async () => {
          const answer = await ask('POST', `${core.url}/console/session`, { body });
          expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
        });
      }

      it('is refused with an expired one-time password', async () => {
        const input = { email: 'new@example.com', name: 'New', userType: 'staff', accountId: null, partnerId: null } as const;
        const { password: once } = await createUser(direct.ports, operator, input, null);
        const fresh = await tryPassword('new@example.com', once ?? '');
        expect(fresh.json).to.include({ passwordChangeDue: true });
        clock.advance({ days: 7, seconds: 1 });
        expect((await tryPassword('new@example.com', once ?? '')).status).to.equal(401);
      });
    });

    it('ignores X-Forwarded-Proto if no proxy is trusted', async () => {
      const withoutProxies = await startCoreHere(database, { clock });
      const body = { email: 'ada@example.com', password };
      const answer = await ask('POST', `${withoutProxies.url}/console/session`, { body, headers: { 'X-Forwarded-Proto': 'https' } });
      await withoutProxies.close();
      for (const cookie of setCookies(answer)) expect(cookie.toLowerCase()).not.to.match(/__host-|secure/);
      expect(setCookies(answer)).to.have.length(4);
    });

    /** Sends a request whose body ends only after the given function has run. */
    async function slowly(path: string, as: string, body: object, meanwhile: () => Promise<unknown>, ...more: string[]): Promise<string> {
      const { hostname, port } = new URL(core.url);
      const text = JSON.stringify(body);
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      let answer = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        answer += chunk;
      });
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: x',
        'Connection: close',
        `Cookie: ${as}`,
        ...more,
        'Content-Type: application/json',
        `Content-Length: ${text.length}`,
      ];
      socket.write(`${head.join('\r\n')}\r\n\r\n${text.slice(0, 5)}`);
      // A response on another connection, sent after this request began, shows that the core has started with this request.
      await ask('GET', `${core.url}/console/session`, { cookie: as });
      await meanwhile();
      socket.write(text.slice(5));
      await once(socket, 'close');
      return answer;
    }

    describe('of a user who is moved while a body is being received', () => {
      const body = { name: 'On the way', expiration: { kind: 'none' }, timeZone: 'UTC' };
      const madeIn = async () =>
        (await direct.storage.database.read('api_keys').where({ name: 'On the way' })).map((key) => key.account_id);

      it("act in the user's new scope", async () => {
        const { account, siblingAccount } = tenants;
        const place = { userType: 'account', accountId: account.id, partnerId: null } as const;
        const { user } = await createUser(direct.ports, operator, { ...place, email: 'moved@example.com', name: 'Moved' }, password);
        const cookie = await signIn(core.url, 'moved@example.com');
        const move = () => changeUser(direct.ports, operator, user, { ...place, name: 'Moved', accountId: siblingAccount.id });
        expect(await slowly('/console/api-keys', cookie, body, move)).to.match(/^HTTP\/1\.1 201 /);
        expect(await madeIn()).to.deep.equal([siblingAccount.id]);
      });

      it('can no longer act in a tenancy that only staff may name', async () => {
        const place = { userType: 'staff', accountId: null, partnerId: null } as const;
        const { user } = await createUser(direct.ports, operator, { ...place, email: 'demoted@example.com', name: 'Demoted' }, password);
        const cookie = await signIn(core.url, 'demoted@example.com');
        const demote = () =>
          changeUser(direct.ports, operator, user, { ...place, name: 'Demoted', userType: 'account', accountId: tenants.account.id });
        const header = `${tenancyHeader}: partner/${tenants.otherPartner.id}`;
        expect(await slowly('/console/api-keys', cookie, body, demote, header)).to.match(/^HTTP\/1\.1 403 /);
        expect(await madeIn()).not.to.contain(null);
      });
    });

    describe('end', () => {
      it("while a body is being received, and the request doesn't create a key", async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        const body = { name: 'Too late', expiration: { kind: 'none' }, timeZone: 'UTC' };
        const answer = await slowly('/console/api-keys', cookie, body, () => ask('DELETE', `${core.url}/console/session`, { cookie }));
        expect(answer).to.match(/^HTTP\/1\.1 401 /);
        expect(await direct.storage.database.read('api_keys').where({ name: 'Too late' })).to.deep.equal([]);
      });

      it('immediately on signing out, and remove the cookie', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        const answer = await ask('DELETE', `${core.url}/console/session`, { cookie });
        expect([answer.status, answer.text]).to.deep.equal([204, '']);
        expect(setCookies(answer).join()).to.match(/callkey_session=; .*expires=Thu, 01 Jan 1970/i);
        expect((await session(cookie)).status).to.equal(401);
      });

      it('after a day without use', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        clock.advance({ hours: 23 });
        expect((await session(cookie)).status).to.equal(200);
        clock.advance({ hours: 23 });
        expect((await session(cookie)).status).to.equal(200);
        clock.advance({ hours: 24, seconds: 1 });
        expect((await session(cookie)).status).to.equal(401);
      });

      it('after seven days, whether used or not', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        for (let day = 0; day < 7; day++) {
          clock.advance({ hours: 23, minutes: 59 });
          expect((await session(cookie)).status).to.equal(200);
        }
        clock.advance({ minutes: 8 });
        expect((await session(cookie)).status).to.equal(401);
      });

      it('when the user is deleted', async () => {
        const input = { email: 'gone@example.com', name: 'Gone', userType: 'staff', accountId: null, partnerId: null } as const;
        const { user } = await createUser(direct.ports, operator, input, password);
        const cookie = await signIn(core.url, 'gone@example.com');
        await deleteUser(direct.ports, operator, user, false);
        expect((await session(cookie)).status).to.equal(401);
      });

      it('for a cookie with an invalid signature', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        expect((await session(cookie.replace(/sig=./, 'sig=!'))).status).to.equal(401);
      });

      it('for good, even if one of their requests is in progress', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        await Promise.all([session(cookie), ask('DELETE', `${core.url}/console/session`, { cookie }), session(cookie), session(cookie)]);
        expect((await session(cookie)).status).to.equal(401);
      });
    });

    describe('changing the password', () => {
      const change = (cookie: string, currentPassword: string, newPassword: string) =>
        ask('POST', `${core.url}/console/password`, { cookie, body: { currentPassword, newPassword } });

      it("ends the user's other sessions, and keeps this session", async () => {
        const input = { email: 'pw@example.com', name: 'Pw', userType: 'staff', accountId: null, partnerId: null } as const;
        const { password: once } = await createUser(direct.ports, operator, input, null);
        const other = await signIn(core.url, 'pw@example.com', once ?? '');
        const cookie = await signIn(core.url, 'pw@example.com', once ?? '');
        expect((await change(cookie, once ?? '', 'a new and longer one')).status).to.equal(204);
        expect((await session(other)).status).to.equal(401);
        expect((await session(cookie)).json).not.to.have.property('passwordChangeDue');
        expect((await tryPassword('pw@example.com', once ?? '')).status).to.equal(401);
        expect((await tryPassword('pw@example.com', 'a new and longer one')).status).to.equal(201);
      });

      describe('after a one-time password', () => {
        const newPassword = 'a new and longer one';
        const choose = (cookie: string, body: object) => ask('POST', `${core.url}/console/password`, { cookie, body });
        const begin = async (email: string) => {
          const input = { email, name: 'Once', userType: 'staff', accountId: null, partnerId: null } as const;
          const { user, password: once } = await createUser(direct.ports, operator, input, null);
          return { user, once: once ?? '', cookie: await signIn(core.url, email, once ?? '') };
        };

        it('is the only change that the session can make, besides signing out', async () => {
          const { cookie } = await begin('first@example.com');
          const answers: [string, number][] = [];
          for (const [id, { method, path }] of Object.entries(consoleRoutes).filter(
            ([name, { by }]) => by === 'session' && name !== 'signOut',
          )) {
            const answer = await ask(method, core.url + path.replace(/:\w+/g, 'x'), { cookie, ...(method === 'GET' ? {} : { body: {} }) });
            answers.push([id, answer.status]);
          }
          const allowed = answers.filter(([, status]) => status !== 403);
          expect(Object.fromEntries(allowed)).to.deep.equal({ showSession: 200, changePassword: 422 });
          expect(answers.length).to.be.greaterThan(20);
          expect((await ask('DELETE', `${core.url}/console/session`, { cookie })).status).to.equal(204);
        });

        it('requires only the new password, and the session continues', async () => {
          const { once, cookie } = await begin('second@example.com');
          expect((await choose(cookie, { newPassword: once })).status).to.equal(422);
          expect((await choose(cookie, { newPassword })).status).to.equal(204);
          expect((await ask('GET', `${core.url}/console/api-keys`, { cookie })).status).to.equal(200);
          expect((await session(cookie)).json).not.to.have.property('passwordChangeDue');
          expect((await tryPassword('second@example.com', newPassword)).status).to.equal(201);
          const again = await choose(cookie, { newPassword: 'another one, and longer' });
          expect([again.status, JSON.stringify(again.json['errors'])]).to.deep.equal([
            422,
            '[{"path":"currentPassword","message":"Enter your current password."}]',
          ]);
        });

        it("fails if someone else has reset the user's password since", async () => {
          const { user, cookie } = await begin('third@example.com');
          const id = toDigest(cookie.split(/[=;]/)[1] ?? '');
          const data = await direct.ports.stores.sessions.find(id);
          if (!data) throw new Error('There is no such session.');
          // By now, the request has read its session.
          const { password: reset } = await resetPassword(direct.ports, operator, user, null);
          const changing = changePassword(direct.ports, { who: user, address: '192.0.2.1' }, data, { newPassword }, id);
          expect(await changing.catch(({ code }) => code)).to.equal('invalid');
          expect((await tryPassword('third@example.com', reset ?? '')).status).to.equal(201);
        });
      });

      it('succeeds in only one of two concurrent requests', async () => {
        const input = { email: 'twice@example.com', name: 'Twice', userType: 'staff', accountId: null, partnerId: null } as const;
        await createUser(direct.ports, operator, input, password);
        const cookies = [await signIn(core.url, input.email), await signIn(core.url, input.email)];
        const answers = await Promise.all(cookies.map((cookie, n) => change(cookie, password, `a new and longer one, ${n}`)));
        expect(answers.map(({ status }) => status).sort()).to.satisfy(
          ([won, lost]: number[]) => won === 204 && (lost === 422 || lost === 401),
        );
        const winner = answers.findIndex(({ status }) => status === 204);
        expect((await tryPassword(input.email, `a new and longer one, ${winner}`, fromElsewhere())).status).to.equal(201);
      });

      for (const [what, current, next, path] of [
        ['a wrong current password', 'wrong', 'a new and longer one', 'currentPassword'],
        ['a new password that is too short', password, 'short', 'newPassword'],
        ['the same password again', password, password, 'newPassword'],
      ] as const) {
        it(`returns 422 for ${what}`, async () => {
          const answer = await change(await signIn(core.url, 'pat@example.com'), current, next);
          expect([answer.status, JSON.stringify(answer.json['errors'])]).to.satisfy(
            ([status, errors]: [number, string]) => status === 422 && errors.includes(`"${path}"`),
          );
          expect(answer.text).not.to.contain(next);
        });
      }
    });

    describe("get their client's address", () => {
      /** The address where the latest session was started, according to the audit events. */
      const seenFrom = async (headers: Record<string, string>) => {
        await tryPassword('ada@example.com', password, headers);
        const events = direct.storage.database.read('audit_events').where({ action: 'session.started' });
        return (await events.orderBy('id', 'desc').first('address'))?.address;
      };

      for (const [what, forwarded, address] of [
        ['from the trusted proxy, whatever the client sent', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
        ['in IPv4 if the proxy sends it mapped to IPv6', '::ffff:198.51.100.12', '198.51.100.12'],
        ['in IPv4 if the proxy sends it mapped to IPv6 without dots', '::ffff:C633:640d', '198.51.100.13'],
        ['in IPv4 without the port that the proxy sends', '203.0.113.9:1, 198.51.100.14:5678', '198.51.100.14'],
        ['in normalized IPv6', '2001:DB8:0:0::7', '2001:db8::7'],
        ['in IPv6 without the port that the proxy sends', '[2001:db8::8]:443', '2001:db8::8'],
        ['in IPv6 if it only looks mapped', '64::ffff:198.51.100.7', '64::ffff:c633:6407'],
        ['from the entry before a trusted proxy with a port', '198.51.100.15, 127.0.0.1:4711', '198.51.100.15'],
        ["from the proxy itself if it doesn't send an address", '198.51.100.16, unknown', '127.0.0.1'],
      ] as const) {
        it(what, async () => {
          expect(await seenFrom({ 'X-Forwarded-For': forwarded })).to.equal(address);
        });
      }

      it("from the connection if no proxy is trusted, or the proxy doesn't send an address", async () => {
        expect(await seenFrom({})).to.equal('127.0.0.1');
        const withoutProxies = await startCoreHere(database, { clock });
        const body = { email: 'ada@example.com', password };
        await ask('POST', `${withoutProxies.url}/console/session`, { body, headers: { 'X-Forwarded-For': '198.51.100.7' } });
        await withoutProxies.close();
        const events = direct.storage.database.read('audit_events').where({ action: 'session.started' });
        expect((await events.orderBy('id', 'desc').first('address'))?.address).to.equal('127.0.0.1');
      });
    });

    describe('requests from another site', () => {
      for (const [what, headers, status] of [
        ['another site, by Fetch Metadata', { 'Sec-Fetch-Site': 'cross-site' }, 403],
        ['a sibling site, by Fetch Metadata', { 'Sec-Fetch-Site': 'same-site' }, 403],
        ['another origin, without Fetch Metadata', { Origin: 'https://evil.example' }, 403],
        ['an opaque origin', { Origin: 'null' }, 403],
        ['the same origin, by Fetch Metadata', { 'Sec-Fetch-Site': 'same-origin' }, 200],
        ['the address bar', { 'Sec-Fetch-Site': 'none' }, 200],
        ['a program', {}, 200],
      ] as const) {
        it(`get ${status} from ${what}`, async () => {
          const cookie = await signIn(core.url, 'ada@example.com');
          const answer = await ask('GET', `${core.url}/console/session`, { cookie, headers });
          expect(answer.status).to.equal(status);
          if (status === 403) expect(readCode(answer)).to.equal('cross-site');
        });
      }

      it("can't sign anyone in", async () => {
        expect((await tryPassword('ada@example.com', password, { 'Sec-Fetch-Site': 'cross-site' })).status).to.equal(403);
      });

      it('are distinguished from same-origin requests by Origin', async () => {
        const cookie = await signIn(core.url, 'ada@example.com');
        expect((await ask('GET', `${core.url}/console/session`, { cookie, headers: { Origin: core.url } })).status).to.equal(200);
        const overHttps = { 'X-Forwarded-Proto': 'https', Origin: core.url.replace('http:', 'https:') };
        const answer = await tryPassword('ada@example.com', password, overHttps);
        expect(answer.status).to.equal(201);
      });
    });

    describe('the tenancy of staff', () => {
      const select = (cookie: string, body: object) => ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body });

      it('can be selected, read and cleared', async () => {
        const cookie = await signIn(core.url, 'stan@example.com');
        const selected = await select(cookie, { kind: 'account', id: tenants.account.id });
        expect(selected.status).to.equal(200);
        const { id } = tenants.account;
        expect(selected.json['tenancy']).to.deep.equal({ kind: 'account', id, name: 'Blue Clinic', partnerName: 'Northwind Voice' });
        expect((await session(cookie)).text).to.equal(selected.text);
        expect((await select(cookie, { kind: 'partner', id: tenants.partner.id })).json['tenancy']).to.include({
          kind: 'partner',
          name: 'Northwind Voice',
        });
        expect((await select(cookie, { kind: null })).json['tenancy']).to.equal(null);
      });

      it("can't be selected by other users", async () => {
        for (const email of ['ada@example.com', 'pat@example.com', 'tia@example.com']) {
          const cookie = await signIn(core.url, email);
          const answer = await select(cookie, { kind: 'account', id: tenants.account.id });
          expect([answer.status, readCode(answer)]).to.deep.equal([403, 'forbidden']);
          expect((await ask('GET', `${core.url}/console/tenancies`, { cookie })).status).to.equal(403);
        }
      });

      it('must exist', async () => {
        const cookie = await signIn(core.url, 'stan@example.com');
        expect((await select(cookie, { kind: 'partner', id: tenants.account.id })).status).to.equal(404);
        expect((await select(cookie, { kind: 'nonsense', id: 'x' })).status).to.equal(422);
      });

      it('is searched by name, ignoring case and accents, best match first', async () => {
        const cookie = await signIn(core.url, 'stan@example.com');
        const search = async (text: string) => {
          const { json } = await ask('GET', `${core.url}/console/tenancies?search=${encodeURIComponent(text)}`, { cookie });
          return json['tenancies'];
        };
        expect(await search('CLÍNIC')).to.deep.equal([
          { kind: 'account', id: tenants.account.id, name: 'Blue Clinic', partnerName: 'Northwind Voice' },
          { kind: 'account', id: tenants.siblingAccount.id, name: 'Green Clinic', partnerName: 'Northwind Voice' },
        ]);
        expect(await search('south')).to.deep.equal([{ kind: 'partner', id: tenants.otherPartner.id, name: 'Southgate Calling' }]);
        expect(await search('%')).to.deep.equal([]);
        expect(await search('')).to.have.length(5);
      });

      it('returns 400 for an unknown query parameter', async () => {
        const cookie = await signIn(core.url, 'stan@example.com');
        const answer = await ask('GET', `${core.url}/console/tenancies?searhc=x`, { cookie });
        expect([answer.status, readCode(answer)]).to.deep.equal([400, 'malformed-request']);
      });
    });

    describe('campaigns', () => {
      const seenBy = async (email: string, tenancy?: object) => {
        const cookie = await signIn(core.url, email);
        if (tenancy) await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: tenancy });
        const { json } = await ask('GET', `${core.url}/console/campaigns`, { cookie });
        return JSON.parse(JSON.stringify(json['campaigns'])).map(({ name }: { name: string }) => name);
      };

      it("are listed within the viewer's scope", async () => {
        expect(await seenBy('ada@example.com')).to.deep.equal(['Appointment reminders']);
        expect(await seenBy('tia@example.com')).to.deep.equal(['Appointment reminders']);
        expect(await seenBy('pat@example.com')).to.deep.equal(['Appointment reminders', 'Recalls']);
        expect(await seenBy('stan@example.com')).to.deep.equal([]);
        expect(await seenBy('stan@example.com', { kind: 'account', id: tenants.otherAccount.id })).to.deep.equal(['Inspections']);
        expect(await seenBy('stan@example.com', { kind: 'partner', id: tenants.partner.id })).to.deep.equal([
          'Appointment reminders',
          'Recalls',
        ]);
      });
    });

    it('record an audit event for each change', async () => {
      const cookie = await signIn(core.url, 'stan@example.com');
      await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: { kind: 'account', id: tenants.account.id } });
      await ask('DELETE', `${core.url}/console/session`, { cookie });
      const events: { action: string; address: string; account_id: string | null }[] = await direct.storage.database
        .read('audit_events')
        .where({ actor_id: tenants.users.staff.id });
      for (const action of ['session.started', 'tenancy.selected', 'session.ended']) {
        expect(events.map((event) => event.action)).to.include(action);
      }
      expect(events.find(({ action }) => action === 'tenancy.selected')).to.include({
        address: '127.0.0.1',
        account_id: tenants.account.id,
      });
    });
  });
});

function setCookies(answer: Answer): string[] {
  return [answer.headers['set-cookie'] ?? []].flat();
}
