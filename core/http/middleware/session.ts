import Cookies from 'cookies';
import type Koa from 'koa';
import createSession from 'koa-session';
import type { z } from 'zod';
import { selectTenancySchema, tenancyHeader } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { digestOf } from '../../domain/api-keys.ts';
import type { Actor, Credentials, Digest, Session, Viewer } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../../domain/problem.ts';
import { endSession, resumeSession, sessionLimits, startSession, withTenancy } from '../../domain/sign-in/sessions.ts';
import { readBody } from './body.ts';
import type { Context, HttpDeps, Middleware, State } from './context.ts';

const cookieName = 'callkey_session';
const idBytes = 32;

/** A session that the request's cookie opened. */
type SignedIn = { id: Digest; data: Session };

/** What `ctx.session` holds: the open session, or the credentials with which one is about to start. */
type SessionData = { signedIn?: SignedIn; credentials?: Credentials };
type KoaSession = SessionData & { regenerate(): Promise<void>; manuallyCommit(): Promise<void> };

/** Opens the session that a request's cookie names, if any. Sessions are in the database, under the digest of their id. */
export function session(app: Koa<State>, deps: HttpDeps, secrets: readonly string[]): Middleware {
  const { ports } = deps;
  app.keys = [...secrets];

  const openSession = createSession(
    {
      key: cookieName,
      maxAge: sessionLimits.absolute.toMillis(),
      sameSite: 'strict',
      // Only signing in and out write: a slow request must not bring a session back that was ended while it was under way.
      autoCommit: false,
      genid: () => Buffer.from(ports.randomness.bytes(idBytes)).toString('base64url'),
      store: {
        async get(sessionId: string): Promise<SessionData | undefined> {
          const id = digestOf(sessionId);
          const data = await resumeSession(ports, id);
          return data ? { signedIn: { id, data } } : undefined;
        },
        async set(sessionId: string, { credentials }: SessionData, _maxAge: unknown, { ctx }: { ctx?: Context }) {
          if (credentials && ctx) await startSession(ports, digestOf(sessionId), credentials, deps.addressOf(ctx));
        },
        async destroy(sessionId: string, { ctx }: { ctx?: Context }) {
          const id = digestOf(sessionId);
          const found = await ports.stores.sessions.find(id);
          if (found && ctx) await endSession(ports, id, { who: found.user, address: deps.addressOf(ctx) }, found.user);
        },
      },
    },
    app,
  );

  return async (ctx, next) => {
    ctx.cookies = new HostCookies(ctx, app.keys, deps.isSecure(ctx));
    await openSession(ctx, next);
  };
}

export function isSignedIn(ctx: Context): boolean {
  return koaSession(ctx).signedIn !== undefined;
}

/** @throws Problem `unauthorized` */
export function sessionOf(ctx: Context): SignedIn {
  const { signedIn } = koaSession(ctx);
  if (!signedIn) throw new Problem('unauthorized', unauthorizedDetail);
  return signedIn;
}

export function viewerOf(ctx: Context): Viewer {
  const { data } = sessionOf(ctx);
  return { ...data.user, tenancy: data.tenancy };
}

export function actorOf(deps: HttpDeps, ctx: Context): Actor {
  const { id, name } = viewerOf(ctx);
  return { who: { id, name }, address: deps.addressOf(ctx) };
}

/** Starts a session under a fresh id, and ends the one that the request came with. */
export async function startNewSession(ctx: Context, credentials: Credentials): Promise<void> {
  ctx['session'] = { credentials } satisfies SessionData;
  await koaSession(ctx).regenerate();
}

/** Ends the session and takes its cookie back. */
export async function signOut(ctx: Context): Promise<void> {
  const ending = koaSession(ctx);
  ctx['session'] = null;
  await ending.manuallyCommit();
}

/**
 * Reads a body, and then looks at the session again: a body can take its time, and a session that has ended meanwhile, or whose user has
 * moved, must not act any more.
 */
export async function readBodyInSession<Schema extends z.ZodType>(
  ctx: Context,
  { ports }: HttpDeps,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await readBody(ctx, schema, limits.bodyBytes);
  await renewSession(ctx, ports);
  return body;
}

/** Looks at the session again, where a request takes long. @throws Problem `unauthorized` if it has ended */
export async function renewSession(ctx: Context, ports: Ports): Promise<void> {
  const { id } = sessionOf(ctx);
  const data = await resumeSession(ports, id);
  if (!data) throw new Problem('unauthorized', unauthorizedDetail);
  koaSession(ctx).signedIn = { id, data };
  await takeTenancy(ctx, ports);
}

/**
 * The tenancy that a request names in its header replaces the session's: another tab may have selected another one meanwhile.
 *
 * @throws Problem `malformed-request`, `forbidden` or `not-found`
 */
export async function takeTenancy(ctx: Context, ports: Ports): Promise<void> {
  const given = ctx.headers[tenancyHeader.toLowerCase()];
  if (given === undefined) return;
  const [, kind, tenancyId = ''] = /^(account|partner)\/(.*)$/.exec(String(given)) ?? [];
  const choice = selectTenancySchema.safeParse({ kind, id: tenancyId }).data;
  if (!choice?.kind) throw new Problem('malformed-request', `${tenancyHeader} must be account/ID or partner/ID.`);
  const { id, data } = sessionOf(ctx);
  koaSession(ctx).signedIn = { id, data: await withTenancy(ports, data, choice) };
}

/** koa-session leaves open what a session holds. */
function koaSession(ctx: Context): KoaSession {
  return ctx['session'];
}

/**
 * Over https a cookie's name gets the `__Host-` prefix, with which browsers hold it to this very host and to https
 * (RFC 6265bis §4.1.3.2). A class: an object made from a prototype of its own for each request would outlive it until a full collection.
 */
class HostCookies extends Cookies {
  readonly #prefix: string;

  constructor({ req, res }: Context, keys: Koa['keys'], secure: boolean) {
    super(req, res, { keys, secure });
    this.#prefix = secure ? '__Host-' : '';
  }

  override get(name: string, options?: Cookies.GetOption): string | undefined {
    return super.get(this.#prefixed(name), options);
  }

  override set(name: string, value?: string | null, options?: Cookies.SetOption): this {
    return super.set(this.#prefixed(name), value, options);
  }

  /** `Cookies` itself comes back with the prefixed name of a signature. */
  #prefixed(name: string): string {
    return name.startsWith(this.#prefix) ? name : this.#prefix + name;
  }
}
