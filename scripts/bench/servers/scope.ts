// Runs a server that does part of the core's work for a placed call. SCOPE says which part, and each scope includes the one before it.
// The differences between their times show what each part costs.
import type { ServerResponse } from 'node:http';
import Koa from 'koa';
import { validatePlaceCall } from '#contract/calls/calls.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { toDigest } from '../../../core/domain/api-keys.ts';
import { dataOrThrow, parseInTurn, readBytes, readJsonBytes } from '../../../core/http/middleware/body.ts';
import { createApp } from '../../../core/server/app.ts';
import { createMetrics } from '../../../core/server/metrics.ts';
import { recordRefusals } from '../../../core/server/recorded-refusals.ts';
import { createLog } from '../../../core/server/start/log.ts';
import { openDirect } from '../../support/direct-database.ts';
import { listen } from './listen.ts';

const id = '01a2013d-2a7a-73a7-8258-39adb105461e';
const text = `${JSON.stringify({ requestId: id, contactId: id, campaignId: id, state: 'queued', placedAt: '2026-01-01T00:00:00.000Z' })}\n`;
const headers = ['Cache-Control', 'no-store', 'Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(text.length)];

/** Writes the same response each time, in the same way as the core responds to placed calls. */
function answer(res: ServerResponse): void {
  res.writeHead(202, headers);
  res.end(text);
}

/** Builds an app that reads and checks as much of a request as the scope includes. */
function withKoa(scope: string): ReturnType<Koa['callback']> {
  const depth = ['koa', 'body', 'key', 'schema'].indexOf(scope);
  const app = new Koa();
  app.use(async (ctx) => {
    const key = ctx.get('X-API-Key');
    if (depth >= 2 && (!isKeyValue(key) || toDigest(key) === '')) throw new Error("The bench didn't send a valid key.");
    if (depth === 3) dataOrThrow(validatePlaceCall(await parseInTurn(await readJsonBytes(ctx, limits.bodyBytes), id)));
    else if (depth >= 1) JSON.parse((await readBytes(ctx.req, limits.bodyBytes)).toString());
    ctx.respond = false;
    answer(ctx.res);
  });
  return app.callback();
}

/** Builds the whole core, but with a fake database that immediately accepts everything. */
async function withoutDatabase(): Promise<ReturnType<Koa['callback']>> {
  const { ports } = await openDirect(process.env['DATABASE_URL'] ?? '');
  const calls: typeof ports.stores.calls = {
    ...ports.stores.calls,
    findActive: async () => ({ expiresAt: null, limits: null }),
    place: async ({ at }, { contactId }) => ({ kind: 'placed', contactId, placedAt: at, heldUntil: null, placedToday: null }),
  };
  const [log, metrics] = [createLog('info'), createMetrics('bench')];
  const app = createApp({
    ...{ ports: { ...ports, stores: { ...ports.stores, calls } }, log, metrics, refusals: recordRefusals(ports, log) },
    ...{ version: '0.0.0', draining: new AbortController().signal, sessionSecrets: ['a secret for the bench of at least 32 characters'] },
    ...{ config: { trustedProxies: [], dialerSecrets: [], dialer: { kind: 'off' }, publicUrl: '' }, webConsole: undefined },
  });
  return app.callback();
}

const scope = process.env['SCOPE'] ?? '';
if (scope === 'http') listen((_req, res) => answer(res));
else listen(scope === 'core' ? await withoutDatabase() : withKoa(scope));
