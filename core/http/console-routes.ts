import { Readable } from 'node:stream';
import Router from '@koa/router';
import { generation, generationHeader } from '#contract/generation.ts';
import { paths } from '#contract/paths.ts';
import type { Turn } from '../domain/calls/call-list.ts';
import { Problem } from '../domain/problem.ts';
import * as activity from './console/activity.ts';
import * as apiKeys from './console/api-keys.ts';
import * as calls from './console/calls.ts';
import { ConsoleTurns, turnLimits } from './console/console-turns.ts';
import * as directory from './console/directory.ts';
import * as sessions from './console/sessions.ts';
import * as tenancies from './console/tenancies.ts';
import * as users from './console/users.ts';
import type { Context, HttpDeps, Middleware, State } from './middleware/context.ts';
import { csrf } from './middleware/csrf.ts';
import { jsonLine, refuse } from './middleware/problems.ts';
import { setRequestId } from './middleware/request-id.ts';
import { badEncoding, isDecodable } from './middleware/request-path.ts';
import { isSignedIn, sessionOf, takeTenancy } from './middleware/session.ts';

type Handler = (ctx: Context, deps: HttpDeps) => Promise<void>;

/**
 * What a signed-in user can do. To add a route: its path in `#contract/paths.ts`, its schemas in `#contract/console.ts`, its description in
 * `#contract/openapi-routes.ts`, its handler here.
 */
const routes: readonly [method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, handler: Handler][] = [
  ['GET', paths.session, sessions.show],
  ['DELETE', paths.session, sessions.signOut],
  ['PUT', paths.sessionTenancy, sessions.selectTenancy],
  ['POST', paths.password, sessions.changePassword],
  ['GET', paths.tenancies, tenancies.search],
  ['GET', paths.apiKeys, apiKeys.list],
  ['POST', paths.apiKeys, apiKeys.create],
  ['POST', paths.identifyApiKey, apiKeys.identify],
  ['POST', paths.apiKeyRevocations, apiKeys.revokeAll],
  ['GET', paths.apiKey, apiKeys.show],
  ['GET', paths.apiKeyRevocation, apiKeys.previewRevocation],
  ['DELETE', paths.apiKey, apiKeys.revoke],
  ['GET', paths.accounts, tenancies.listAccounts],
  ['GET', paths.campaigns, tenancies.listCampaigns],
  ['POST', paths.setup, directory.setUp],
  ['GET', paths.directoryPartners, directory.listPartners],
  ['POST', paths.directoryPartners, directory.createPartner],
  ['PATCH', paths.directoryPartner, directory.renamePartner],
  ['GET', paths.directoryAccounts, directory.listAccounts],
  ['POST', paths.directoryAccounts, directory.createAccount],
  ['PATCH', paths.directoryAccount, directory.renameAccount],
  ['GET', paths.directoryCampaigns, directory.listCampaigns],
  ['POST', paths.directoryCampaigns, directory.createCampaign],
  ['PATCH', paths.directoryCampaign, directory.renameCampaign],
  ['GET', paths.calls, calls.list],
  ['GET', paths.allCalls, calls.list],
  ['GET', paths.callsCsv, calls.exportCsv],
  ['GET', paths.allCallsCsv, calls.exportCsv],
  ['GET', paths.callsSummary, calls.summarize],
  ['GET', paths.allCallsSummary, calls.summarizeAll],
  ['GET', paths.call, calls.show],
  ['GET', paths.users, users.list],
  ['POST', paths.users, users.create],
  ['GET', paths.userDeletion, users.previewDeletion],
  ['PATCH', paths.user, users.change],
  ['DELETE', paths.user, users.deleteUser],
  ['POST', paths.userPassword, users.resetPassword],
  ['GET', paths.activity, activity.list],
  ['GET', paths.activityFacets, activity.listFacets],
  ['GET', paths.activityCsv, activity.exportCsv],
  ['POST', paths.exports, activity.recordExport],
];

/** Each part of an export takes a turn, and not the export: a client may take its time. */
const takingTurns: readonly Handler[] = [calls.exportCsv, activity.exportCsv];

/** All that a user who signed in with a one-time password can do until they have chosen another. */
const allowedWithOneTimePassword: readonly Handler[] = [sessions.show, sessions.signOut, sessions.changePassword];

/** Signing out is quick and must not wait. Passwords have a queue of their own. */
const outOfTurn: readonly string[] = [paths.session, paths.password];

/** The session routes. The key header is not read here. */
export function consoleRoutes(deps: HttpDeps): Router<State> {
  const router = new Router<State>({ sensitive: true, strict: true });
  const refuseCrossSite = csrf(deps);
  router.post(paths.session, matched(paths.session), refuseCrossSite, consoleAnswer, (ctx) => sessions.signIn(ctx, deps));
  const lists = new ConsoleTurns();
  // A user's changes wait for each other only: hundreds at once would fill the database's queue, and the others and their sign-ins get 503.
  const changes = new ConsoleTurns({ ...turnLimits, atOnce: Number.POSITIVE_INFINITY });
  for (const [method, path, handler] of routes) {
    const isExport = takingTurns.includes(handler);
    const turns = isExport || outOfTurn.includes(path) ? null : method === 'GET' ? lists : changes;
    const handle = async (ctx: Context) => {
      await takeTenancy(ctx, deps.ports);
      if (isExport) ctx.state.takeTurn = (work) => inTurn(lists, ctx, null, work);
      await handler(ctx, deps);
    };
    const run: Middleware = async (ctx) => {
      if (sessionOf(ctx).data.passwordChangeDue && !allowedWithOneTimePassword.includes(handler)) throw passwordChangeDue();
      await (turns ? inTurn(turns, ctx, searchOf(ctx), () => handle(ctx)) : handle(ctx));
    };
    router.register(path, [method], [matched(path), requireSession, requireDecodablePath, refuseCrossSite, consoleAnswer, run]);
  }
  return router;
}

function inTurn(turns: ConsoleTurns, ctx: Context, search: string | null, work: (turn: Turn) => Promise<void>): Promise<void> {
  const { id, data } = sessionOf(ctx);
  return turns.run({ user: data.user.id, session: id, search, isGone: () => ctx.res.destroyed }, (turn) => {
    ctx.state.turn = turn;
    return work(turn);
  });
}

function searchOf(ctx: Context): string | null {
  return ctx.query['search'] ? ctx.path : null;
}

/** Names the route for metrics and logs, refusals included. */
function matched(path: string): Middleware {
  return (ctx, next) => {
    ctx.state.route = path;
    return next();
  };
}

const requireSession: Middleware = async (ctx, next) => (isSignedIn(ctx) ? next() : refuse(ctx));

function passwordChangeDue(): Problem {
  return new Problem('forbidden', 'You signed in with a one-time password. Choose a password of your own first.');
}

const requireDecodablePath: Middleware = (ctx, next) => {
  if (!isDecodable(ctx.url)) throw badEncoding();
  return next();
};

const consoleAnswer: Middleware = async (ctx, next) => {
  ctx.set('Cache-Control', 'no-store');
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set(generationHeader, String(generation));
  setRequestId(ctx);
  await next();
  const view: unknown = ctx.body;
  if (typeof view !== 'object' || view === null || view instanceof Readable) return;
  ctx.body = jsonLine(view);
  ctx.type = 'application/json';
};
