import type Koa from 'koa';
import type { SessionView } from '#contract/console.ts';
import { isIdentifier } from '#contract/text/text.ts';
import type { Turn } from '../../domain/calls/call-list.ts';
import type { Ports } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';

export type State = {
  /** The path of the matching route, as in the table of routes. Metrics and logs use it instead of the actual path. */
  route?: string;
  /** Identifies the request in the log, and in every response except the common 401. */
  requestId?: string;
  /** A list's or search's share of the database's time. */
  turn?: Turn;
  /** In an export, runs some work in its own turn. */
  takeTurn?: (work: (turn: Turn) => Promise<void>) => Promise<void>;
  /** The time (RFC 3339) when the accepted key expires, if that's soon. */
  keyExpiresAt?: string;
};

export type Context = Koa.ParameterizedContext<State>;
export type Middleware = Koa.Middleware<State>;

/** Reports who is refused, from which address, and what can't be served. Must be cheap, because these come in floods. */
export type ObserveRefusals = {
  /** @param fields are logged */
  onNotServed(error: unknown, fields: { route: string | undefined }): void;
  onKeyRefused(address: string): void;
  onSignInRefused(email: string, address: string): void;
  onSignInThrottled(address: string): void;
  /** @param peer sent `X-Forwarded-For`, but isn't a trusted proxy */
  onForwardingIgnored(peer: string): void;
};

/** The dependencies that all routes share. */
export type HttpDeps = {
  ports: Ports;
  /** Finds out where a request comes from: see `client-address.ts`. */
  addressOf(ctx: Context): string;
  isSecure(ctx: Context): boolean;
  refusals: ObserveRefusals;
  isDraining(): boolean;
  /** The kind of dialer. */
  dialer: NonNullable<SessionView['dialer']>;
};

/** A list's or search's share of the database's time. */
export function turnOf(ctx: Context): Turn {
  if (!ctx.state.turn) throw new Error('This route has no turn.');
  return ctx.state.turn;
}

/** A decoded parameter of the route's path; empty if the path doesn't have it. */
export function parameter(ctx: Context, name: string): string {
  const parameters: Readonly<Record<string, string>> = ctx['params'] ?? {};
  return parameters[name] ?? '';
}

/** The `:id` of the path, or another ID in it. @throws Problem `not-found` if it can't be an ID */
export function idOf(ctx: Context, name = 'id'): string {
  const id = parameter(ctx, name);
  if (!isIdentifier(id)) throw new Problem('not-found', "It doesn't exist, or you don't have access to it.");
  return id;
}
