import Router from '@koa/router';
import type Koa from 'koa';
import { generation, generationHeader } from '#contract/generation.ts';
import { paths } from '#contract/paths.ts';
import { Problem } from '../domain/problem.ts';
import * as apiKeys from './console/api-keys.ts';
import * as calls from './console/calls.ts';
import * as people from './console/people.ts';
import * as consoleSessions from './console/sessions.ts';
import * as tenancies from './console/tenancies.ts';
import type { Context, HttpDeps, State, Step } from './context.ts';
import { keyedMethods } from './on-demand.ts';
import { takeOutcome } from './outcomes.ts';
import { badEncoding, isDecodable } from './percent-encoding.ts';
import { refuse } from './problems.ts';
import { sameSite } from './same-site.ts';
import { sessions } from './sessions.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
type ConsoleHandler = (ctx: Context, deps: HttpDeps) => Promise<void>;

/**
 * The routes that Koa serves, in groups that never meet: what a provider's signature opens, and what a session opens. A request
 * that is for none is refused like any other that is not let in, so that the paths of the service cannot be told from those that it has
 * not.
 */
export function useRoutes(app: Koa<State>, deps: HttpDeps, secrets: readonly string[]): void {
  const dialer = dialerRoutes(deps);
  const inConsole = consoleRoutes(deps);
  app.use(readable);
  app
    .use(dialer.routes())
    .use(sessions(app, deps, secrets))
    .use(inConsole.routes())
    .use(nowhere([dialer, inConsole]));
}

/** A provider's signature opens this one. */
function dialerRoutes(deps: HttpDeps): Router<State> {
  const router = new Router<State>(exact);
  add(router, 'POST', paths.outcomes, takeOutcome(deps));
  return router;
}

/** A session opens these. The key header is not looked at. */
function consoleRoutes(deps: HttpDeps): Router<State> {
  const router = new Router<State>(exact);
  const ownSite = sameSite(deps);
  const inSession = (method: Method, path: string, handler: ConsoleHandler) =>
    add(router, method, path, signedIn, decodable, ownSite, consoleHeaders, (ctx) => handler(ctx, deps));

  add(router, 'POST', paths.session, ownSite, consoleHeaders, (ctx) => consoleSessions.signIn(ctx, deps));
  inSession('GET', paths.session, consoleSessions.showSession);
  inSession('DELETE', paths.session, consoleSessions.endSession);
  inSession('PUT', paths.sessionTenancy, consoleSessions.setTenancy);
  inSession('POST', paths.password, consoleSessions.setPassword);
  inSession('GET', paths.tenancies, tenancies.search);
  inSession('GET', paths.apiKeys, apiKeys.list);
  inSession('POST', paths.apiKeys, apiKeys.create);
  inSession('POST', paths.identifyApiKey, apiKeys.identify);
  inSession('GET', paths.apiKeyRevocation, apiKeys.showRevocation);
  inSession('DELETE', paths.apiKey, apiKeys.revoke);
  inSession('GET', paths.accounts, tenancies.accounts);
  inSession('GET', paths.campaigns, tenancies.campaigns);
  inSession('GET', paths.calls, calls.list);
  inSession('GET', paths.users, people.list);
  inSession('POST', paths.users, people.add);
  inSession('GET', paths.userDeletion, people.showDeletion);
  inSession('DELETE', paths.user, people.remove);
  inSession('GET', paths.activity, calls.activity);
  return router;
}

const exact = { sensitive: true, strict: true };

function add(router: Router<State>, method: Method, path: string, ...steps: Step[]): void {
  const named: Step = (ctx, next) => {
    ctx.state.route = path;
    return next();
  };
  router.register(path, [method], [named, ...steps]);
}

/** To someone signed in, a wrong turn is told as what it is. */
function nowhere(routers: Router<State>[]): Step {
  return async (ctx) => {
    if (!ctx.state.session) return refuse(ctx);
    if (!isDecodable(ctx.url)) throw badEncoding();
    const routed = routers.flatMap((router) => router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods));
    const allow = [...new Set([...keyedMethods(ctx.path), ...routed])].join(', ');
    if (allow !== '') throw new Problem('method-not-allowed', `Use ${allow}.`, { allow });
    throw new Problem('not-found', 'There is nothing here.');
  };
}

const signedIn: Step = async (ctx, next) => (ctx.state.session ? next() : refuse(ctx));

/** Node throws at an address such as `http://[::1`, whoever asks for the path. */
const readable: Step = async (ctx, next) => {
  try {
    ctx.path.toString();
  } catch {
    return refuse(ctx);
  }
  return next();
};

const decodable: Step = async (ctx, next) => {
  if (!isDecodable(ctx.url)) throw badEncoding();
  return next();
};

const consoleHeaders: Step = async (ctx, next) => {
  ctx.set('Cache-Control', 'no-store');
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set(generationHeader, String(generation));
  return next();
};
