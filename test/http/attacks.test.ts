import { ServerResponse } from 'node:http';
import { expect } from 'chai';
import sqlite3 from 'sqlite3';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { type CoreHarness, openCore, type RunningCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, overSocket, readCode } from '../support/http.ts';
import { costlyPasswords } from '../support/ports.ts';
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
      await Promise.all(Array.from({ length: 8 }, (_, n) => tryPassword('changer@example.com', password, `192.0.2.${n}`)));
      expect((await change).status).to.equal(204);
      const sessions: unknown[] = await direct.storage.database
        .read('sessions')
        .join('users', 'users.id', 'user_id')
        .where({ email: 'changer@example.com' });
      expect(sessions).to.have.length(1);
    });

    // The other attacks don't reach the database.
    if (kind === 'postgres') return;

    it('large bodies are parsed one per turn of the event loop, so that small bodies can overtake them', async () => {
      const body = { contact: { phone: somePhone() }, variables: { large: 'x'.repeat(60_000) } };
      const place = () => placeCall(core.url, tenants.campaign.id, key, body);
      await Promise.all(Array.from({ length: 10 }, place));
      const { parse } = JSON;
      const parsedIn: number[] = [];
      JSON.parse = (text: string) => {
        if (text.length > 60_000) parsedIn.push(performance.nodeTiming.uvMetricsInfo.loopCount);
        return parse(text);
      };
      try {
        await Promise.all(Array.from({ length: 10 }, place));
      } finally {
        JSON.parse = parse;
      }
      expect(parsedIn).to.have.length(10);
      expect(new Set(parsedIn).size).to.equal(10);
    });

    it("large bodies of one key don't delay those of another key", async () => {
      const other = (await createKey(core.url, await signIn(core.url, 'sue@example.com'))).keyValue;
      const place = (by: string, name: string) =>
        placeCall(core.url, tenants.campaign.id, by, { contact: { phone: somePhone(), name }, variables: { large: 'x'.repeat(60_000) } });
      const { parse } = JSON;
      const parsed: string[] = [];
      JSON.parse = (text: string) => {
        const [sender] = /flood|other/.exec(text.length > 60_000 ? text : '') ?? [];
        if (sender === undefined) return parse(text);
        parsed.push(sender);
        // Makes parsing take so long that the other bodies arrive in the meantime.
        const end = performance.now() + 20;
        while (performance.now() < end) parse('0');
        return parse(text);
      };
      try {
        const flood = Array.from({ length: 20 }, () => place(key, 'flood'));
        await place(other, 'other');
        await Promise.all(flood);
      } finally {
        JSON.parse = parse;
      }
      expect(parsed.indexOf('other')).to.be.within(0, 10);
    });

    for (const [what, path, headers] of [
      ['with a forged cookie', '/console/api-keys', { Cookie: `callkey_session=${'a'.repeat(43)}; callkey_session.sig=${'b'.repeat(27)}` }],
      ['with a malformed key', '/api/v1/campaigns/x/contacts/on-demand', { 'X-API-Key': 'x' }],
    ] as const) {
      it(`only a few requests ${what} are refused per turn of the event loop, so that a flood doesn't delay statements`, async () => {
        const method = path.startsWith('/api') ? 'POST' : 'GET';
        const flood = () => Promise.all(Array.from({ length: 100 }, () => ask(method, core.url + path, { headers })));
        // The first flood only opens the connections.
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
  });
});
