import { hash } from 'node:crypto';
import Cookies from 'cookies';
import type Koa from 'koa';
import createSession from 'koa-session';
import type { z } from 'zod';
import { selectTenancySchema, tenancyHeader } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { toDigest } from '../../domain/api-keys.ts';
import type { Actor, Digest, Proof, Session, Viewer } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { Problem, unauthorized } from '../../domain/problem.ts';
import { deviceLife, type KnownUser, makeDeviceToken, type Vouchers } from '../../domain/sign-in/devices.ts';
import { endSession, resumeSession, sessionLimits, stageOf, startSession, withTenancy } from '../../domain/sign-in/sessions.ts';
import { readBody } from './body.ts';
import type { Context, HttpDeps, Middleware, State } from './context.ts';

const cookieName = 'callkey_session';
const idBytes = 32;

type SignedIn = { id: Digest; data: Session };

/** The value of `ctx.session`: the open session, one that waits for a code, or the user's proof for starting one. */
type SessionData = { signedIn?: SignedIn; halfOpen?: SignedIn; proof?: Proof };

/** Sessions are stored in the database, by the digest of their ID. */
export function session(app: Koa<State>, deps: HttpDeps): Middleware {
  const { ports, sessionSecrets } = deps;
  // koa-session requires this, but `CoreCookies` signs.
  app.keys = [...sessionSecrets];
  const path = publicPath(deps.publicUrl) || '/';
  const resume = shareLookups((id: Digest) => resumeSession(ports, id));

  const openSession = createSession(
    {
      key: cookieName,
      maxAge: sessionLimits.absolute.toMillis(),
      sameSite: 'strict',
      // Save only at sign-in and sign-out, because a slow request must not bring back a session that has ended in the meantime.
      autoCommit: false,
      genid: () => Buffer.from(ports.randomness.bytes(idBytes)).toString('base64url'),
      store: {
        async get(sessionId: string): Promise<SessionData | undefined> {
          const id = toDigest(sessionId);
          const data = await resume(id);
          if (!data) return undefined;
          return stageOf(ports, data) === 'half-open' ? { halfOpen: { id, data } } : { signedIn: { id, data } };
        },
        async set(sessionId: string, { proof }: SessionData, _maxAge: unknown, { ctx }: { ctx?: Context }) {
          if (proof && ctx) ctx.state.started = await startSession(ports, toDigest(sessionId), proof, deps.getClientAddress(ctx));
        },
        async destroy(sessionId: string, { ctx }: { ctx?: Context }) {
          const id = toDigest(sessionId);
          const stored = await ports.stores.sessions.find(id);
          // Don't delete a half-open session here: finishing the sign-in does that in its own transaction, and only if the code is right.
          if (!stored || !ctx || stored.halfOpenUntil !== null) return;
          await endSession(ports, id, { who: stored.user, address: deps.getClientAddress(ctx) }, stored.user);
        },
      },
    },
    app,
  );

  return async (ctx, next) => {
    ctx.cookies = new CoreCookies(ctx, sessionSecrets, { secure: deps.isSecure(ctx), path });
    await openSession(ctx, next);
  };
}

export function isSignedIn(ctx: Context): boolean {
  return koaSession(ctx).signedIn !== undefined;
}

/** @throws Problem `unauthorized` */
export function getSession(ctx: Context): SignedIn {
  const { signedIn } = koaSession(ctx);
  if (!signedIn) throw unauthorized();
  return signedIn;
}

export function getViewer(ctx: Context): Viewer {
  const { data } = getSession(ctx);
  return { ...data.user, tenancy: data.tenancy };
}

export function getActor(deps: HttpDeps, ctx: Context): Actor {
  const { id, data } = getSession(ctx);
  return { who: { id: data.user.id, name: data.user.name }, address: deps.getClientAddress(ctx), session: id };
}

/** @throws Problem `unauthorized` */
export function getHalfOpenSession(ctx: Context): SignedIn {
  const { halfOpen } = koaSession(ctx);
  if (!halfOpen) throw unauthorized();
  return halfOpen;
}

/** Ends the request's previous session. */
export async function startNewSession(ctx: Context, proof: Proof): Promise<Session> {
  ctx['session'] = { proof } satisfies SessionData;
  await koaSession(ctx).regenerate();
  if (!ctx.state.started) throw new Error('No session was started.');
  return ctx.state.started;
}

