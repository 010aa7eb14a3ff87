import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import Koa from 'koa';
import { request } from 'undici';
import { limits } from '#contract/limits.ts';
import type { State } from '../../core/http/middleware/context.ts';
import { toEncodedStream } from '../../core/http/middleware/encoding.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { ask } from '../support/http.ts';
import { listenHere } from '../support/listen.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('a response to the console', () => {
  const clock = fakeClock();
  const harness = openOnce(() => openCore({ clock }));
  let cookie: string;
  let list: string;
  before(async () => {
    list = `${harness.core.url}/console/api-keys`;
    cookie = await signIn(harness.core.url, 'ada@example.com');
    for (let n = 0; n < 10; n++) await createKey(harness.core.url, cookie, `Key ${n}`);
  });

  const send = async (encodings: string, path: string, change?: object) => {
    const headers = { Cookie: cookie, 'Accept-Encoding': encodings, ...(change && { 'Content-Type': 'application/json' }) };
    const body = change ? JSON.stringify(change) : null;
    const answer = await request(harness.core.url + path, { method: change ? 'PATCH' : 'GET', headers, body });
    const { 'content-encoding': encoding, vary, etag } = answer.headers;
    return { encoding, vary, hasTag: etag !== undefined, bytes: Buffer.from(await answer.body.arrayBuffer()) };
  };

  it('is compressed with an encoding that the client accepts, decompresses to the same content, and has an ETag if it is a list', async () => {
    const { id } = await createKey(harness.core.url, cookie, 'Limited');
    const addresses = Array.from({ length: 50 }, (_, n) => `2001:db8:0:${n + 1}::/64`);
    for (const [path, hasTag, change] of [
      ['/console/api-keys', true],
      [`/console/api-keys/${id}`, false, { addresses, callsPerDay: null }],
      ['/console/activity.csv?action=api-key.created', false],
    ] as const) {
      const plain = await send('identity', path, change);
      const [gzip, brotli] = [await send('gzip', path, change), await send('gzip, deflate, br', path, change)];
      expect([plain, gzip, brotli].map(({ bytes: _, ...rest }) => rest)).to.deep.equal(
        [undefined, 'gzip', 'br'].map((encoding) => ({ encoding, vary: 'Accept-Encoding', hasTag })),
      );
      expect(gunzipSync(gzip.bytes).equals(plain.bytes), 'gzip').to.equal(true);
      expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes), 'br').to.equal(true);
      expect(brotli.bytes.length).to.be.below(plain.bytes.length / 2);
    }
  });

  it('is never compressed if it contains a key value', async () => {
    const body = { name: '📞'.repeat(200), expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' };
    const created = await ask('POST', list, { cookie, body, headers: { 'Accept-Encoding': 'br, gzip' } });
    expect(created.json).to.have.property('keyValue');
    expect(Buffer.byteLength(created.text)).to.be.greaterThan(1_024);
    expect(created.headers).to.not.have.any.keys('content-encoding', 'etag');
  });

  it('is a 304 without a body if the list is unchanged, but only in the same session', async () => {
    const { etag } = (await ask('GET', list, { cookie })).headers;
    // Browsers add no-cache to a request with If-None-Match.
    const again = (given = cookie, tags = `"x", ${etag}`) =>
      ask('GET', list, { cookie: given, headers: { 'If-None-Match': tags, 'Cache-Control': 'no-cache' } });
    const unchanged = await again();
    expect({ status: unchanged.status, text: unchanged.text, etag: unchanged.headers['etag'] }).to.deep.equal({
      status: 304,
      text: '',
      etag,
    });
    for (const tags of ['*', String(etag).replace('W/', ''), `"x",${etag}, "y"`]) expect((await again(cookie, tags)).status).to.equal(304);
    expect((await again(cookie, 'W/"x"')).status).to.equal(200);
    expect((await again(await signIn(harness.core.url, 'tom@example.com'))).status).to.equal(200);
    await createKey(harness.core.url, cookie, 'One more');
    expect((await again()).status).to.equal(200);
  });

  it('is also a 304 if it is an unchanged list of calls with a next page, a minute later', async () => {
    const { core, tenants } = harness;
    const { keyValue } = await createKey(core.url, cookie, 'Many calls');
    for (let n = 0; n <= limits.page; n++) await placeCall(core.url, tenants.campaign.id, keyValue);
    for (const path of ['/console/calls', `/console/campaigns/${tenants.campaign.id}/calls`]) {
      const { headers, json } = await ask('GET', core.url + path, { cookie });
      expect(json['nextCursor'], path).to.be.a('string');
      clock.advance({ minutes: 1 });
      const again = await ask('GET', core.url + path, { cookie, headers: { 'If-None-Match': String(headers['etag']) } });
      expect(again.status, path).to.equal(304);
    }
  });

  it("has the same status and headers for HEAD as for GET, no body, and isn't recorded as an export", async () => {
    const { core, tenants } = harness;
    const pat = await signIn(core.url, 'pat@example.com');
    const send = async (method: 'GET' | 'HEAD', path: string, more: Record<string, string>) => {
      const answer = await request(core.url + path, { method, headers: { Cookie: pat, 'Accept-Encoding': 'br, gzip', ...more } });
      const ofMessage = ['date', 'connection', 'keep-alive', 'transfer-encoding', 'x-request-id'];
      const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !ofMessage.includes(name)));
      return { status: answer.statusCode, headers, isEmpty: (await answer.body.arrayBuffer()).byteLength === 0 };
    };
    const campaign = `/console/campaigns/${tenants.campaign.id}`;
    const views = ['api-keys', 'users', 'activity', 'calls', 'session', 'campaigns'].map((name) => `/console/${name}`);
    const files = ['/console/calls.csv', '/console/activity.csv', '/console/do-not-call.csv', `${campaign}/calls.csv`];
    const missing = '/console/campaigns/missing/calls';
    for (const path of [...views, ...files, missing, `${missing}.csv`]) {
      const get = await send('GET', path, {});
      expect(await send('HEAD', path, {}), path).to.deep.equal({ ...get, isEmpty: true });
      const { etag } = get.headers;
      if (views.includes(path)) expect(etag, path).to.be.a('string');
      if (etag === undefined) continue;
      const headers = { 'If-None-Match': String(etag) };
      const [unchanged, head] = [await send('GET', path, headers), await send('HEAD', path, headers)];
      expect(unchanged.status, path).to.equal(304);
      expect(head, path).to.deep.equal(unchanged);
    }
    const exported = harness.direct.storage.database.read('audit_events').where({ action: 'list.exported' });
    expect(await exported.where({ actor_id: tenants.users.partner.id })).to.have.length(files.length);
  });
});

describe('a compressed stream', () => {
  for (const encoding of ['br', 'gzip'])
    it(`sends each part in ${encoding} as soon as it is read, and ends when its client hangs up`, async () => {
      const { promise: hasEnded, resolve: end } = Promise.withResolvers<void>();
      const { promise: next, resolve: askForNext } = Promise.withResolvers<void>();
      async function* parts(): AsyncGenerator<string> {
        try {
          yield 'first';
          await next;
          for (;;) yield randomBytes(10_000).toString('base64');
        } finally {
          end();
        }
      }
      const app = new Koa<State>().use((ctx) => {
        ctx.body = toEncodedStream(ctx, Readable.from(parts(), { objectMode: false }));
      });
      app.silent = true;
      const { url, close } = await listenHere(createServer(app.callback()));
      try {
        const client = new AbortController();
        const { headers, body } = await fetch(url, {
          headers: { 'Accept-Encoding': encoding },
          signal: client.signal,
        });
        expect(headers.get('content-encoding')).to.equal(encoding);
        const { value } = (await body?.getReader().read()) ?? {};
        expect(Buffer.from(value ?? []).toString()).to.equal('first');
        askForNext();
        client.abort();
        await hasEnded;
      } finally {
        await close();
      }
    });
});
