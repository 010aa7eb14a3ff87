import type { Logger } from 'pino';
import type { Middleware } from './context.ts';
import { requestNames } from './request-id.ts';

/** Observes a request. @param seconds from the request's arrival until its response was ready */
export type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/**
 * Counts each request, and logs the fields on an allow-list at `debug`. Of these, only the ID and the trace come from the client, and they
 * can contain only certain characters.
 */
export function requestMetrics(observe: ObserveRequest, log: Logger): Middleware {
  const isLogged = log.isLevelEnabled('debug');
  return async (ctx, next) => {
    const started = performance.now();
    await next();
    const { route = 'none' } = ctx.state;
    const method = knownMethods.has(ctx.method) ? ctx.method : 'other';
    const status = ctx.res.statusCode;
    const milliseconds = performance.now() - started;
    observe(route, method, status, milliseconds / 1_000);
    if (!isLogged) return;
    log.debug({ ...requestNames(ctx), method, route, status, milliseconds: Math.round(milliseconds * 10) / 10 }, 'request');
  };
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** While the process drains, closes connections, so that clients open their next one elsewhere. */
export function closeWhileDraining(isDraining: () => boolean): Middleware {
  return (ctx, next) => {
    if (isDraining()) ctx.res.setHeader('Connection', 'close');
    return next();
  };
}
