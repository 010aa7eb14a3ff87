import type { PathParameters, RouteBody, RouteQuery, RouteResponse } from '#contract/route.ts';
import type { ConsoleRoutes } from '#contract/routes.ts';
import type { Turn } from '../../domain/calls/call-list.ts';
import type { SignedInCaller, Viewer } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';

export type SessionRoute = {
  [Name in keyof ConsoleRoutes]: ConsoleRoutes[Name]['by'] extends 'session' ? Name : never;
}[keyof ConsoleRoutes];

/** Runs work in the request's turn to use the database or, for a part of an export, in a turn of its own. */
export type TakeTurn = <Result>(work: (turn: Turn) => Promise<Result>) => Promise<Result>;

/** A signed-in user's request, validated by the schemas of its route. */
export type Request<Name extends SessionRoute> = {
  ctx: Context;
  deps: HttpDeps;
  ports: Ports;
  takeTurn: TakeTurn;
  viewer: Viewer;
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
