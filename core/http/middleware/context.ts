import type Koa from 'koa';
import type { SessionView } from '#contract/console/session.ts';
import type { PathParameters, RouteBody, RouteQuery, RouteResponse } from '#contract/route.ts';
import type { ConsoleRoutes } from '#contract/routes.ts';
import type { Turn } from '../../domain/fair-queue.ts';
import type { Session, SignedInCaller, User, Viewer } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { type RefusalReason, refusalReasons } from '../../domain/sign-in/identity-provider.ts';

export type State = {
  /** The path in the table of routes. Metrics and logs use it instead of the actual path. */
  route?: string;
  requestId?: string;
  address?: string;
  started?: Session;
  isRepeated?: boolean;
  keyExpiresAt?: string;
};

export type Context = Koa.ParameterizedContext<State>;
export type Middleware = Koa.Middleware<State>;

/** Reports refused clients with their addresses, and requests that couldn't be served. Must be cheap, because refusals come in floods. */
export type ObserveRefusals = {
  /** @param fields to log @returns whether the request has its own line in the log */
  onNotServed(error: unknown, fields: { route: string | undefined }): boolean;
  onKeyRefused(address: string): void;
  onSignInRefused(email: string, address: string): void;
  /** Called when someone entered a user's correct password, but no valid code. */
  onCodeRefused(user: User, address: string): void;
  onSignInThrottled(address: string): void;
  onIdentityRefused(reason: RefusalReason, who: User | string, address: string): void;
  /** @param peer the sender of `X-Forwarded-For`, which isn't a trusted proxy */
  onForwardingIgnored(peer: string): void;
};

export type HttpDeps = {
  ports: Ports;
  getClientAddress(ctx: Context): string;
  isSecure(ctx: Context): boolean;
  findIgnoredProxy(ctx: Context): string | undefined;
  refusals: ObserveRefusals;
  /** Aborted as soon as the process drains. */
  draining: AbortSignal;
  /** The core's release. Only signed-in users see it. */
  version: string;
  dialer: NonNullable<SessionView['dialer']>;
  hasReference: boolean;
  publicUrl: string;
  /** Newest first. They sign the cookies. */
  sessionSecrets: readonly string[];
  onIdentityProviderResult(result: IdentityProviderResult): void;
  /** Counts the codes that were checked after a correct password. */
  onCode(result: CodeResult): void;
};

export type CodeResult = 'accepted' | 'refused' | 'throttled' | 'undecided';

export const identityProviderResults = [
  'accepted',
  ...refusalReasons,
  'refused',
  'unreachable',
  'cancelled',
  'expired',
  'throttled',
] as const;
type IdentityProviderResult = (typeof identityProviderResults)[number];

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
