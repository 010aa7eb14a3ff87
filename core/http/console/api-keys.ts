import { missingActorName } from '#contract/console/activity.ts';
import type { ApiKeyDetailsView, ApiKeyView } from '#contract/console/api-keys.ts';
import { isExpired } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text/text.ts';
import type { KeyDetails } from '../../domain/api-keys.ts';
import * as domain from '../../domain/api-keys.ts';
import { scopeFor, seesOthersKeys } from '../../domain/directory/scope.ts';
import { awaySince } from '../../domain/directory/users.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ApiKey, Viewer } from '../../domain/model.ts';
import type { Handler } from '../middleware/context.ts';
import { eventView } from './activity.ts';
import { emailFor, isFullyShown, ownerView, personView } from './people.ts';

export const listApiKeys: Handler<'listApiKeys'> = async ({ ports, viewer }) => {
  const { apiKeys, total } = await domain.listApiKeys(ports, scopeFor(viewer).apiKeys);
  const now = ports.clock.now();
  return { apiKeys: apiKeys.map((key) => apiKeyView(key, viewer, now)), total, limit: limits.listedApiKeys };
};

export const createApiKey: Handler<'createApiKey'> = async ({ ports, viewer, caller, body }) => {
  const { apiKey, keyValue } = await domain.createApiKey(ports, caller, body);
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), keyValue };
};

export const showApiKey: Handler<'showApiKey'> = async ({ ctx, deps, ports, viewer, params, query }) => {
  const details = await domain.showApiKey(ports, viewer, params.id, query.timeZone);
  const { apiKey, createdIn, reach, usage, activity, lastUsedAddress, today } = details;
  const ignoredProxy = deps.findIgnoredProxy(ctx);
  return {
    apiKey: apiKeyView(apiKey, viewer, ports.clock.now()),
    ...{ createdIn, reach },
    lastUsedAddress: isFullyShown(apiKey.creator, viewer) ? lastUsedAddress : null,
    usage: usage.map(({ refused, ...counts }) => (refused > 0 ? { ...counts, refused } : counts)),
    today: today && toTodayView(today),
    activity: activity.map((event) => eventView(event, viewer)),
    ...(ignoredProxy !== undefined && { ignoredProxy }),
  };
};

export const showRevokedApiKey: Handler<'showRevokedApiKey'> = async ({ ports, viewer, params }) => {
  const { apiKey, end, activity } = await domain.showRevokedApiKey(ports, viewer, params.id);
  const { id, name, creator, revokedAt } = apiKey;
  return {
    apiKey: { id, name, ...(seesOthersKeys(scopeFor(viewer).apiKeys) ? { owner: ownerView(creator, viewer) } : {}) },
    revokedAt: timestamp(revokedAt),
    revokedBy: end && (end.actor ? personView(end.actor, viewer).name : missingActorName(end.action)),
    ...(end?.actor?.id === viewer.id && { revokedByYou: true }),
    reason: end?.detail ?? null,
    activity: activity.map((event) => eventView(event, viewer)),
  };
};

export const changeApiKey: Handler<'changeApiKey'> = async ({ ports, viewer, caller, params, body }) => ({
  apiKey: apiKeyView(await domain.changeApiKey(ports, caller, params.id, body), viewer, ports.clock.now()),
});

export const previewRevocation: Handler<'previewRevocation'> = async ({ ports, viewer, params }) => {
  const { apiKey, queuedCalls, placed, addresses } = await domain.previewRevocation(ports, viewer, params.id);
  const shown = isFullyShown(apiKey.creator, viewer) ? addresses : [];
  const lastDay = { placed, addresses: shown.map(({ address, usedAt }) => ({ address, lastUsedAt: timestamp(usedAt) })) };
  return { apiKey: apiKeyView(apiKey, viewer, ports.clock.now()), queuedCalls, lastDay };
};

export const revokeApiKey: Handler<'revokeApiKey'> = async ({ ports, caller, params, query }) => {
  const { cancelQueuedCalls, ...why } = query;
  await domain.revokeApiKey(ports, caller, params.id, cancelQueuedCalls && 'soon', why);
};

export const revokeApiKeys: Handler<'revokeApiKeys'> = async ({ ports, caller, body }) =>
  domain.revokeApiKeys(ports, caller, { ...body, cancelQueuedCalls: body.cancelQueuedCalls && 'soon' });

export const identifyApiKey: Handler<'identifyApiKey'> = async ({ ports, viewer, body }) => {
  const apiKey = await domain.identifyApiKey(ports, viewer, body.sha256.toLowerCase());
  return { apiKey: apiKey && apiKeyView(apiKey, viewer, ports.clock.now()) };
};

function apiKeyView(key: ApiKey, viewer: Viewer, now: Millis): ApiKeyView {
  const view: ApiKeyView = {
    id: key.id,
    name: key.name,
    createdAt: timestamp(key.createdAt),
    lastUsedAt: key.lastUsedAt && timestamp(key.lastUsedAt),
    expiresAt: key.expiresAt && timestamp(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    timeZone: key.timeZone,
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

function toTodayView({ countedFrom, resetsAt, ...today }: NonNullable<KeyDetails['today']>): ApiKeyDetailsView['today'] {
  return { ...today, ...(countedFrom && { countedFrom: timestamp(countedFrom) }), resetsAt: timestamp(resetsAt) };
}
