import type Koa from 'koa';
import { isIdentifier } from '#contract/text.ts';
import type { Actor, Credentials, Digest, Session, Viewer } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';

/** What the steps of one request tell each other. */
export type State = {
  /** The path of the route that answers, as in the routes table: for metrics and logs, which never see the path itself. */
  route?: string;
  /** The identifier of the request in the log, once something has asked for it. */
  requestId?: string;
  /** The session that the request's cookie opens. */
  session?: { id: Digest; data: Session };
  /** Whom the request is signing in. */
  signingIn?: Credentials;
};

export type Context = Koa.ParameterizedContext<State>;

/** What is left of a context without Koa. Setting `respond` to false keeps Koa from answering. */
export type Exchange = Pick<Context, 'req' | 'res' | 'state'> & { respond?: boolean | undefined };
/** A step around all others, with Koa or without. */
export type OuterStep = (exchange: Exchange, next: () => Promise<unknown>) => Promise<unknown>;

export type Step = (ctx: Context, next: () => Promise<unknown>) => Promise<unknown>;

/** What all routes share. */
export type HttpDeps = {
  ports: Ports;
  /** Where a request comes from: see `trust.ts`. */
  addressOf(ctx: Context): string;
  isSecure(ctx: Context): boolean;
  /** With which a provider may have signed outcomes, the newest first. Empty where there is no such provider. */
  dialerSecrets: readonly string[];
};

export function sessionOf(ctx: Context): { id: Digest; data: Session } {
  if (!ctx.state.session) throw new Problem('unauthorized', unauthorizedDetail);
  return ctx.state.session;
}

export function viewerOf(ctx: Context): Viewer {
  const { data } = sessionOf(ctx);
  return { ...data.user, tenancy: data.tenancy };
}

/** A parameter of the route's path, decoded; empty where the path has none of that name. */
export function parameter(ctx: Context, name: string): string {
  const parameters: Readonly<Record<string, string>> = ctx['params'] ?? {};
  return parameters[name] ?? '';
}

/** The `:id` of the path. One that cannot be an identifier names nothing. */
export function idOf(ctx: Context): string {
  const id = parameter(ctx, 'id');
  if (!isIdentifier(id)) throw new Problem('not-found', 'There is no such thing in your scope.');
  return id;
}

export function actorOf(deps: HttpDeps, ctx: Context): Actor {
  const { id, name } = viewerOf(ctx);
  return { who: { id, name }, address: deps.addressOf(ctx) };
}
