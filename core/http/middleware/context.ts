import type Koa from 'koa';
import type { SessionView } from '#contract/console.ts';
import { isIdentifier } from '#contract/text/text.ts';
import type { Turn } from '../../domain/calls/call-list.ts';
import type { Ports } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';

export type State = {
  /** The path of the route that answers, as in the table of routes. Metrics and logs take this: they never see the path itself. */
  route?: string;
  /** Names the request in the log, and in every answer but the common 401. */
  requestId?: string;
  /** The share of the database's time that a list or search of the console has. */
  turn?: Turn;
  /** Of an export: has some work done in a turn of its own. */
  takeTurn?: (work: (turn: Turn) => Promise<void>) => Promise<void>;
  /** RFC 3339: the end of the key that was accepted, if that is soon. */
  keyExpiresAt?: string;
};

export type Context = Koa.ParameterizedContext<State>;
export type Middleware = Koa.Middleware<State>;

/** Hears who is refused, and from where, and what is not served. It must cost nothing: these come in floods. */
export type ObserveRefusals = {
  /** @param fields go to the log */
  onNotServed(error: unknown, fields: { route: string | undefined }): void;
  onKeyRefused(address: string): void;
  onSignInRefused(email: string, address: string): void;
  onSignInThrottled(address: string): void;
  /** @param peer sent `X-Forwarded-For`, and is not a trusted proxy */
  onForwardingIgnored(peer: string): void;
};

/** What all routes share. */
export type HttpDeps = {
  ports: Ports;
  /** Where a request comes from: see `client-address.ts`. */
  addressOf(ctx: Context): string;
  isSecure(ctx: Context): boolean;
  refusals: ObserveRefusals;
  isDraining(): boolean;
  /** What places the calls. */
  dialer: NonNullable<SessionView['dialer']>;
};

/** A list's or search's share of the database's time. */
export function turnOf(ctx: Context): Turn {
  if (!ctx.state.turn) throw new Error('This route has no turn.');
  return ctx.state.turn;
}

/** A parameter of the route's path, decoded; empty where the path has none of that name. */
export function parameter(ctx: Context, name: string): string {
  const parameters: Readonly<Record<string, string>> = ctx['params'] ?? {};
  return parameters[name] ?? '';
}

/** The `:id` of the path, or its other identifier. @throws Problem `not-found` when it cannot be an identifier */
export function idOf(ctx: Context, name = 'id'): string {
  const id = parameter(ctx, name);
  if (!isIdentifier(id)) throw new Problem('not-found', "It doesn't exist, or you don't have access to it.");
  return id;
}