export async function signOut(ctx: Context): Promise<void> {
  const ending = koaSession(ctx);
  ctx['session'] = null;
  await ending.manuallyCommit();
  ctx.status = 204;
}

/** Checks the session again after the body, because the session may have ended or its user may have been moved by then. */
export async function readBodyInSession<Schema extends z.ZodType>(
  ctx: Context,
  { ports }: HttpDeps,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await readBody(ctx, schema, limits.bodyBytes, getViewer(ctx).id);
  await renewSession(ctx, ports);
  return body;
}

/** Checks the session again during a long request. @throws Problem `unauthorized` if it has ended */
export async function renewSession(ctx: Context, ports: Ports): Promise<void> {
  const { id } = getSession(ctx);
  const data = await resumeSession(ports, id);
  if (!data) throw unauthorized();
  koaSession(ctx).signedIn = { id, data };
  await applyTenancyHeader(ctx, ports);
}

/**
 * Uses the tenancy in a request's header instead of the session's, because another tab may have selected a different one.
 *
 * @throws Problem `malformed-request`, `forbidden` or `not-found`
 */
export async function applyTenancyHeader(ctx: Context, ports: Ports): Promise<void> {
  const header = ctx.headers[tenancyHeader.toLowerCase()];
  if (header === undefined) return;
  const [, kind, tenancyId = ''] = /^(account|partner)\/(.*)$/.exec(String(header)) ?? [];
  const choice = selectTenancySchema.safeParse({ kind, id: tenancyId }).data;
  if (!choice?.kind) throw new Problem('malformed-request', `${tenancyHeader} must be account/ID or partner/ID.`);
  const { id, data } = getSession(ctx);
  koaSession(ctx).signedIn = { id, data: await withTenancy(ports, data, choice) };
}

/** The library's types don't define the content of a session. */
function koaSession(ctx: Context): SessionData & { regenerate(): Promise<void>; manuallyCommit(): Promise<void> } {
  return ctx['session'];
}

/**
 * Shares lookups of the same ID: all requests that arrive while a lookup is in progress share a second one that starts after it. So each
 * request sees everything that was committed before it arrived, and hundreds of requests with one session can't fill the database's queue
 * and delay other users.
 */
export function shareLookups<Id, Found>(find: (id: Id) => Promise<Found>): (id: Id) => Promise<Found> {
  const inProgress = new Map<Id, Promise<Found>>();
  const next = new Map<Id, Promise<Found>>();

  function start(id: Id): Promise<Found> {
    const lookUp = find(id).finally(() => inProgress.delete(id));
    inProgress.set(id, lookUp);
    return lookUp;
  }

  async function startAfter(earlier: Promise<Found>, id: Id): Promise<Found> {
    await earlier.catch(() => undefined);
    next.delete(id);
    return start(id);
  }

  return (id) => {
    const current = inProgress.get(id);
    if (!current) return start(id);
    const following = next.get(id) ?? startAfter(current, id);
    next.set(id, following);
    return following;
  };
}

const deviceCookie = 'callkey_device';

/** Marks the browser as a known device again, after a change that its session has made to how the user signs in. */
export async function rememberChangedDevice(ctx: Context, ports: Ports): Promise<void> {
  const session = await ports.stores.sessions.find(getSession(ctx).id);
  if (session) rememberDevice(ctx, ports, session);
}

/** @param user as they signed in here, not as they are now, because they may have set up a second factor in the meantime */
export function rememberDevice(ctx: Context, ports: Ports, user: KnownUser): void {
  const options = { maxAge: deviceLife.toMillis(), sameSite: 'strict' } as const;
  ctx.cookies.set(deviceCookie, makeDeviceToken(ports, user), options);
}

/** Omits the device if its cookie doesn't have a valid signature. */
export function readVouchers(ctx: Context): Vouchers {
  return { session: isSignedIn(ctx) ? getSession(ctx) : null, device: ctx.cookies.get(deviceCookie, { signed: true }) };
}

/**
 * Refuses requests that another site makes a browser send (OWASP Cross-Site Request Forgery Prevention Cheat Sheet). Checks Fetch Metadata
 * if the browser sends it, and otherwise Origin. Accepts requests with neither, because they come from programs other than browsers, which
 * other sites can't control.
 */
