import { mkdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import Koa from 'koa';
import { request } from 'undici';
import { readWebConsole, webConsole } from '../../core/http/web-console.ts';
import { type Listener, listen } from '../../core/server/connections/listener.ts';
import { hasOpenssl } from '../support/certificate.ts';
import { buildWebConsole } from '../support/commands.ts';
import { abortListeners, client, get, open, type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { ask, overSocket } from '../support/http.ts';
import { skip } from '../support/suites.ts';
import { databaseWithTenants, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the console’s page', () => {
  let core: RunningCore;
  let cookie: string;
  let script: string;

  before(async () => {
    await buildWebConsole();
    const { database } = await databaseWithTenants('sqlite');
    core = await startCoreHere(database);
    cookie = await signIn(core.url, 'ada@example.com');
    script = /src="\.(\/assets\/[^"]+\.js)"/.exec((await ask('GET', `${core.url}/`)).text)?.[1] ?? '';
  });
  after(() => core.close());

  const send = (method: string, path: string, headers: readonly string[] = []) =>
    overSocket(core.url, [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n'));
  const refusal = () => send('GET', '/console/session');

  it('is served to anyone, with exactly the expected security headers', async () => {
    const { status, headers } = await ask('GET', `${core.url}/`, { headers: { 'X-Request-Id': 'mine' } });
    const { date: _, etag, connection: __, 'keep-alive': ___, 'content-length': ____, ...rest } = headers;
    expect(status).to.equal(200);
    expect(etag).to.match(/^W\/"[\w-]{22}"$/);
    expect(rest).to.deep.equal({
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      'content-type': 'text/html; charset=utf-8',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy':
        'camera=(), clipboard-read=(), display-capture=(), geolocation=(), hid=(), microphone=(), midi=(), payment=(), serial=(), usb=()',
      'referrer-policy': 'no-referrer',
      vary: 'Accept-Encoding',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'mine',
    });
  });

  it('has assets that browsers may cache forever, since their names contain a hash of their content', async () => {
    const { status, headers } = await ask('GET', `${core.url}${script}`);
    expect([status, headers['cache-control'], headers['content-type']]).to.deep.equal([
      200,
      'public, max-age=31536000, immutable',
      'text/javascript; charset=utf-8',
    ]);
  });

  it("isn't sent again to a browser that has it", async () => {
    const { headers } = await ask('GET', `${core.url}/`);
    const answer = await ask('GET', `${core.url}/`, { headers: { 'If-None-Match': String(headers['etag']) } });
    expect([answer.status, answer.text, answer.headers['cache-control']]).to.deep.equal([304, '', 'no-cache']);
  });

  it('is compressed if the browser accepts gzip, and with the best compression if it accepts Brotli', async () => {
    const get = async (accepted: string) => {
      const { headers, body } = await request(`${core.url}${script}`, { headers: { 'Accept-Encoding': accepted } });
      return { encoding: headers['content-encoding'], bytes: Buffer.from(await body.arrayBuffer()) };
    };
    const [plain, gzip, brotli] = [await get('identity'), await get('gzip'), await get('br, gzip')];
    expect([plain.encoding, gzip.encoding, brotli.encoding]).to.deep.equal([undefined, 'gzip', 'br']);
    expect(gunzipSync(gzip.bytes).equals(plain.bytes), 'gzip').to.equal(true);
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes), 'br').to.equal(true);
    expect(brotli.bytes.length).to.be.below(gzip.bytes.length * 0.9);
  });

  it("doesn't serve its compressed files at separate paths", async () => {
    expect(await send('GET', `${script}.br`)).to.equal(await refusal());
  });

  it('responds to HEAD with the headers of GET and no body', async () => {
    const [get, head] = [await ask('GET', `${core.url}/`), await ask('HEAD', `${core.url}/`)];
    const perConnection = ['date', 'x-request-id', 'connection', 'keep-alive'];
    const lasting = (headers: object) => Object.entries(headers).filter(([name]) => !perConnection.includes(name));
    expect([head.status, lasting(head.headers), head.text]).to.deep.equal([200, lasting(get.headers), '']);
  });

  it('loads even with an invalid session cookie', async () => {
    expect((await ask('GET', `${core.url}/`, { cookie: 'callkey_session=nonsense' })).status).to.equal(200);
  });

  for (const [what, value] of [
    ['a key', 'svc_sk_live_whatever'],
    ['an empty key', ''],
  ] as const) {
    it(`returns the common 401 to a request with ${what}, signed in or not`, async () => {
      const header = `X-API-Key: ${value}`;
      for (const path of ['/', script]) {
        expect(await send('GET', path, [header]), path).to.equal(await refusal());
        expect(await send('GET', path, [header, `Cookie: ${cookie}`]), path).to.equal(await refusal());
      }
    });
  }

  it('supports only GET and HEAD', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) expect(await send(method, '/'), method).to.equal(await refusal());
    const signedIn = await ask('POST', `${core.url}/`, { cookie });
    expect([signedIn.status, signedIn.headers['allow']]).to.deep.equal([405, 'GET, HEAD']);
  });

  for (const path of [
    '/index.html',
    '/assets',
    '/assets/',
    '/assets/../index.html',
    '/assets/..%2findex.html',
    '/assets/%2e%2e/%2e%2e/%2e%2e/package.json',
    '/assets/..%5c..%5cpackage.json',
    '/../package.json',
    '/assets//etc/passwd',
    '/assets/constructor',
    '/ASSETS/',
    '//',
  ]) {
    it(`doesn't give access to ${path}`, async () => {
      expect(await send('GET', path)).to.equal(await refusal());
    });
  }

  it('appears in metrics by its route, never by the path', async () => {
    await ask('GET', `${core.url}${script}?q=canary`);
    const { text } = await ask('GET', `${core.managementUrl}/metrics`);
    expect(text).to.include('route="/assets/:name"').and.not.include('canary');
  });
});

