import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import Provider, { type Adapter, type AdapterPayload, type JWK } from 'oidc-provider';
import { sessionSchema } from '#contract/console/session.ts';
import { fakeClock } from './clock.ts';
import { type CoreHarness, type CoreOptions, openCore } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { type Answer, ask, readCookies } from './http.ts';
import { listenHere } from './listen.ts';
import { startFront } from './proxies.ts';
import { openOnce } from './suites.ts';

/** A person at the provider, which signs everyone in as this person. */
export type Person = { subject: string; email?: string; isVerified?: boolean };

type Claims = Record<string, unknown>;
/** Changes the ID token before the core gets it. */
export type Forgery = {
  claims?: (claims: Claims) => Claims;
  /** `own`: signed with the provider's key. `stranger`: with a key that it doesn't publish. `HS256`: with the client's secret. */
  signature?: 'own' | 'stranger' | 'none' | 'HS256';
};
/** Handles a request instead of the provider. @returns false to let the provider handle it */
type Intercept = (path: string, req: IncomingMessage, res: ServerResponse) => boolean;

export type TestProvider = {
  issuer: string;
  /** Returns the environment variables with which a core uses this provider. */
  environment(coreUrl: string): Record<string, string>;
  /** Who signs in next. */
  person: Person;
  forgery: Forgery;
  intercept: Intercept;
  /** Whether people have to press a button to sign in. */
  asks: boolean;
  /** The paths of all requests so far. */
  requests: string[];
  /** Everything secret that the provider has sent: codes and tokens. */
  secrets: string[];
  rotateKeys(): void;
  close(): Promise<void>;
};

const client = { id: 'callkey', secret: 'the secret of the client at the provider' };
const other = { id: 'another-client', secret: 'the secret of another client there' };

const newKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { privateKey, kid: randomUUID() };
};
type Key = ReturnType<typeof newKey>;
/** Every provider begins with the same key, because making one takes as long as several tests. */
let firstKey: Key | undefined;

/**
 * Starts oidc-provider on loopback. @param redirects the cores that it may send browsers back to @param tls certificate and key for HTTPS
 */
export async function startProvider(
  redirects: readonly string[],
  tls?: { cert: Buffer; key: Buffer; host: string },
): Promise<TestProvider> {
  firstKey ??= newKey();
  let key = firstKey;
  let handler = (_req: IncomingMessage, _res: ServerResponse): unknown => undefined;
  const server = (tls ? createHttpsServer(tls) : createHttpServer()).on('request', (req, res) => handler(req, res));
  const { port, close } = await listenHere(server);
  const issuer = tls ? `https://${tls.host}:${port}` : `http://127.0.0.1:${port}`;

  const state: TestProvider = {
    issuer,
    environment: (coreUrl) => ({
      PUBLIC_URL: coreUrl,
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: client.id,
      OIDC_CLIENT_SECRET: client.secret,
      OIDC_NAME: 'Example Corp',
    }),
    person: { subject: 'ada-at-the-provider', email: 'ada@example.com', isVerified: true },
    forgery: {},
    intercept: () => false,
    asks: false,
    requests: [],
    secrets: [],
    rotateKeys() {
      key = newKey();
      makeProvider();
    },
    close,
  };

  function makeProvider(): void {
    const provider = new Provider(issuer, {
      clients: [client, other].map(({ id, secret }) => ({
        client_id: id,
        client_secret: secret,
        redirect_uris: redirects.map((url) => `${url}/console/oidc/callback`),
        post_logout_redirect_uris: [],
      })),
      jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.kid, use: 'sig', alg: 'RS256' } as JWK] },
      ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
      adapter: inMemory,
      cookies: { keys: ['a key for the cookies of the provider'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'] },
      features: {
        devInteractions: { enabled: false },
        rpInitiatedLogout: { enabled: true, logoutSource: showLogout },
      },
      // As most providers do, puts the email address into the ID token, too.
      conformIdTokenClaims: false,
      // By default, the provider would accept sign-ins without PKCE.
      pkce: { required: () => true },
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      findAccount: (_ctx, accountId) => ({
        accountId,
        claims: async () => ({
          sub: accountId,
          ...(state.person.email === undefined ? {} : { email: state.person.email }),
          ...(state.person.isVerified === undefined ? {} : { email_verified: state.person.isVerified }),
        }),
      }),
      async loadExistingGrant(ctx) {
        const { client: asking, session } = ctx.oidc;
        const grant = new ctx.oidc.provider.Grant({ clientId: asking?.clientId ?? '', accountId: session?.accountId ?? '' });
        grant.addOIDCScope('openid email');
        await grant.save();
        return grant;
      },
      renderError: (ctx, out) => {
        ctx.type = 'json';
        ctx.body = out;
      },
    });
    const callback = provider.callback();
    handler = async (req, res) => {
      const path = new URL(req.url ?? '', issuer).pathname;
      state.requests.push(path);
      if (state.intercept(path, req, res)) return;
      if (path === '/token') forgeToken(res, state, key);
      if (!path.startsWith('/interaction/')) return callback(req, res);
      if (state.asks && req.method === 'GET') return askToSignIn(res);
      await provider.interactionFinished(req, res, { login: { accountId: state.person.subject } });
    };
  }
  makeProvider();
  return state;
}

