import { Readable } from 'node:stream';
import Router from '@koa/router';
import { z } from 'zod';
import { sessionRoutes } from '#contract/console/session.ts';
import { generation, generationHeader } from '#contract/contract-generation.ts';
import { parameterNames, type Route } from '#contract/route.ts';
import { type ConsoleRoutes, consoleRoutes as table } from '#contract/routes.ts';
import { isDecodable } from '#contract/server-address.ts';
import { isIdentifier } from '#contract/text/text.ts';
import type { Turn } from '../domain/fair-queue.ts';
import type { Ports } from '../domain/ports.ts';
import { notFound, Problem } from '../domain/problem.ts';
import { confirmRequest } from '../domain/sign-in/second-factor.ts';
import { recordTenancyAccess, requireStage } from '../domain/sign-in/sessions.ts';
import * as activity from './console/activity.ts';
import * as apiKeys from './console/api-keys.ts';
import * as calls from './console/calls.ts';
import * as directory from './console/directory.ts';
import * as signIn from './console/identity-provider.ts';
import * as protection from './console/protection.ts';
import * as sessions from './console/sessions.ts';
import * as users from './console/users.ts';
import { readQuery } from './middleware/body.ts';
import type { Context, Handler, HttpDeps, Middleware, Request, SessionRoute, State, TakeTurn } from './middleware/context.ts';
import { isUnchanged, setEncodedBody, toEtag } from './middleware/encoding.ts';
import { badEncoding, hasKeyHeader, jsonLine, methodNotAllowed, refuse, setRequestId } from './middleware/every-request.ts';
import {
  applyTenancyHeader,
  csrf,
  getActor,
  getSession,
  getViewer,
  isSignedIn,
  readBodyInSession,
  renewSession,
} from './middleware/session.ts';
import { ConsoleTurns, turnLimits } from './middleware/turns.ts';

/** Each handler has the name of its route. The compiler reports a route without a handler. */
const handlers: { readonly [Name in SessionRoute]: Handler<Name> } = {
  ...sessions,
  ...apiKeys,
  ...directory,
  ...calls,
  ...users,
  ...activity,
  ...protection,
};

/** The routes that don't require an open session. */
type OpenRoute = Exclude<keyof ConsoleRoutes, SessionRoute>;
const openHandlers: { readonly [Name in OpenRoute]: (ctx: Context, deps: HttpDeps) => Promise<void> } = {
  signIn: sessions.signIn,
  enterCode: sessions.enterCode,
  ...signIn,
};

/** These routes don't wait for a turn: signing out is quick, and passwords have their own queue. */
const outOfTurn: readonly SessionRoute[] = ['showSession', 'signOut', 'changePassword', 'enrollSecondFactor'];

export function consoleRoutes(deps: HttpDeps): Router<State> {
  const router = new Router<State>({ sensitive: true, strict: true });
  const refuseCrossSite = csrf(deps);
  const lists = new ConsoleTurns();
  // A user's changes wait only for each other. Without turns, hundreds of concurrent changes would fill the database's queue, and other
  // users and sign-ins would get 503.
  const changes = new ConsoleTurns({ ...turnLimits, atOnce: Number.POSITIVE_INFINITY });

  function register<Name extends SessionRoute>(name: Name): void {
    const { method, path, answer, status, repeated, confirm }: Route = table[name];
    const isExport = answer === 'csv';
    const turns = isExport || outOfTurn.includes(name) ? null : method === 'GET' ? lists : changes;
    const handle = async (ctx: Context, turn: Turn | null) => {
      await applyTenancyHeader(ctx, deps.ports);
      if (!(name in sessionRoutes))
        await recordTenancyAccess(deps.ports, getSession(ctx).id, { viewer: getViewer(ctx), actor: getActor(deps, ctx) });
      // An export takes a turn for each of its parts, not one for the whole file, because a client may read slowly.
      const takeTurn: TakeTurn = async (work) => (turn ? work(turn) : ((await inTurn(lists, ctx, deps.ports, null, work)) ?? closed()));
      const request = await readRequest(ctx, deps, name, takeTurn);
      if (confirm?.(request.body)) await confirmRequest(deps.ports, request.caller, readCode(request.body));
      const view = await handlers[name](request);
      if (view !== undefined) ctx.body = view;
      // 204, if the route has no `answer` and no `status` of its own.
      ctx.status = ctx.state.isRepeated && repeated ? repeated : status;
    };
    const run: Middleware = async (ctx) => {
      requireStage(deps.ports, getSession(ctx).data, name);
      await (turns
        ? inTurn(turns, ctx, deps.ports, ctx.query['search'] ? ctx.path : null, (turn) => handle(ctx, turn))
        : handle(ctx, null));
    };
    const requireOwnPath: Middleware = (ctx, next) => {
      if (ctx.path !== path && fixedPaths.has(ctx.path)) throw methodNotAllowed(consoleMethods(router, ctx.path));
      return next();
    };
    const guards = [requireSession, requireOwnPath, requireDecodablePath, refuseCrossSite];
    router.register(path, [method], [setRoute(path), ...guards, consoleAnswer(name), run]);
  }

  /** The identity provider redirects browsers to the callback, so it must accept cross-site requests. */
  function registerOpen(name: OpenRoute): void {
    const { method, path }: Route = table[name];
    // If there's no identity provider, strangers must not see that its paths exist.
    const isMissing = path.startsWith('/console/oidc') && !deps.ports.identityProvider;
    const refuseFirst: Middleware = async (ctx, next) => (isMissing || hasKeyHeader(ctx) ? refuse(ctx) : next());
    const guards = name === 'finishOidc' ? [refuseFirst] : [refuseFirst, refuseCrossSite];
    router.register(path, [method], [setRoute(path), ...guards, consoleAnswer(name), (ctx: Context) => openHandlers[name](ctx, deps)]);
  }

  for (const [name, { by }] of Object.entries(table)) by === 'session' ? register(name as SessionRoute) : registerOpen(name as OpenRoute);
  return router;
}

