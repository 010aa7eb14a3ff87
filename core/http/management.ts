import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { isLoopback } from '#contract/server-address.ts';
import { Problem } from '../domain/problem.ts';
import type { State } from './middleware/context.ts';
import {
  everyRequest,
  hasReadablePath,
  jsonLine,
  methodNotAllowed,
  setRequestId,
  toBody,
  writeProblem,
} from './middleware/every-request.ts';

/** The management listener, which only the operator's machines should reach. */
export function createManagementApp(deps: {
  version: string;
  registry: Registry;
  isReady: () => Promise<boolean>;
  /** While the clock is ahead, calls aren't dialed or ended. They can still be placed and cancelled, so the core stays ready. */
  isClockAhead: () => boolean;
  log: Logger;
  host: string;
  /** More names by which it accepts requests. */
  names?: readonly string[];
}): Koa {
  const openapi = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8');
  let reading: Promise<string> | undefined;
  /** Concurrent requests share one reading, because it queries the database, and 50 concurrent ones slowed other requests down. */
  const readMetrics = () => {
    reading ??= deps.registry.metrics().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const app = new Koa<State>();
  app.silent = true;
  const onNotServed = (err: unknown, request: object = {}) => {
    // If the core isn't ready, the log already says why.
    if (!(err instanceof Problem)) deps.log.error({ err, ...request }, 'management request failed');
    return true;
  };
  app.on('error', (err) => onNotServed(err));
  app.use(everyRequest({ onNotServed }));
  app.use(async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    setRequestId(ctx);
    if (!isOwnName(ctx.get('Host'), deps)) return writeProblem(ctx, misdirected);
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      throw methodNotAllowed(['GET', 'HEAD']);
    }
    if (!hasReadablePath(ctx)) throw new Problem('malformed-request', "The URL can't be parsed.");
    switch (ctx.path) {
      case '/healthz':
        ctx.body = jsonLine({ status: 'alive', version: deps.version });
        ctx.type = 'application/json';
        return;
      case '/readyz': {
        if (!(await deps.isReady())) throw new Problem('unavailable', notReady, { retryAfter: 2 });
        ctx.body = jsonLine({ status: 'ready', ...(deps.isClockAhead() && { clock: 'ahead' }) });
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
        throw new Problem('not-found', 'Nothing exists at this path.');
    }
  });
  return app;
}

const notReady = "The core is stopping, or a write wouldn't be durable now: see its log.";

const misdirected = {
  ...toBody(
    'malformed-request',
    "The listener doesn't accept the name in the Host header. Use its IP address, or add the name to MANAGEMENT_NAMES.",
  ),
  status: 421,
};

/**
 * A website could point its own host name at this machine, so that browsers let it read the responses as its own (DNS rebinding). It can't do
 * this with an IP address, or with a name that can't be registered. On a local network, anyone can claim such a name, so these names are
 * accepted only if that network can reach the listener anyway.
 */
function isOwnName(header: string, { host: bound, names = [] }: { host: string; names?: readonly string[] }): boolean {
  // Accept requests without the header: only old programs omit it, and browsers never do.
  if (header === '') return true;
  const name = URL.parse(`http://${header}`)?.hostname.replace(/\.$/, '') ?? '';
  if ([bound.toLowerCase(), 'localhost', ...names].includes(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  if (names.some((pattern) => pattern.startsWith('*.') && name.endsWith(pattern.slice(1)))) return true;
  return !isLoopback(bound) && /^[^.]+$|\.(?:local|internal|lan|svc|consul|home\.arpa)$/.test(name);
}
