import type {
  ApiKeyDetailsView,
  ApiKeysView,
  ChangedApiKeyView,
  CreatedApiKeyView,
  IdentifiedApiKeyView,
  RevocationView,
  RevokedApiKeysView,
} from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import * as domain from '../../domain/api-keys.ts';
import { apiKeyDetailsView, apiKeyView } from '../views.ts';
import type { Request } from './request.ts';

export async function listApiKeys({ ports, viewer, query }: Request<'listApiKeys'>): Promise<ApiKeysView> {
  const { apiKeys, total } = await domain.listApiKeys(ports, viewer, query.olderThan ?? null);
  const now = ports.clock.now();
  return { apiKeys: apiKeys.map((key) => apiKeyView(key, viewer, now)), total, limit: limits.listedApiKeys };
}

export async function createApiKey({ ports, viewer, caller, body }: Request<'createApiKey'>): Promise<CreatedApiKeyView> {
  const { apiKey, keyValue } = await domain.createApiKey(ports, caller, body);
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), keyValue };
}

export async function showApiKey({ ports, viewer, params, query }: Request<'showApiKey'>): Promise<ApiKeyDetailsView> {
  return apiKeyDetailsView(await domain.showApiKey(ports, viewer, params.id, query.timeZone), viewer, ports.clock.now());
}

export async function changeApiKey({ ports, viewer, caller, params, body }: Request<'changeApiKey'>): Promise<ChangedApiKeyView> {
  return { apiKey: apiKeyView(await domain.changeApiKey(ports, caller, params.id, body), viewer, ports.clock.now()) };
}

export async function previewRevocation({ ports, viewer, params }: Request<'previewRevocation'>): Promise<RevocationView> {
  const { apiKey, queuedCalls } = await domain.previewRevocation(ports, viewer, params.id);
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), queuedCalls };
}

export async function revokeApiKey({ ports, caller, params, query }: Request<'revokeApiKey'>): Promise<void> {
  await domain.revokeApiKey(ports, caller, params.id, query.cancelQueuedCalls);
}

export async function revokeApiKeys({ ports, caller, body }: Request<'revokeApiKeys'>): Promise<RevokedApiKeysView> {
  return domain.revokeApiKeys(ports, caller, body);
}

export async function identifyApiKey({ ports, viewer, body }: Request<'identifyApiKey'>): Promise<IdentifiedApiKeyView> {
  const apiKey = await domain.identifyApiKey(ports, viewer, body.sha256.toLowerCase());
  return { apiKey: apiKey && apiKeyView(apiKey, viewer, ports.clock.now()) };
}
