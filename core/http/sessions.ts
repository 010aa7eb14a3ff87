import Cookies from 'cookies';
import type Koa from 'koa';
import createSession from 'koa-session';
import type { z } from 'zod';
import { digestOf } from '../domain/api-keys.ts';
import type { Credentials } from '../domain/model.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';
import { endSession, resumeSession, sessionLimits, startSession } from '../domain/sessions.ts';
import { readBody } from './body.ts';
import { actorOf, type Context, type HttpDeps, type State, type Step, sessionOf } from './context.ts';

/** What koa-session hands to its store: always with the request's context, which its types leave open. */
type StoreOptions = { ctx?: Context };

/** As much of koa-session's session as is used here. */
type KoaSession = { regenerate(): Promise<void>; manuallyCommit(): Promise<void> };

const cookieName = 'callkey_session';
const idBytes = 32;

/** Opens the session that a request's cookie names, if any. */
export function sessions(app: Koa<State>, deps: HttpDeps, secrets: readonly string[]): Step {
  const { ports } = deps;
  app.keys = [...secrets];

  const opened = createSession(
    {
      key: cookieName,
      maxAge: sessionLimits.absolute.toMillis(),
      sameSite: 'strict',
      // Nothing is written behind the routes' back: they start and end sessions in so many words.
      autoCommit: false,
      genid: () => Buffer.from(ports.randomness.bytes(idBytes)).toString('base64url'),
      store: {
        async get(sessionId: string, _maxAge: unknown, { ctx }: StoreOptions) {
          if (!ctx) return undefined;
          const id = digestOf(sessionId);
          const data = await resumeSession(ports, id);
          if (!data) return undefined;
          ctx.state.session = { id, data };
          return { userId: data.user.id };
        },
        // Only a sign-in makes a session; one that was ended while a request was under way stays ended.
        async set(sessionId: string, _data: unknown, _maxAge: unknown, { ctx }: StoreOptions) {
          const credentials = ctx?.state.signingIn;
          if (!credentials) return;
          const id = digestOf(sessionId);
          await startSession(ports, id, credentials, deps.addressOf(ctx));
          const data = await ports.stores.sessions.find(id);
          if (data) ctx.state.session = { id, data };
        },
        async destroy(_sessionId: string, { ctx }: StoreOptions) {
          const session = ctx?.state.session;
          if (session) await endSession(ports, session.id, actorOf(deps, ctx), session.data.user);
        },
      },
    },
    app,
  );

  return async (ctx, next) => {
    ctx.cookies = hostCookies(ctx, app.keys, deps.isSecure(ctx));
    await opened(ctx, next);
  };
}

/** Starts a session under a fresh id, and ends the one that the request came with. */
export async function signInto(ctx: Context, credentials: Credentials): Promise<void> {
  ctx.state.signingIn = credentials;
  const session: KoaSession = ctx['session'];
  await session.regenerate();
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
  const body = await readBody(ctx, schema);
  const { id } = sessionOf(ctx);
  const data = await resumeSession(ports, id);
  if (!data) throw new Problem('unauthorized', unauthorizedDetail);
  ctx.state.session = { id, data };
  return body;
}

/** Ends the session and takes its cookie back. */
export async function signOut(ctx: Context): Promise<void> {
  const session: KoaSession = ctx['session'];
  ctx['session'] = null;
  await session.manuallyCommit();
}

/**
 * Over https a cookie's name gets the `__Host-` prefix, with which browsers hold it to this very host and to https
 * (RFC 6265bis §4.1.3.2).
 */
function hostCookies(ctx: Context, keys: Koa['keys'], secure: boolean): Cookies {
  const cookies = new Cookies(ctx.req, ctx.res, { keys, secure });
  const prefix = secure ? '__Host-' : '';
  return Object.assign(Object.create(cookies), {
    get: (name: string, options?: Cookies.GetOption) => cookies.get(prefix + name, options),
    set: (name: string, value?: string | null, options?: Cookies.SetOption) => cookies.set(prefix + name, value, options),
  });
}
