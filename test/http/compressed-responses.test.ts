import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
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

  const listIn = async (encodings: string) => {
    const { headers, body } = await request(list, { headers: { Cookie: cookie, 'Accept-Encoding': encodings } });
    return { encoding: headers['content-encoding'], vary: headers['vary'], bytes: Buffer.from(await body.arrayBuffer()) };
  };

  it('is compressed with an encoding that the client accepts, and decompresses to the same content', async () => {
    const [plain, gzip, brotli] = [await listIn('identity'), await listIn('gzip'), await listIn('gzip, deflate, br')];
    expect([plain, gzip, brotli].map(({ encoding, vary }) => ({ encoding, vary }))).to.deep.equal([
      { encoding: undefined, vary: 'Accept-Encoding' },
      { encoding: 'gzip', vary: 'Accept-Encoding' },
      { encoding: 'br', vary: 'Accept-Encoding' },
    ]);
    expect(gunzipSync(gzip.bytes).equals(plain.bytes), 'gzip').to.equal(true);
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes), 'br').to.equal(true);
    expect(brotli.bytes.length).to.be.below(plain.bytes.length / 3);
  });

  it('is also compressed if the request changed something, but then has no ETag', async () => {
    const { id } = await createKey(harness.core.url, cookie, 'Limited');
    const change = async (encodings: string) => {
      const headers = { Cookie: cookie, 'Content-Type': 'application/json', 'Accept-Encoding': encodings };
      const addresses = Array.from({ length: 50 }, (_, n) => `2001:db8:0:${n + 1}::/64`);
      const answer = await request(`${list}/${id}`, { method: 'PATCH', headers, body: JSON.stringify({ addresses, callsPerDay: null }) });
      const { 'content-encoding': encoding, etag } = answer.headers;
      return { encoding, etag, bytes: Buffer.from(await answer.body.arrayBuffer()) };
    };
    const [plain, brotli] = [await change('identity'), await change('br')];
    expect([plain, brotli].map(({ encoding, etag }) => ({ encoding, etag }))).to.deep.equal([
      { encoding: undefined, etag: undefined },
      { encoding: 'br', etag: undefined },
    ]);
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).to.equal(true);
  });

  it('is compressed part by part if it is an export', async () => {
    const exportIn = async (encoding: string) => {
      const headers = { Cookie: cookie, 'Accept-Encoding': encoding };
      const answer = await request(`${harness.core.url}/console/activity.csv?action=api-key.created`, { headers });
      return { encoding: answer.headers['content-encoding'], bytes: Buffer.from(await answer.body.arrayBuffer()) };
    };
    const [plain, gzip, brotli] = [await exportIn('identity'), await exportIn('gzip'), await exportIn('gzip, br')];
    expect([plain, gzip, brotli].map(({ encoding }) => encoding)).to.deep.equal([undefined, 'gzip', 'br']);
    expect(plain.bytes.toString()).to.match(/\r\n# complete, \d+ rows\r\n$/);
    expect(gunzipSync(gzip.bytes).equals(plain.bytes), 'gzip').to.equal(true);
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes), 'br').to.equal(true);
  });

  it('is never compressed if it contains a key value', async () => {
    const body = { name: '📞'.repeat(200), expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' };
    const created = await ask('POST', list, { cookie, body, headers: { 'Accept-Encoding': 'br, gzip' } });
    expect(created.json).to.have.property('keyValue');
    expect({
      isLong: Buffer.byteLength(created.text) > 1_024,
      encoding: created.headers['content-encoding'],
      etag: created.headers['etag'],
    }).to.deep.equal({
      isLong: true,
      encoding: undefined,
      etag: undefined,
    });
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

  it('has the same status and headers for HEAD as for GET, and no body', async () => {
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
  });

  it("isn't recorded as an export for HEAD", async () => {
    const count = async () =>
      String((await ask('GET', `${harness.core.url}/console/activity?action=list.exported`, { cookie })).json['total']);
    const before = await count();
    expect((await ask('HEAD', `${harness.core.url}/console/calls.csv`, { cookie })).status).to.equal(200);
    expect(await count()).to.equal(before);
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
      const server = app.listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        const client = new AbortController();
        const { port } = server.address() as AddressInfo;
        const { headers, body } = await fetch(`http://127.0.0.1:${port}/`, {
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
        server.close();
        server.closeAllConnections();
      }
    });
});
