import {
  type ApiKeysView,
  apiKeysQuerySchema,
  type CreatedApiKeyView,
  chartQuerySchema,
  createApiKeySchema,
  type IdentifiedApiKeyView,
  identifyApiKeySchema,
  type RevocationView,
  type RevokedApiKeysView,
  revokeApiKeysSchema,
  revokeQuerySchema,
} from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import * as domain from '../../domain/api-keys.ts';
import { readQuery } from '../middleware/body.ts';
import { type Context, type HttpDeps, idOf } from '../middleware/context.ts';
import { actorOf, readBodyInSession, viewerOf } from '../middleware/session.ts';
import { apiKeyDetailsView, apiKeyView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { olderThan = null } = readQuery(ctx, apiKeysQuerySchema);
  const { apiKeys, total } = await domain.listApiKeys(ports, viewer, olderThan);
  const now = ports.clock.now();
  const view: ApiKeysView = { apiKeys: apiKeys.map((key) => apiKeyView(key, viewer, now)), total, limit: limits.listedApiKeys };
  ctx.body = view;
}

export async function create(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, createApiKeySchema);
  const viewer = viewerOf(ctx);
  const { apiKey, keyValue } = await domain.createApiKey(deps.ports, viewer, actorOf(deps, ctx), input);
  const view: CreatedApiKeyView = { apiKey: apiKeyView(apiKey, viewer, deps.ports.clock.now()), keyValue };
  ctx.status = 201;
  ctx.body = view;
}

export async function show(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { timeZone } = readQuery(ctx, chartQuerySchema);
  const details = await domain.showApiKey(ports, viewer, idOf(ctx), timeZone);
  ctx.body = apiKeyDetailsView(details, viewer, ports.clock.now());
}

export async function previewRevocation(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { apiKey, queuedCalls } = await domain.previewRevocation(ports, viewer, idOf(ctx));
  const view: RevocationView = { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), queuedCalls };
  ctx.body = view;
}

export async function revoke(ctx: Context, deps: HttpDeps): Promise<void> {
  const { cancelQueuedCalls } = readQuery(ctx, revokeQuerySchema);
  await domain.revokeApiKey(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), cancelQueuedCalls);
  ctx.status = 204;
}

export async function revokeAll(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, revokeApiKeysSchema);
  const view: RevokedApiKeysView = await domain.revokeApiKeys(deps.ports, viewerOf(ctx), actorOf(deps, ctx), input);
  ctx.body = view;
}

export async function identify(ctx: Context, deps: HttpDeps): Promise<void> {
  const { ports } = deps;
  const { sha256 } = await readBodyInSession(ctx, deps, identifyApiKeySchema);
  const viewer = viewerOf(ctx);
  const apiKey = await domain.identifyApiKey(ports, viewer, sha256.toLowerCase());
  const view: IdentifiedApiKeyView = { apiKey: apiKey && apiKeyView(apiKey, viewer, ports.clock.now()) };
  ctx.body = view;
}
