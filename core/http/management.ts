import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { problemMediaType } from '#contract/problems.ts';
import { isLoopback } from '#contract/server-address.ts';
import { jsonLine } from './middleware/problems.ts';
import { serveReference } from './reference.ts';

/**
 * Creates the application of the management listener, for the operator's machines only. It shows whether the process is running, whether it
 * can serve requests, and its metrics.
 */
export function createManagementApp(deps: {
  version: string;
  registry: Registry;
  isReady: () => Promise<boolean>;
  /** While the clock is ahead, calls aren't dialed or ended. They can still be placed and cancelled, so the core stays ready. */
  isClockAhead: () => boolean;
  log: Logger;
  host: string;
}): Koa {
  const openapi = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8');
  let reading: Promise<string> | undefined;
  /**
   * Concurrent requests share one reading, because each reading queries the database, and 50 concurrent readings slowed other requests
   * down.
   */
  const readMetrics = () => {
    reading ??= deps.registry.metrics().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const app = new Koa();
  app.silent = true;
  app.on('error', (err) => deps.log.error({ err }, 'management request failed'));
  app.use(async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    if (!isOwnName(ctx.get('Host'), deps.host)) {
      ctx.status = 421;
      ctx.body = jsonLine(misdirected);
      ctx.type = problemMediaType;
      return;
    }
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
        ctx.body = await readMetrics();
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

const misdirected = {
  title: 'Misdirected Request',
  status: 421,
  detail: "The listener doesn't accept the name in the Host header. Use its IP address, or set MANAGEMENT_HOST to this name.",
};

/**
 * Whether a request may use this name for the listener. A website could point its own host name at this machine, so that browsers let it
 * read the responses as its own (DNS rebinding). It can't do this with an IP address, or with a name that can't be registered. On a local
 * network, anyone can claim such a name, so these names are accepted only if that network can reach the listener anyway.
 */
export function isOwnName(header: string, bound: string): boolean {
  // Accept requests without the header: only old programs omit it, and browsers never do.
  if (header === '') return true;
  const name = URL.parse(`http://${header}`)?.hostname ?? '';
  if (name === bound.toLowerCase() || name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return !isLoopback(bound) && /^[^.]+$|\.(?:local|internal)$/.test(name);
}
