import { ServerResponse } from 'node:http';
import { expect } from 'chai';
import sqlite3 from 'sqlite3';
import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, overSocket, readCode, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, placeCall, signIn, somePhone } from '../support/tenants.ts';

/** Each of these attacks once let an attacker in or brought the core down. */
describe('under attack', () => {
  onEachDatabase((kind) => {
    const its = openOnce(() => openCore({ kind, environment: { TRUSTED_PROXIES: '127.0.0.1' } }));
    let cookie: string;
    let key: string;

    before(async () => {
      cookie = await signIn(its.core.url, 'ada@example.com');
      key = (await createKey(its.core.url, cookie)).keyValue;
    });

    const tryPassword = (email: string, attempt: string, from: string) =>
      ask('POST', `${its.core.url}/console/session`, { body: { email, password: attempt }, headers: { 'X-Forwarded-For': from } });

    it("many concurrent sign-ins don't block writes", async () => {
      await Promise.all(Array.from({ length: 60 }, (_, n) => tryPassword(`x${n % 3}@example.com`, 'wrong', `198.51.100.${n}`)));
      expect((await placeCall(its.core.url, its.tenants.campaign.id, key)).status).to.equal(202);
    });

    describe('a property name that validation would overlook', () => {
      const phone = somePhone();
      it('is refused in a call and in the body of a session, also if it is escaped', async () => {
        const [calls, keys] = [onDemand(its.core.url, its.tenants.campaign.id), `${its.core.url}/console/api-keys`];
        for (const answer of [
          await ask('POST', calls, { key, raw: `{"contact":{"phone":"${phone}"},"variables":{"__proto__":"x"}}` }),
          await ask('POST', calls, { key, raw: `{"contact":{"phone":"${phone}"},"variables":{"a":"b","\\u005f_proto__":"x"}}` }),
          await ask('POST', calls, { key, raw: `{"contact":{"phone":"${phone}"},"\\u005f_proto__":{"variables":{"a":"b"}}}` }),
          await ask('POST', keys, { cookie, raw: `{"name":"x","timeZone":"UTC","expiration":{"kind":"none","\\u005f_proto__":{}}}` }),
        ])
          expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      });

      it('is the only kind that is refused: inherited names such as constructor are accepted', async () => {
        const variables = { constructor: 'a', prototype: 'b', toString: 'c', hasOwnProperty: 'd', proto: 'e' };
        const body = { contact: { phone }, variables };
        const placed = await placeCall(its.core.url, its.tenants.campaign.id, key, body);
        expect(placed.status, placed.text).to.equal(202);
        const [stored]: (string | null)[] = await its.direct.storage.database
          .read('calls')
          .where({ contact_id: textAt(placed, 'contactId') })
          .pluck('variables');
        expect(Object.fromEntries(JSON.parse(stored ?? ''))).to.deep.equal(variables);
      });
    });

    it('a name with invisible characters from an earlier version is still served, listed and revoked', async () => {
      const name = 'Old\u200b\u202e';
      const old = await createKey(its.core.url, cookie, 'Old');
      await its.direct.storage.database.write('api_keys').where({ id: old.id }).update({ name });
      const placed = await placeCall(its.core.url, its.tenants.campaign.id, old.keyValue);
      await its.direct.storage.database
        .write('calls')
        .where({ contact_id: textAt(placed, 'contactId') })
        .update({ name });
      const listed = apiKeysSchema.parse((await ask('GET', `${its.core.url}/console/api-keys`, { cookie })).json).apiKeys;
      expect(listed.find(({ id }) => id === old.id)?.name).to.equal(name);
      const { calls } = callsSchema.parse(
        (await ask('GET', `${its.core.url}/console/campaigns/${its.tenants.campaign.id}/calls`, { cookie })).json,
      );
      expect([placed.status, calls[0]?.contact.name, calls[0]?.apiKey?.name]).to.deep.equal([202, name, name]);
      expect((await ask('DELETE', `${its.core.url}/console/api-keys/${old.id}`, { cookie })).status).to.equal(204);
    });

    // The other attacks don't reach the database.
    if (kind === 'postgres') return;

    /** Sends large bodies with one key, and then one with another key. @returns whose bodies were parsed, in order, and in how many turns */
    async function floodWithBodies(): Promise<{ parsed: string[]; turns: number }> {
      const other = (await createKey(its.core.url, await signIn(its.core.url, 'sue@example.com'))).keyValue;
      const place = (by: string, name: string) =>
        placeCall(its.core.url, its.tenants.campaign.id, by, {
          contact: { phone: somePhone(), name },
          variables: { large: 'x'.repeat(60_000) },
        });
      // From now on the core remembers this key, and doesn't look it up while bodies of the flood are parsed.
      await place(other, 'remembered');
      const { parse } = JSON;
      const parsed: string[] = [];
      const turns = new Set<number>();
      JSON.parse = (text: string) => {
        const [sender] = /flood|other/.exec(text.length > 60_000 ? text : '') ?? [];
        if (sender === undefined) return parse(text);
        parsed.push(sender);
        turns.add(performance.nodeTiming.uvMetricsInfo.loopCount);
        // Makes parsing take so long that the other bodies arrive in the meantime.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
        return parse(text);
      };
      try {
        const flood = Array.from({ length: 20 }, () => place(key, 'flood'));
        await place(other, 'other');
        await Promise.all(flood);
      } finally {
        JSON.parse = parse;
      }
      return { parsed, turns: turns.size };
    }

    it('large bodies are parsed one per turn of the event loop', async () => {
      const { parsed, turns } = await floodWithBodies();
      expect([parsed.length, turns]).to.deep.equal([21, 21]);
    });

    it("large bodies of one key don't delay those of another key", async () => {
      const { parsed } = await floodWithBodies();
      expect(parsed.indexOf('other')).to.be.within(0, 10);
    });

    for (const [what, path, headers] of [
      ['with a forged cookie', '/console/api-keys', { Cookie: `callkey_session=${'a'.repeat(43)}; callkey_session.sig=${'b'.repeat(27)}` }],
      ['with a malformed key', '/api/v1/campaigns/x/contacts/on-demand', { 'X-API-Key': 'x' }],
    ] as const) {
      it(`only a few requests ${what} are refused per turn of the event loop, so that a flood doesn't delay statements`, async () => {
        const method = path.startsWith('/api') ? 'POST' : 'GET';
        const flood = () => Promise.all(Array.from({ length: 40 }, () => ask(method, its.core.url + path, { headers })));
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
      const head = `POST ${new URL(onDemand(its.core.url, its.tenants.campaign.id)).pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const next = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const answers = await overSocket(its.core.url, `${head}${chunk}${chunk}0\r\n\r\n${next}`);
      expect(answers.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 413', 'HTTP/1.1 401']);
    });

    it("an unknown Expect header isn't reported before authentication", async () => {
      const request = (more: string) => overSocket(its.core.url, `POST /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
      expect(await request('Expect: foo\r\n')).to.equal(await request(''));
    });

    it("sign-ins don't leave locks behind while another process locks the file", async () => {
      const holder = new sqlite3.Database(its.database.slice('sqlite:'.length));
      const execute = (sql: string) =>
        new Promise<void>((resolve, reject) => holder.exec(sql, (error) => (error ? reject(error) : resolve())));
      await execute('BEGIN EXCLUSIVE');
      const during = await Promise.all(Array.from({ length: 3 }, (_, n) => tryPassword(`y${n}@example.com`, 'wrong', '198.51.100.251')));
      await execute('ROLLBACK');
      await new Promise((resolve) => holder.close(resolve));
      expect(new Set(during.map(({ status }) => status))).to.deep.equal(new Set([503]));
      expect((await placeCall(its.core.url, its.tenants.campaign.id, key)).status).to.equal(202);
    });
  });
});
