import { ServerResponse } from 'node:http';
import { expect } from 'chai';
import sqlite3 from 'sqlite3';
import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { problemSchema } from '#contract/problems.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { RunningCore } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, overSocket, readCode, textAt } from '../support/http.ts';
import { costlyPasswords } from '../support/passwords.ts';
import { createKey, type DirectAccess, onDemand, password, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';

/** Each of these attacks once let an attacker in or brought the core down. */
describe('under attack', () => {
  onEachDatabase((kind) => {
    let database: string;
    let core: RunningCore;
    let close: CoreHarness['close'];
    let direct: DirectAccess;
    let tenants: Tenants;
    let cookie: string;
    let key: string;

    before(async () => {
      ({ database, core, direct, tenants, close } = await openCore({
        kind,
        environment: { TRUSTED_PROXIES: '127.0.0.1' },
        passwords: costlyPasswords(),
      }));
      cookie = await signIn(core.url, 'ada@example.com');
      key = (await createKey(core.url, cookie)).keyValue;
    });
    after(() => close());

    const tryPassword = (email: string, attempt: string, from: string) =>
      ask('POST', `${core.url}/console/session`, { body: { email, password: attempt }, headers: { 'X-Forwarded-For': from } });

    it("many concurrent sign-ins don't block writes", async () => {
      await Promise.all(Array.from({ length: 60 }, (_, n) => tryPassword(`x${n % 3}@example.com`, 'wrong', `198.51.100.${n}`)));
      expect((await placeCall(core.url, tenants.campaign.id, key)).status).to.equal(202);
    });

    it("sign-ins rejected because too many are waiting don't count as wrong passwords", async () => {
      const from = '203.0.113.7';
      await Promise.all(Array.from({ length: 80 }, () => tryPassword('sue@example.com', password, from)));
      expect((await tryPassword('sue@example.com', password, from)).status).to.equal(201);
    });

    it('addresses in the same IPv6 network are throttled together', async () => {
      const statuses = new Set<number>();
      for (let n = 0; n < 11; n++) statuses.add((await tryPassword('tom@example.com', 'wrong', `2001:db8:1:2::${n + 1}`)).status);
      expect([...statuses]).to.deep.equal([401, 429]);
      expect((await tryPassword('tom@example.com', 'wrong', '2001:db8:1:3::1')).status).to.equal(401);
    });

    it("an email address that a database can't store gets the same response as an unknown address", async () => {
      expect((await tryPassword('a\u0000b@example.com', 'wrong', '198.51.100.250')).status).to.equal(401);
    });

    it("a search for text that a database can't store is refused", async () => {
      const answer = await ask('GET', `${core.url}/console/campaigns/${tenants.campaign.id}/calls?search=%00`, { cookie });
      expect([answer.status, readCode(answer)]).to.deep.equal([400, 'malformed-request']);
    });

    it("sign-ins with the old password that are still in progress don't survive a password change", async () => {
      const input = { email: 'changer@example.com', name: 'C', userType: 'staff', accountId: null, partnerId: null } as const;
      await createUser(direct.ports, operator, input, password);
      const session = await signIn(core.url, 'changer@example.com');
      const change = ask('POST', `${core.url}/console/password`, {
        cookie: session,
        body: { currentPassword: password, newPassword: 'quite another one' },
      });
      const meanwhile = await Promise.all(
        Array.from({ length: 8 }, (_, n) => tryPassword('changer@example.com', password, `192.0.2.${n}`)),
      );
      expect((await change).status).to.equal(204);
      const sessions: unknown[] = await direct.storage.database
        .read('sessions')
        .join('users', 'users.id', 'user_id')
        .where({ email: 'changer@example.com' });
      expect(sessions).to.have.length(1);
      expect(meanwhile.map(({ status }) => status)).to.satisfy((statuses: number[]) =>
        statuses.every((status) => status === 201 || status === 401),
      );
    });

    describe('a property name that validation would overlook', () => {
      const phone = somePhone();
      for (const [where, raw] of [
        ['in the variables', `{"contact":{"phone":"${phone}"},"variables":{"__proto__":"x"}}`],
        ['in the variables, escaped', `{"contact":{"phone":"${phone}"},"variables":{"a":"b","\\u005f_proto__":"x"}}`],
        ['in the variables, with an object', `{"contact":{"phone":"${phone}"},"variables":{"_\\u005Fproto__":{"a":"x"}}}`],
        ['in the contact, escaped', `{"contact":{"phone":"${phone}","__\\u0070roto__":{"name":"x"}}}`],
        ['in the call, escaped', `{"contact":{"phone":"${phone}"},"\\u005f_proto__":{"variables":{"a":"b"}}}`],
      ] as const) {
        it(`is refused ${where}`, async () => {
          const answer = await ask('POST', onDemand(core.url, tenants.campaign.id), { key, raw });
          expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
        });
      }

      it("is refused in a session's request body", async () => {
        const raw = `{"name":"x","timeZone":"UTC","expiration":{"kind":"none","\\u005f_proto__":{}}}`;
        const answer = await ask('POST', `${core.url}/console/api-keys`, { cookie, raw });
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      });

      it("doesn't include other names that every object has, such as constructor", async () => {
        const variables = { constructor: 'a', prototype: 'b', toString: 'c', hasOwnProperty: 'd', proto: 'e' };
        const body = { contact: { phone }, variables };
        const placed = await placeCall(core.url, tenants.campaign.id, key, body);
        expect(placed.status, placed.text).to.equal(202);
        const [stored]: (string | null)[] = await direct.storage.database
          .read('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .pluck('variables');
        expect(Object.fromEntries(JSON.parse(stored ?? ''))).to.deep.equal(variables);
      });
    });

    it('large bodies are parsed one per turn of the event loop, so that small bodies can overtake them', async () => {
      const body = { contact: { phone: somePhone() }, variables: { large: 'x'.repeat(60_000) } };
      const place = () => placeCall(core.url, tenants.campaign.id, key, body);
      await Promise.all(Array.from({ length: 10 }, place));
      const { parse } = JSON;
      const parsedIn: number[] = [];
      let turn = 0;
      let isOver = false;
      const count = () => {
        turn++;
        if (!isOver) setImmediate(count);
      };
      count();
      JSON.parse = (text: string) => {
        if (text.length > 60_000) parsedIn.push(turn);
        return parse(text);
      };
      try {
        await Promise.all(Array.from({ length: 10 }, place));
      } finally {
        JSON.parse = parse;
        isOver = true;
      }
      expect(parsedIn).to.have.length(10);
      expect(new Set(parsedIn).size).to.equal(10);
    });

    for (const [what, path, headers] of [
      ['with a forged cookie', '/console/api-keys', { Cookie: `callkey_session=${'a'.repeat(43)}; callkey_session.sig=${'b'.repeat(27)}` }],
      ['with a malformed key', '/api/v1/campaigns/x/contacts/on-demand', { 'X-API-Key': 'x' }],
    ] as const) {
      it(`requests ${what} are refused a few per turn of the event loop, so that a flood doesn't delay statements`, async () => {
        const method = path.startsWith('/api') ? 'POST' : 'GET';
        const flood = () => Promise.all(Array.from({ length: 100 }, () => ask(method, core.url + path, { headers })));
        // Opens the connections.
        await flood();
        const refusedIn = new Map<number, number>();
        const { end } = ServerResponse.prototype;
        ServerResponse.prototype.end = function (this: ServerResponse, ...args: unknown[]) {
          const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
          refusedIn.set(turn, (refusedIn.get(turn) ?? 0) + 1);
          return Reflect.apply(end, this, args);
        };
        try {
          const answers = await flood();
          expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([401]));
        } finally {
          ServerResponse.prototype.end = end;
        }
        expect(Math.max(...refusedIn.values())).to.be.at.most(4);
      });
    }

    it('text that is too long is refused before normalization, because that takes quadratic time', async () => {
      const marks = '\u0316\u0315'.repeat(1_900);
      const expiration = { kind: 'none' };
      const lengths: number[] = [];
      const { normalize } = String.prototype;
      String.prototype.normalize = function (this: string, form?: string) {
        lengths.push(this.length);
        return normalize.call(this, form);
      };
      const bodies: [string, object][] = [
        ['/console/api-keys', { name: marks, expiration, timeZone: 'UTC' }],
        ['/console/api-keys', { name: 'x', expiration, timeZone: marks }],
        ['/console/users', { name: marks, email: 'x@example.com', userType: 'account' }],
        ['/console/users', { name: 'x', email: `x@${marks}`, userType: 'account' }],
        ['/console/password', { currentPassword: password, newPassword: marks }],
        ['/console/password', { currentPassword: marks, newPassword: password }],
        ['/console/session', { email: marks, password }],
        ['/console/session', { email: 'x@example.com', password: marks }],
      ];
      const statuses: number[] = [];
      try {
        for (const contact of [{ name: marks }, { timeZone: marks }, { phone: marks }]) {
          statuses.push((await placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone(), ...contact } })).status);
        }
        for (const [path, body] of bodies) statuses.push((await ask('POST', core.url + path, { cookie, body })).status);
      } finally {
        String.prototype.normalize = normalize;
      }
      expect(new Set(statuses)).to.deep.equal(new Set([422]));
      expect(lengths.filter((length) => length > 2_000)).to.deep.equal([]);
    });

    it('a name in decomposed form may be as long as in composed form', async () => {
      const name = '\u1f82'.repeat(200);
      const placed = await placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone(), name: name.normalize('NFD') } });
      expect(placed.status, placed.text).to.equal(202);
      const stored: (string | null)[] = await direct.storage.database
        .read('calls')
        .where({ contact_id: textAt(placed, 'contactId') })
        .pluck('name');
      expect(stored).to.deep.equal([name]);
    });

    it('validating a body with thousands of errors stops early', async () => {
      const variables = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`v${n}`, 1]));
      const answer = await placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone() }, variables });
      expect([answer.status, answer.json['errors']]).to.deep.equal([
        422,
        [{ path: 'variables', message: 'Must have at most 50 variables.' }],
      ]);
    });

    describe('a name with invisible characters', () => {
      const refusal = async (path: string, body: object, as: object) => {
        const answer = await ask('POST', path, { ...as, body });
        expect(answer.status, answer.text).to.equal(422);
        return problemSchema.parse(answer.json).errors;
      };

      it('is refused for a key, a user and a contact, with a message that says what to do', async () => {
        const tied = { cookie: await signIn(core.url, 'tia@example.com') };
        const name = 'Northwind \u202eVoice';
        const errorLists = [
          await refusal(`${core.url}/console/api-keys`, { name, expiration: { kind: 'none' }, timeZone: 'UTC' }, tied),
          await refusal(`${core.url}/console/users`, { name, email: 'x@example.com', userType: 'account' }, tied),
          await refusal(onDemand(core.url, tenants.campaign.id), { contact: { phone: somePhone(), name } }, { key }),
        ];
        expect(errorLists.map((errors) => errors?.map(({ path }) => path))).to.deep.equal([['name'], ['name'], ['contact.name']]);
        for (const errors of errorLists) expect(errors?.[0]?.message).to.match(/^Remove the invisible character U\+202E/);
      });

      it('from an earlier version is still served, listed and revoked', async () => {
        const name = 'Old\u200b\u202e';
        const old = await createKey(core.url, cookie, 'Old');
        await direct.storage.database.write('api_keys').where({ id: old.id }).update({ name });
        const placed = await placeCall(core.url, tenants.campaign.id, old.keyValue);
        await direct.storage.database
          .write('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .update({ name });
        const listed = apiKeysSchema.parse((await ask('GET', `${core.url}/console/api-keys`, { cookie })).json).apiKeys;
        expect(listed.find(({ id }) => id === old.id)?.name).to.equal(name);
        const { calls } = callsSchema.parse(
          (await ask('GET', `${core.url}/console/campaigns/${tenants.campaign.id}/calls`, { cookie })).json,
        );
        expect([placed.status, calls[0]?.contact.name, calls[0]?.apiKey?.name]).to.deep.equal([202, name, name]);
        expect((await ask('DELETE', `${core.url}/console/api-keys/${old.id}`, { cookie })).status).to.equal(204);
      });
    });

    it("a timestamp that can't be stored exactly is refused", async () => {
      const notBefore = `2099-01-01T00:00:00.${'0'.repeat(31)}Z`;
      expect((await placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone() }, notBefore })).status).to.equal(422);
    });

    it('bad percent-encoding in a query is reported to a signed-in user', async () => {
      const listed = await ask('GET', `${core.url}/console/campaigns?x=%zz`, { cookie });
      expect([listed.status, readCode(listed)]).to.deep.equal([400, 'malformed-request']);
    });

    it('a chunked body that is too large leaves the connection usable', async () => {
      const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
      const head = `POST ${new URL(onDemand(core.url, tenants.campaign.id)).pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const next = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const answers = await overSocket(core.url, `${head}${chunk}${chunk}0\r\n\r\n${next}`);
      expect(answers.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 413', 'HTTP/1.1 401']);
    });

    it("an unknown Expect header isn't reported before authentication", async () => {
      const request = (more: string) => overSocket(core.url, `POST /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
      expect(await request('Expect: foo\r\n')).to.equal(await request(''));
    });

    if (kind === 'sqlite') {
      it("sign-ins don't leave locks behind while another process locks the file", async () => {
        const holder = new sqlite3.Database(database.slice('sqlite:'.length));
        const execute = (sql: string) =>
          new Promise<void>((resolve, reject) => holder.exec(sql, (error) => (error ? reject(error) : resolve())));
        await execute('BEGIN EXCLUSIVE');
        const during = await Promise.all(Array.from({ length: 3 }, (_, n) => tryPassword(`y${n}@example.com`, 'wrong', '198.51.100.251')));
        await execute('ROLLBACK');
        await new Promise((resolve) => holder.close(resolve));
        expect(new Set(during.map(({ status }) => status))).to.deep.equal(new Set([503]));
        expect((await placeCall(core.url, tenants.campaign.id, key)).status).to.equal(202);
      });
    }
  });
});
