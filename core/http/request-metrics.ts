import type { Logger } from 'pino';
import type { OuterStep } from './context.ts';
import { requestIdOf } from './problems.ts';

/** @param seconds from the request's arrival until its answer was ready */
export type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/** Counts each request, and logs it at `debug`: an allow-list of fields, none of which the caller writes freely. */
export function requestMetrics(observe: ObserveRequest, log: Logger): OuterStep {
  const isLogged = log.isLevelEnabled('debug');
  return async (exchange, next) => {
    const { req, res, state } = exchange;
    const started = performance.now();
    await next();
    const { route = 'none' } = state;
    const method = req.method !== undefined && knownMethods.has(req.method) ? req.method : 'other';
    const status = res.statusCode;
    const milliseconds = performance.now() - started;
    observe(route, method, status, milliseconds / 1_000);
    if (!isLogged) return;
    log.debug({ requestId: requestIdOf(exchange), method, route, status, milliseconds: Math.round(milliseconds * 10) / 10 }, 'request');
  };
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** While the process drains, asks clients to open their next connection elsewhere. */
export function closeWhileDraining(isDraining: () => boolean): OuterStep {
  return ({ res }, next) => {
    if (isDraining()) res.setHeader('Connection', 'close');
    return next();
  };
}
