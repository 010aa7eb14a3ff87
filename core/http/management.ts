import { readFileSync } from 'node:fs';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { jsonLine } from './problems.ts';
import { serveReference } from './reference.ts';

/** For the operator's machines alone: is the process alive, can it serve, and how is it doing. */
export function createManagementApp(deps: {
  version: string;
  registry: Registry;
  isReady: () => Promise<boolean>;
  /** Too far for calls to be dialed or to end. They can be placed and cancelled, so that a core that is ready stays so. */
  isClockAhead: () => boolean;
  log: Logger;
}): Koa {
  const openapi = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8');
  const app = new Koa();
  app.silent = true;
  app.on('error', (err) => deps.log.error({ err }, 'management request failed'));
  app.use(async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.status = 405;
      ctx.set('Allow', 'GET, HEAD');
      return;
    }
    switch (ctx.path) {
      case '/healthz':
        ctx.body = jsonLine({ status: 'alive', version: deps.version });
        ctx.type = 'application/json';
        return;
      case '/readyz': {
        const ready = await deps.isReady();
        ctx.status = ready ? 200 : 503;
        ctx.body = jsonLine({ status: ready ? 'ready' : 'not ready', ...(deps.isClockAhead() && { clock: 'ahead' }) });
        ctx.type = 'application/json';
        return;
      }
      case '/metrics':
        ctx.body = await deps.registry.metrics();
        ctx.type = deps.registry.contentType;
        return;
      case '/openapi.json':
        ctx.body = openapi;
        ctx.type = 'application/json';
        return;
      default:
        serveReference(ctx);
    }
  });
  return app;
}
