// Runs a server that does part of the core's work for a placed call. SCOPE says which part, and each scope includes the one before it.
// The differences between their times show what each part costs.
import type { IncomingMessage, ServerResponse } from 'node:http';
import Koa from 'koa';
import { validatePlaceCall } from '#contract/calls/calls.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { toDigest } from '../../../core/domain/api-keys.ts';
import { parseInTurn, readBytes, readJsonBytes } from '../../../core/http/middleware/body.ts';
import { createApp } from '../../../core/server/app.ts';
import { createMetrics } from '../../../core/server/metrics.ts';
import { createLog } from '../../../core/server/start/log.ts';
import { openDirect } from '../../support/ports.ts';
import { listen } from './listen.ts';

const id = '01a2013d-2a7a-73a7-8258-39adb105461e';
const text = `${JSON.stringify({ requestId: id, contactId: id, campaignId: id, state: 'queued', placedAt: '2026-01-01T00:00:00.000Z' })}\n`;
const headers = ['Cache-Control', 'no-store', 'Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(text.length)];

/** Writes the same response each time, in the same way as the core responds to placed calls. */
function answer(res: ServerResponse): void {
  res.writeHead(202, headers);
  res.end(text);
}

/** Reads and checks part of a request. */
const koaScopes: Record<string, (ctx: Koa.Context) => Promise<unknown>> = {
  koa: async () => undefined,
  body: ({ req }) => readJson(req),
  async key({ req }) {
    checkKey(req);
    return readJson(req);
  },
  async schema(ctx) {
    checkKey(ctx.req);
    return parseInTurn(await readJsonBytes(ctx, limits.bodyBytes), validatePlaceCall, id);
  },
};

async function readJson(req: IncomingMessage): Promise<unknown> {
  return JSON.parse((await readBytes(req, limits.bodyBytes)).toString());
}

function checkKey({ headers }: IncomingMessage): void {
  const key = String(headers['x-api-key']);
  if (!isKeyValue(key) || toDigest(key) === '') throw new Error("The bench didn't send a valid key.");
}

/** Builds the whole core, but with a fake database that immediately accepts everything. */
async function withoutDatabase(): Promise<ReturnType<Koa['callback']>> {
  const { ports } = await openDirect(process.env['DATABASE_URL'] ?? '');
  const calls: typeof ports.stores.calls = {
    ...ports.stores.calls,
    findActive: async () => ({ expiresAt: null, limits: null }),
    place: async () => ({ kind: 'placed', heldUntil: null, placedToday: null }),
  };
  const app = createApp({
    ...{
      ports: { ...ports, stores: { ...ports.stores, calls } },
      log: createLog('info'),
      observeRequest: createMetrics('bench').onRequest,
    },
    ...{ isDraining: () => false, sessionSecrets: ['a secret for the bench of at least 32 characters'] },
    ...{ trustedProxies: [], dialerSecrets: [], dialer: 'off', webConsole: undefined },
    ...{ publicUrl: '', onProviderSignIn: () => undefined, onCode: () => undefined },
    refusals: {
      onNotServed: () => true,
      onKeyRefused: () => undefined,
      onSignInRefused: () => undefined,
      onCodeRefused: () => undefined,
      onSignInThrottled: () => undefined,
      onProviderRefused: () => undefined,
      onForwardingIgnored: () => undefined,
    },
  });
  return app.callback();
}

const scope = process.env['SCOPE'] ?? '';
const check = koaScopes[scope];
if (scope === 'http') listen((_req, res) => answer(res));
else if (scope === 'core') listen(await withoutDatabase());
else if (check) {
  const app = new Koa();
  app.use(async (ctx) => {
    await check(ctx);
    ctx.respond = false;
    answer(ctx.res);
  });
  listen(app.callback());
} else throw new Error(`The scope ${scope} doesn't exist.`);