/** Without it, a filter or an option that a route doesn't have would be ignored, and the response would look as if it had been applied. */
const noQuery = z.strictObject({});

/** @throws Problem `malformed-request`, `unsupported-media-type`, `too-large`, `invalid`, `unauthorized` or `not-found` */
async function readRequest<Name extends SessionRoute>(
  ctx: Context,
  deps: HttpDeps,
  name: Name,
  takeTurn: TakeTurn,
): Promise<Request<Name>> {
  const { path, query, body }: Route = table[name];
  const read = {
    query: readQuery(ctx, query ?? noQuery),
    body: body && (await readBodyInSession(ctx, deps, body)),
    params: Object.fromEntries(parameterNames(path).map((parameter) => [parameter, readId(ctx, parameter)])),
  };
  // Read the viewer only now, because the session may have changed while the body was arriving.
  const viewer = getViewer(ctx);
  return { ...read, ctx, deps, ports: deps.ports, takeTurn, viewer, caller: { viewer, actor: getActor(deps, ctx) } } as Request<Name>;
}

function readId(ctx: Context, parameter: string): string {
  const parameters: Readonly<Record<string, string>> = ctx['params'] ?? {};
  const id = parameters[parameter] ?? '';
  if (!isIdentifier(id)) throw notFound('ID');
  return id;
}

const fixedPaths: ReadonlySet<string> = new Set(Object.values(table).map(({ path }) => path));

/** If a route has exactly this path, routes with parameters don't count: in `/console/api-keys/identify`, `identify` isn't the ID of a key. */
export function consoleMethods(router: Router<State>, path: string): string[] {
  const matching = router.match(path, '').path;
  const fixed = matching.filter((layer) => layer.path === path);
  return (fixed.length > 0 ? fixed : matching).flatMap(({ methods }) => methods);
}

function inTurn<Result>(turns: ConsoleTurns, ctx: Context, ports: Ports, search: string | null, work: (turn: Turn) => Promise<Result>) {
  const { id, data } = getSession(ctx);
  return turns.run({ user: data.user.id, session: id, search, isGone: () => ctx.res.destroyed }, async (turn, hasWaited) => {
    // While the request waited, the session may have ended, or its user may have been moved.
    if (hasWaited) await renewSession(ctx, ports);
    return work(turn);
  });
}

function closed(): never {
  throw new Problem('unavailable', 'The connection was closed.', { retryAfter: 1 });
}

/** For metrics and logs, even if the request is refused. */
function setRoute(path: string): Middleware {
  return (ctx, next) => {
    ctx.state.route = path;
    return next();
  };
}

function readCode(body: unknown): string | undefined {
  const { code } = Object(body);
  return typeof code === 'string' ? code : undefined;
}

/** A session that still needs a code isn't enough. */
const requireSession: Middleware = async (ctx, next) => (isSignedIn(ctx) ? next() : refuse(ctx));

const requireDecodablePath: Middleware = (ctx, next) => {
  if (!isDecodable(ctx.url)) throw badEncoding();
  return next();
};

/** In bytes. Shorter responses fit into one packet without compression. */
const worthCompressing = 1_024;

function consoleAnswer(name: keyof ConsoleRoutes): Middleware {
  const { secret }: Route = table[name];
  return async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set(generationHeader, String(generation));
    setRequestId(ctx);
    await next();
    const view: unknown = ctx.body;
    if (typeof view !== 'object' || view === null || view instanceof Readable) return;
    ctx.type = 'application/json';
    const bytes = Buffer.from(jsonLine(view));
    if (['GET', 'HEAD'].includes(ctx.method) && isUnchanged(ctx, toEtag(bytes))) return;
    // Don't compress a secret, because the compressed length would reveal something about it.
    if (secret !== undefined || bytes.length < worthCompressing) ctx.body = bytes;
    else await setEncodedBody(ctx, bytes);
  };
}