describe("a file sent over TLS to a client that doesn't read it", () => {
  it('is read into memory only in small parts', async function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const folder = freshDirectory();
    const commandLine = join(folder, 'callkey-cli-1.2.3.tgz');
    // Longer than the system's buffers.
    writeFileSync(commandLine, Buffer.alloc(30_000_000));
    let connection: Socket | undefined;
    const app = new Koa().use((ctx, next) => {
      connection = ctx.socket;
      return next();
    });
    app.silent = true;
    const { listener } = await open({ isSecure: true }, app.use(webConsole(readWebConsole(folder, commandLine))).callback());
    const { socket } = await client(listener);
    try {
      socket.pause();
      socket.write(get('/reference/callkey-cli.tgz'));
      const unsent = () => connection?.writableLength ?? 0;
      await until(() => unsent() > 0);
      expect(unsent()).to.be.below(200_000);
    } finally {
      socket.destroy();
      abortListeners();
    }
  });
});

describe('a core with WEB_CONSOLE=off', () => {
  it('returns the common 401 for the paths of the page and the reference', async () => {
    const core = await startCoreHere(await freshDatabase('sqlite'), { environment: { WEB_CONSOLE: 'off' } });
    const paths = [
      '/console/session',
      '/',
      '/assets/x.js',
      '/openapi.json',
      '/reference',
      '/reference/page.css',
      '/reference/place_call.py',
    ];
    const answers = await Promise.all(paths.map((path) => ask('GET', `${core.url}${path}`)));
    expect(answers.map(({ status, text }) => [status, text])).to.deep.equal(answers.map(() => [401, answers[0]?.text]));
    expect(core.servesConsole).to.equal(false);
    await core.close();
  });
});

describe("a console that wasn't built", () => {
  let listener: Listener;
  const serve = async (folder: string, commandLine = join(folder, 'none.tgz')) => {
    const app = new Koa().use(webConsole(readWebConsole(folder, commandLine)));
    listener = await listen(
      app.callback(),
      { name: 'public', host: '127.0.0.1', port: 0 },
      { tls: null, isProxy: () => false, onCut: () => undefined },
    );
    return listener.url;
  };
  afterEach(() => listener.drain());

  it('says in one sentence how to build it', async () => {
    const { status, text, headers } = await ask('GET', await serve(join(freshDirectory(), 'missing')));
    expect([status, text, headers['content-type']]).to.deep.equal([
      503,
      `The console isn't built. Run "npm run build:web" in the Callkey folder, then restart the core.\n`,
      'text/plain; charset=utf-8',
    ]);
  });

  it("still serves the command line's package if that was built, and says in the reference how to install it", async () => {
    const commandLine = join(freshDirectory(), 'callkey-cli-1.2.3.tgz');
    writeFileSync(commandLine, 'the package');
    const url = await serve(join(freshDirectory(), 'missing'), commandLine);
    const { text } = await ask('GET', `${url}/reference`);
    const [, path = ''] = /npm install --global "\$CALLKEY_SERVER(\S+)"/.exec(text) ?? [];
    const { status, headers, text: content } = await ask('GET', url + path);
    expect([status, headers['content-type'], content]).to.deep.equal([200, 'application/gzip', 'the package']);
  });

  it("says in the reference where to get the command line if its package wasn't built", async () => {
    const { text } = await ask('GET', `${await serve(join(freshDirectory(), 'missing'))}/reference`);
    expect(text).to.contain('from the Callkey release').and.not.contain('callkey-cli.tgz');
  });

  it("doesn't serve files that an interrupted build has left behind", async () => {
    const folder = freshDirectory();
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'assets', 'index-12345678.js'), '');
    expect((await ask('GET', await serve(folder))).status).to.equal(503);
  });
});