function showLogout(ctx: { body: unknown }, form: string): void {
  ctx.body = `<!doctype html><title>Example Corp</title>${form}`;
}

function askToSignIn(res: ServerResponse): void {
  res.setHeader('Content-Type', 'text/html');
  res.end('<!doctype html><title>Example Corp</title><form method="post"><button>Sign in at Example Corp</button></form>');
}

/** Replaces the ID token in the response. */
function forgeToken(res: ServerResponse, { forgery, secrets }: TestProvider, key: Key): void {
  const end = res.end.bind(res);
  res.end = ((body: unknown) => {
    const answer: Record<string, unknown> = JSON.parse(String(body));
    const { id_token: token } = answer;
    if (typeof token === 'string') answer['id_token'] = forged(token, forgery, key);
    secrets.push(...[answer['id_token'], answer['access_token']].filter((secret) => typeof secret === 'string'));
    const text = JSON.stringify(answer);
    res.setHeader('Content-Length', Buffer.byteLength(text));
    return end(text);
  }) as typeof res.end;
}

function forged(token: string, { claims = (given) => given, signature = 'own' }: Forgery, key: Key): string {
  const [, payload = ''] = token.split('.');
  const header = { alg: signature === 'none' || signature === 'HS256' ? signature : 'RS256', kid: key.kid };
  const changed = claims(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  const text = [header, changed].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${text}.${signToken(text, signature, key.privateKey)}`;
}

function signToken(text: string, signature: NonNullable<Forgery['signature']>, own: KeyObject): string {
  if (signature === 'none') return '';
  if (signature === 'HS256') return createHmac('sha256', client.secret).update(text).digest('base64url');
  const signing = signature === 'own' ? own : newKey().privateKey;
  return sign('sha256', Buffer.from(text), signing).toString('base64url');
}

/** Replaces the provider's own storage in memory, which prints a warning on standard error. It must outlive a change of keys. */
const stored = new Map<string, AdapterPayload>();

const inMemory = (name: string): Adapter => ({
  upsert: async (id, payload) => void stored.set(`${name} ${id}`, payload),
  find: async (id) => stored.get(`${name} ${id}`),
  findByUid: async (uid) => [...stored.values()].find((payload) => payload.uid === uid),
  findByUserCode: async () => undefined,
  consume: async (id) => void Object.assign(stored.get(`${name} ${id}`) ?? {}, { consumed: true }),
  destroy: async (id) => void stored.delete(`${name} ${id}`),
  async revokeByGrantId(grantId) {
    for (const [key, payload] of stored) if (payload['grantId'] === grantId) stored.delete(key);
  },
});

/** A core with tenants and a provider. @property url the PUBLIC_URL */
export type ProviderHarness = CoreHarness & { url: string; provider: TestProvider };

export async function openWithProvider({ environment, ...options }: { kind?: DatabaseKind } & CoreOptions = {}): Promise<ProviderHarness> {
  const front = await startFront();
  const provider = await startProvider([front.url]);
  const harness = await openCore({ ...options, environment: { ...provider.environment(front.url), ...environment } });
  front.leadTo(harness.core.url);
  return {
    ...harness,
    url: front.url,
    provider,
    async close() {
      await harness.close();
      await provider.close();
      await front.close();
    },
  };
}

/** Goes to the provider and back, without opening the callback. @returns the callback's URL */
export async function goToProvider({ url }: Pick<ProviderHarness, 'url'>, browser: TestBrowser, query = ''): Promise<string> {
  return browser.follow(`${url}/console/oidc${query}`, `${url}/console/oidc/callback`);
}

/** Signs in. @returns what the page's address says: `done`, or what went wrong */
export async function signInWithProvider(harness: Pick<ProviderHarness, 'url'>, browser = new TestBrowser(), query = ''): Promise<string> {
  const callback = await goToProvider(harness, browser, query);
  return finishSignIn(browser, callback);
}

/** Opens the callback like a browser that the provider has redirected there. */
export async function finishSignIn(browser: TestBrowser, callback: string): Promise<string> {
  const { result } = await openCallback(browser, callback);
  return result;
}

/** Signs in for the app. @returns the body of the request that hands this sign-in over */
export async function signInForApp(harness: Pick<ProviderHarness, 'url'>, browser: TestBrowser, query: string): Promise<{ flow: string }> {
  const { result, flow } = await openCallback(browser, await goToProvider(harness, browser, query));
  if (result !== 'app') throw new Error(`The sign-in ended with ${result}.`);
  return { flow };
}

async function openCallback(browser: TestBrowser, callback: string): Promise<{ result: string; flow: string }> {
  const answer = await browser.open(callback, { 'Sec-Fetch-Site': 'cross-site' });
  const [, result = `${answer.status} ${answer.text}`, flow = ''] =
    /\?sign-in=(\w+)(?:&flow=(\w+))?$/.exec(String(answer.headers['location'])) ?? [];
  return { result, flow };
}

/** Ada at the provider, who signs in unless a test changes that. */
export const ada: Person = { subject: 'ada-at-the-provider', email: 'ada@example.com', isVerified: true };

/** Opens a core with a provider before the tests of a suite. Each test begins without links and sessions. */
export function providerSuite(kind: DatabaseKind = 'sqlite', options: CoreOptions = {}) {
  const clock = fakeClock(new Date().toISOString());
  const harness = openOnce(() => openWithProvider({ kind, clock, ...options }));
  beforeEach(() => {
    clock.set(new Date().toISOString());
    Object.assign(harness.provider, { person: ada, forgery: {}, intercept: () => false });
  });
  afterEach(async () => {
    const { write } = harness.direct.storage.database;
    for (const table of ['oidc_links', 'sessions', 'sign_in_attempts'] as const) await write(table).delete();
  });

  const session = (browser: TestBrowser) => browser.open(`${harness.url}/console/session`);
  return {
    ...{ harness, clock, session },
    links: () => harness.direct.ports.stores.links,
    emailIn: async (browser: TestBrowser) => sessionSchema.parse((await session(browser)).json).viewer.email,
  };
}

/** Follows redirects as a browser does, with cookies for each server, but can stop at any URL. */
export class TestBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Returns the cookies that the browser sends to a server. */
  cookie(url: string): string {
    return [...(this.#cookies.get(new URL(url).origin) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Takes over another browser's cookies, as an attacker would plant them. */
  plant(url: string, cookie: string): void {
    const jar = this.#findJar(url);
    for (const [name, value] of splitCookies(cookie)) jar.set(name, value);
  }

  async open(url: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('GET', url, undefined, { 'Sec-Fetch-Site': 'none', ...headers });
  }

  async send(method: string, url: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const cookie = this.cookie(url);
    const answer = await ask(method, url, { headers, ...(cookie === '' ? {} : { cookie }), ...(body && { body }) });
    const jar = this.#findJar(url);
    for (const [name, value] of splitCookies(readCookies(answer))) {
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }

  /** Follows redirects until one leads to a URL that starts with `stop`. @returns that URL, which isn't opened */
  async follow(url: string, stop: string): Promise<string> {
    for (let next = url; ; ) {
      if (next.startsWith(stop)) return next;
      const answer = await this.open(next);
      const { location } = answer.headers;
      if (typeof location !== 'string') throw new Error(`${next} returned ${answer.status} ${answer.text}`);
      next = new URL(location, next).href;
    }
  }

  #findJar(url: string): Map<string, string> {
    const { origin } = new URL(url);
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}

const splitCookies = (cookies: string) =>
  cookies.split('; ').map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const);
