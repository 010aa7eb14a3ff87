import { once } from 'node:events';
import { connect } from 'node:net';
import { mock } from 'node:test';
import argon2 from 'argon2';
import { expect } from 'chai';
import { sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { changeUser, createUser } from '../../../core/domain/directory/users.ts';
import { version } from '../../../core/program.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, readCookies, readSetCookies } from '../../support/http.ts';
import { sessionSuite } from '../../support/session-suite.ts';
import { password, signIn } from '../../support/tenants.ts';

describe('sessions', () => {
  onEachDatabase((kind) => {
    const at = sessionSuite(kind);
    const { session, tryPassword } = at;

    describe('signing in', () => {
      it('returns 201 with the session and sets its cookie', async () => {
        const answer = await tryPassword('ada@example.com', password);
        expect(answer.status).to.equal(201);
        expect(sessionSchema.strict().parse(answer.json)).to.deep.equal({
          viewer: {
            id: at.tenants.users.account.id,
            email: 'ada@example.com',
            name: 'Ada Account',
            userType: 'account',
            account: { id: at.tenants.account.id, name: 'Blue Clinic' },
            partner: null,
          },
          tenancy: null,
          dialer: 'off',
          reference: true,
          secondFactor: false,
          version,
        });
        expect((await session(readCookies(answer))).text).to.equal(answer.text);
      });

      it('costs one check of a password, against an equally costly hash, whether or not the address is known', async () => {
        const verify = mock.method(argon2, 'verify');
        try {
          for (const email of ['ada@example.com', 'nobody@example.com']) expect((await tryPassword(email, 'wrong')).status).to.equal(401);
          const [known, ...others] = verify.mock.calls.map(({ arguments: [hash] }) => hash.replace(/\$[^$]*\$[^$]*$/, ''));
          expect(others).to.deep.equal([known]);
        } finally {
          verify.mock.restore();
        }
      });

      it('sets a signed, HttpOnly, SameSite=Strict cookie', async () => {
        const [cookie = '', signature = ''] = readSetCookies(await tryPassword('ada@example.com', password));
        for (const attribute of ['httponly', 'samesite=strict', 'path=/']) expect(`${cookie}; `.toLowerCase()).to.contain(`${attribute}; `);
        expect(cookie).to.match(/^callkey_session_\w{8}=[\w-]{43};/);
        expect(signature).to.match(/^callkey_session_\w{8}\.sig=/);
        expect(cookie.toLowerCase()).not.to.contain('secure');
      });

      it('sets a Secure cookie with the __Host- prefix over HTTPS', async () => {
        // The header's first value is the scheme of the client's connection.
        const answer = await tryPassword('ada@example.com', password, { 'X-Forwarded-Proto': 'HTTPS , http' });
        for (const cookie of readSetCookies(answer)) expect(cookie).to.match(/^__Host-callkey_.*; secure/i);
        const cookie = readCookies(answer);
        const seen = await ask('GET', `${at.core.url}/console/session`, { cookie, headers: { 'X-Forwarded-Proto': 'https' } });
        expect(seen.status).to.equal(200);
        expect((await session(cookie)).status).to.equal(401);
      });

      it('creates a new session ID each time, and ends the previous session', async () => {
        const first = await signIn(at.core.url, 'ada@example.com');
        const answer = await tryPassword('ada@example.com', password, {}, first);
        expect(readCookies(answer)).not.to.equal(first);
        expect((await session(first)).status).to.equal(401);
        expect((await session(readCookies(answer))).status).to.equal(200);
      });

      it("doesn't adopt a session ID chosen by someone else", async () => {
        const [ours = ''] = (await signIn(at.core.url, 'ada@example.com')).split('=');
        const mine = `${ours}=${'A'.repeat(43)}`;
        const answer = await tryPassword('ada@example.com', password, {}, mine);
        expect(readCookies(answer)).not.to.contain('AAAAAAAAAA');
      });

      it('stores only a digest of the session ID', async () => {
        const cookie = await signIn(at.core.url, 'ada@example.com');
        const id = /callkey_session_\w{8}=([\w-]+)/.exec(cookie)?.[1] ?? '';
        const rows = JSON.stringify(await at.direct.storage.database.read('sessions'));
        expect(id).to.have.length(43);
        expect(rows).not.to.contain(id);
      });

      it('accepts a one-time password in capitals and with spaces around it, but a chosen one only as it is', async () => {
        const { direct } = at;
        const input = { email: 'typed@example.com', name: 'Typed', userType: 'staff', accountId: null, partnerId: null } as const;
        const { password: once } = await createUser(direct.ports, operator, input, null);
        const typed = ` ${once?.toUpperCase()} \n`;
        expect((await tryPassword(input.email, typed)).status).to.equal(201);
        expect((await tryPassword(input.email, typed.replace('-', ''))).status).to.equal(401);
        // A user may choose a password of the same form.
        await direct.storage.database.write('users').where({ email: input.email }).update({ password_expires_at: null });
        expect((await tryPassword(input.email, typed)).status).to.equal(401);
        expect((await tryPassword(input.email, once ?? '')).status).to.equal(201);
      });
    });

    describe('are refused', () => {
      it('if they end while a body is being received, so that the request neither creates nor finds a key', async () => {
        const cookie = await signIn(at.core.url, 'ada@example.com');
        const body = { name: 'Too late', expiration: { kind: 'none' }, timeZone: 'UTC' };
        const answer = await slowly('/console/api-keys', cookie, body, () => ask('DELETE', `${at.core.url}/console/session`, { cookie }));
        expect(answer).to.match(/^HTTP\/1\.1 401 /);
        expect(await at.direct.storage.database.read('api_keys').where({ name: 'Too late' })).to.deep.equal([]);
        const reader = await signIn(at.core.url, 'ada@example.com');
        const end = () => ask('DELETE', `${at.core.url}/console/session`, { cookie: reader });
        expect(await slowly('/console/api-keys/identify', reader, { sha256: '0'.repeat(64) }, end)).to.match(/^HTTP\/1\.1 401 /);
      });

      it('immediately after signing out, which also removes the cookie', async () => {
        const cookie = await signIn(at.core.url, 'ada@example.com');
        const answer = await ask('DELETE', `${at.core.url}/console/session`, { cookie });
        expect([answer.status, answer.text]).to.deep.equal([204, '']);
        expect(readSetCookies(answer).join()).to.match(/callkey_session_\w{8}=; .*expires=Thu, 01 Jan 1970/i);
        expect((await session(cookie)).status).to.equal(401);
        const event = at.direct.storage.database.read('audit_events').where({ action: 'session.ended' });
        expect(await event.pluck('actor_id')).to.include(at.tenants.users.account.id);
      });

      it('if the cookie has an invalid signature', async () => {
        const cookie = await signIn(at.core.url, 'ada@example.com');
        expect((await session(cookie.replace(/sig=./, 'sig=!'))).status).to.equal(401);
      });

      it('after signing out, even if their other requests are still in progress', async () => {
        const cookie = await signIn(at.core.url, 'ada@example.com');
        await Promise.all([session(cookie), ask('DELETE', `${at.core.url}/console/session`, { cookie }), session(cookie), session(cookie)]);
        expect((await session(cookie)).status).to.equal(401);
      });
    });

    /** Sends a request whose body ends only after the given function has run. */
    async function slowly(path: string, as: string, body: object, meanwhile: () => Promise<unknown>, ...more: string[]): Promise<string> {
      const { hostname, port } = new URL(at.core.url);
      const text = JSON.stringify(body);
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      // On a busy machine, the core may check the session only after it has ended, and then doesn't wait for the body.
      socket.on('error', () => undefined);
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      socket.once('close', () => resolve());
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
      await ask('GET', `${at.core.url}/console/session`, { cookie: as });
      await meanwhile();
      socket.write(text.slice(5));
      await closed;
      return answer;
    }

    describe('of a user who is moved while a body is being received end, so that they', () => {
      const body = { name: 'On the way', expiration: { kind: 'none' }, timeZone: 'UTC' };
      const madeIn = async () =>
        (await at.direct.storage.database.read('api_keys').where({ name: 'On the way' })).map((key) => key.account_id);

      it("don't act in the user's new scope", async () => {
        const { account, siblingAccount } = at.tenants;
        const place = { userType: 'account', accountId: account.id, partnerId: null } as const;
        const { user } = await createUser(at.direct.ports, operator, { ...place, email: 'moved@example.com', name: 'Moved' }, password);
        const cookie = await signIn(at.core.url, 'moved@example.com');
        const move = () => changeUser(at.direct.ports, operator, user, { ...place, name: 'Moved', accountId: siblingAccount.id });
        expect(await slowly('/console/api-keys', cookie, body, move)).to.match(/^HTTP\/1\.1 401 /);
        expect(await madeIn()).to.deep.equal([]);
      });

      it('no longer act in a tenancy that only staff can select', async () => {
        const place = { userType: 'staff', accountId: null, partnerId: null } as const;
        const { user } = await createUser(at.direct.ports, operator, { ...place, email: 'demoted@example.com', name: 'Demoted' }, password);
        const cookie = await signIn(at.core.url, 'demoted@example.com');
        const demote = () =>
          changeUser(at.direct.ports, operator, user, { ...place, name: 'Demoted', userType: 'account', accountId: at.tenants.account.id });
        const header = `${tenancyHeader}: partner/${at.tenants.otherPartner.id}`;
        expect(await slowly('/console/api-keys', cookie, body, demote, header)).to.match(/^HTTP\/1\.1 401 /);
        expect(await madeIn()).to.deep.equal([]);
      });
    });
  });
});
