import type {
  ApiKeyDetailsView,
  ApiKeysView,
  ApiKeyView,
  ChangedApiKeyView,
  CreatedApiKeyView,
  IdentifiedApiKeyView,
  RevocationView,
  RevokedApiKeysView,
} from '#contract/console/api-keys.ts';
import { isExpired } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text/text.ts';
import type { KeyDetails } from '../../domain/api-keys.ts';
import * as domain from '../../domain/api-keys.ts';
import { scopeFor, seesOthersKeys } from '../../domain/directory/scope.ts';
import { awaySince } from '../../domain/directory/users.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ApiKey, Viewer } from '../../domain/model.ts';
import { eventView } from './activity.ts';
import { emailFor, isFullyShown, ownerView } from './people.ts';
import type { Request } from './request.ts';

export async function listApiKeys({ ports, viewer }: Request<'listApiKeys'>): Promise<ApiKeysView> {
  const { apiKeys, total } = await domain.listApiKeys(ports, scopeFor(viewer).apiKeys);
  const now = ports.clock.now();
  return { apiKeys: apiKeys.map((key) => apiKeyView(key, viewer, now)), total, limit: limits.listedApiKeys };
}

export async function createApiKey({ ports, viewer, caller, body }: Request<'createApiKey'>): Promise<CreatedApiKeyView> {
  const { apiKey, keyValue } = await domain.createApiKey(ports, caller, body);
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), keyValue };
}

export async function showApiKey({ ctx, deps, ports, viewer, params, query }: Request<'showApiKey'>): Promise<ApiKeyDetailsView> {
  const details = await domain.showApiKey(ports, viewer, params.id, query.timeZone);
  const ignoredProxy = deps.findIgnoredProxy(ctx);
  const view = apiKeyDetailsView(details, viewer, ports.clock.now());
  return ignoredProxy === undefined ? view : { ...view, ignoredProxy };
}

export async function changeApiKey({ ports, viewer, caller, params, body }: Request<'changeApiKey'>): Promise<ChangedApiKeyView> {
  return { apiKey: apiKeyView(await domain.changeApiKey(ports, caller, params.id, body), viewer, ports.clock.now()) };
}

export async function previewRevocation({ ports, viewer, params }: Request<'previewRevocation'>): Promise<RevocationView> {
  const { apiKey, queuedCalls, placed, addresses } = await domain.previewRevocation(ports, viewer, params.id);
  const shown = isFullyShown(apiKey.creator, viewer) ? addresses : [];
  const lastDay = { placed, addresses: shown.map(({ address, usedAt }) => ({ address, lastUsedAt: timestamp(usedAt) })) };
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), queuedCalls, lastDay };
}

export async function revokeApiKey({ ports, caller, params, query }: Request<'revokeApiKey'>): Promise<void> {
  const { cancelQueuedCalls, ...why } = query;
  await domain.revokeApiKey(ports, caller, params.id, cancelQueuedCalls, why);
}

export async function revokeApiKeys({ ports, caller, body }: Request<'revokeApiKeys'>): Promise<RevokedApiKeysView> {
  return domain.revokeApiKeys(ports, caller, body);
}

export async function identifyApiKey({ ports, viewer, body }: Request<'identifyApiKey'>): Promise<IdentifiedApiKeyView> {
  const apiKey = await domain.identifyApiKey(ports, viewer, body.sha256.toLowerCase());
  return { apiKey: apiKey && apiKeyView(apiKey, viewer, ports.clock.now()) };
}

function apiKeyView(key: ApiKey, viewer: Viewer, now: Millis): ApiKeyView {
  const view: ApiKeyView = {
    id: key.id,
    name: key.name,
    createdAt: timestamp(key.createdAt),
    lastUsedAt: key.lastUsedAt && timestamp(key.lastUsedAt),
    expiresAt: key.expiresAt && timestamp(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: isExpired(key.expiresAt, now),
    addresses: key.limits?.addresses ? [...key.limits.addresses] : null,
    callsPerDay: key.limits?.callsPerDay ?? null,
    limitsVersion: key.limits?.version ?? null,
  };
  if (seesOthersKeys(scopeFor(viewer).apiKeys)) view.owner = { ...ownerView(key.creator, viewer), ...emailFor(key.creator, viewer) };
  if (key.creator.isDisabled) view.ownerDisabled = true;
  if ((key.creator.lastSignInAt ?? key.createdAt) < awaySince(now)) view.ownerAway = true;
  return view;
}

function apiKeyDetailsView(details: KeyDetails, viewer: Viewer, now: Millis): ApiKeyDetailsView {
  const { apiKey, createdIn, reach, usage, activity, lastUsedAddress, today } = details;
  return {
    apiKey: apiKeyView(apiKey, viewer, now),
    ...{ createdIn, reach },
    lastUsedAddress: isFullyShown(apiKey.creator, viewer) ? lastUsedAddress : null,
    usage: usage.map(({ refused, ...counts }) => (refused > 0 ? { ...counts, refused } : counts)),
    today: today && toTodayView(today),
    activity: activity.map((event) => eventView(event, viewer)),
  };
}

function toTodayView({ countedFrom, resetsAt, ...today }: NonNullable<KeyDetails['today']>): ApiKeyDetailsView['today'] {
  return { ...today, ...(countedFrom && { countedFrom: timestamp(countedFrom) }), resetsAt: timestamp(resetsAt) };
}