export function csrf(deps: HttpDeps): Middleware {
  return async (ctx, next) => {
    const site = ctx.get('Sec-Fetch-Site');
    const origin = ctx.get('Origin');
    const own = `${deps.isSecure(ctx) ? 'https' : 'http'}://${ctx.get('Host')}`;
    const isCrossSite = site === '' ? origin !== '' && !isSameOrigin(origin, own) : site !== 'same-origin' && site !== 'none';
    if (isCrossSite) throw new Problem('cross-site', 'This request came from another site.');
    await next();
  };
}

/** Compares parsed origins, because programs and proxies may write the default port, or a host in upper case. */
function isSameOrigin(a: string, b: string): boolean {
  const parsed = URL.parse(a)?.origin;
  return parsed !== undefined && parsed === URL.parse(b)?.origin;
}

/**
 * Reads and writes signed cookies whose names belong to this core. Cookies don't depend on the port, and a path doesn't keep them apart
 * reliably, so cores on one host name would otherwise replace each other's. A name ends with a fingerprint of the secret that signs it:
 * a core writes under its newest secret, and reads under all of them, so replacing the secrets doesn't sign anyone out.
 *
 * This is a class, because if each request's object had its own prototype, these objects would survive until a full garbage collection.
 */
export class CoreCookies extends Cookies {
  readonly #cookies: { secure: boolean; path: string; endings: readonly string[] };

  /** @param path browsers send the cookies only to this path */
  constructor({ req, res }: Context, secrets: readonly string[], { secure, path }: { secure: boolean; path: string }) {
    super(req, res, { keys: [...secrets], secure });
    this.#cookies = { secure, path, endings: secrets.map(fingerprint) };
  }

  override get(name: string, options?: Cookies.GetOption): string | undefined {
    // `Cookies` asks for the signature by its whole name.
    if (name.endsWith('.sig')) return super.get(name, options);
    for (const [index, ending] of this.#cookies.endings.entries()) {
      const value = super.get(this.#fullName(name, ending), options);
      // Write it again under the newest secret, so that the older ones can be removed. The core knows when it expires.
      if (value !== undefined && index > 0) this.#write(name, value, { maxAge: sessionLimits.absolute.toMillis(), sameSite: 'strict' });
      if (value !== undefined) return value;
    }
    return undefined;
  }

  override set(name: string, value?: string | null, options?: Cookies.SetOption): this {
    // `Cookies` deletes a signature that isn't valid, and renews one that was made with an older secret. Don't: it may belong to another
    // core, and `get` writes both again.
    if (name.endsWith('.sig')) return this;
    for (const ending of this.#cookies.endings.slice(1)) {
      const old = this.#fullName(name, ending);
      if (super.get(old, { signed: true }) !== undefined) super.set(old, null, { path: this.#cookies.path, signed: true });
    }
    return this.#write(name, value, options);
  }

  /** Lists names of this core's cookies in the request, as `get` and `set` accept them. */
  list(start: string): string[] {
    const header = this.request.headers.cookie ?? '';
    const names = header.split(';').map((pair) => pair.slice(0, Math.max(0, pair.indexOf('='))).trim());
    const short = names.flatMap((name) =>
      this.#cookies.endings.flatMap((ending) => {
        const [, between] = new RegExp(`^${this.#fullName(`(${start}.*)`, ending)}$`).exec(name) ?? [];
        return between === undefined ? [] : [between];
      }),
    );
    return [...new Set(short)];
  }

  #write(name: string, value: string | null | undefined, options?: Cookies.SetOption): this {
    const [newest = ''] = this.#cookies.endings;
    return super.set(this.#fullName(name, newest), value, { ...options, path: this.#cookies.path, httpOnly: true, signed: true });
  }

  /** Over https, browsers send cookies with these prefixes only over https, and with `__Host-` only to this host (RFC 6265bis §4.1.3). */
  #fullName(name: string, ending: string): string {
    const prefix = this.#cookies.path === '/' ? '__Host-' : '__Secure-';
    return `${this.#cookies.secure ? prefix : ''}${name}_${ending}`;
  }
}

/** Returns the path at which browsers reach this core, without a slash at the end. */
export function publicPath(publicUrl: string): string {
  return (URL.parse(publicUrl)?.pathname ?? '').replace(/\/$/, '');
}

const fingerprints = new Map<string, string>();

function fingerprint(secret: string): string {
  const known = fingerprints.get(secret) ?? hash('sha256', `callkey cookies ${secret}`).slice(0, 8);
  fingerprints.set(secret, known);
  return known;
}
