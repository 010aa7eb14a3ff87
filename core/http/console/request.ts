import { type ConsoleRoutes, consoleRoutes } from '#contract/routes/console.ts';
import {
  type PathParameters,
  parameterNames,
  type Route,
  type RouteBody,
  type RouteQuery,
  type RouteResponse,
} from '#contract/routes/route.ts';
import type { SignedInCaller, Viewer } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { readQuery } from '../middleware/body.ts';
import { type Context, type HttpDeps, readId } from '../middleware/context.ts';
import { getActor, getViewer, readBodyInSession } from '../middleware/session.ts';

/** The routes that need a session. */
export type SessionRoute = {
  [Name in keyof ConsoleRoutes]: ConsoleRoutes[Name]['by'] extends 'session' ? Name : never;
}[keyof ConsoleRoutes];

/** A signed-in user's request, validated by the schemas of its route. */
export type Request<Name extends SessionRoute> = {
  ctx: Context;
  deps: HttpDeps;
  ports: Ports;
  viewer: Viewer;
  /** The viewer, and the actor that's recorded with their changes. */
  caller: SignedInCaller;
  params: PathParameters<ConsoleRoutes[Name]>;
  query: RouteQuery<ConsoleRoutes[Name]>;
  body: RouteBody<ConsoleRoutes[Name]>;
};

type Answer<Name extends SessionRoute> = RouteResponse<ConsoleRoutes[Name]>;
/** Handles a route. The router sends the returned value with the route's status. */
export type Handler<Name extends SessionRoute> = (
  request: Request<Name>,
) => Promise<Answer<Name>> | (Answer<Name> extends undefined ? Promise<void> : never);

/**
 * Reads and validates a request. @throws Problem `malformed-request`, `unsupported-media-type`, `too-large`, `invalid`, `unauthorized` or
 * `not-found`
 */
export async function readRequest<Name extends SessionRoute>(ctx: Context, deps: HttpDeps, name: Name): Promise<Request<Name>> {
  const { path, query, body }: Route = consoleRoutes[name];
  const read = {
    query: query && readQuery(ctx, query),
    body: body && (await readBodyInSession(ctx, deps, body)),
    params: Object.fromEntries(parameterNames(path).map((parameter) => [parameter, readId(ctx, parameter)])),
  };
  // Read the viewer only now, because the session may have changed while the body was arriving.
  const viewer = getViewer(ctx);
  return { ...read, ctx, deps, ports: deps.ports, viewer, caller: { viewer, actor: getActor(deps, ctx) } } as Request<Name>;
}
