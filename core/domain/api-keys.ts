import { hash } from 'node:crypto';
import type { CreateApiKey } from '#contract/console.ts';
import { customRange, expiryInstant, isWithin } from '#contract/expiry.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { type Actor, auditEvent } from './audit.ts';
import type { ApiKey, Digest, Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { type KeyVisibility, scopeOf, type Viewer } from './tenancy.ts';

/** A key value has full entropy: one round of SHA-256 is enough, and a salt would stop the indexed look-up. */
export function digestOf(keyValue: string): Digest {
  return hash('sha256', keyValue, 'hex');
}

/** Makes a key in the viewer's own scope. The key value is in the answer and nowhere else. */
export async function createApiKey(
  ports: Ports,
  viewer: Viewer,
  actor: Actor,
  { name, expiration, timeZone }: CreateApiKey,
): Promise<{ apiKey: ApiKey; keyValue: string }> {
  const { home } = scopeOf(viewer);
  if (!home) throw new Problem('forbidden', 'Select an account or a partner first: the key reaches that tenancy only.');
  const now = ports.clock.now();
  const range = customRange(now, timeZone);
  if (expiration.kind === 'custom' && !isWithin(expiration.date, range)) {
    const message = `Give a date from ${range.earliest} to ${range.latest}.`;
    throw new Problem('invalid', message, { errors: [{ path: 'expiration.date', message }] });
  }
  const keyValue = makeKeyValue(ports.randomness.bytes);
  const apiKey: ApiKey = {
    id: ports.randomness.id(),
    name,
    creator: { id: viewer.id, name: viewer.name },
    home,
    createdAt: now,
    lastUsedAt: null,
    expiresAt: expiryInstant(expiration, now, timeZone),
    expiryTimeZone: expiration.kind === 'none' ? null : timeZone,
  };
  const event = auditEvent(ports, actor, 'api-key.created', { kind: 'api-key', id: apiKey.id, name }, home);
  await ports.stores.apiKeys.create(apiKey, digestOf(keyValue), event);
  return { apiKey, keyValue };
}

export function listApiKeys(ports: Ports, viewer: Viewer): Promise<{ apiKeys: ApiKey[]; total: number }> {
  return ports.stores.apiKeys.list(scopeOf(viewer).apiKeys, limits.listedApiKeys);
}

/** What revoking a key would touch. */
export async function previewRevocation(ports: Ports, viewer: Viewer, id: string): Promise<{ apiKey: ApiKey; queuedCalls: number }> {
  const apiKey = await findApiKey(ports, scopeOf(viewer).apiKeys, id);
  return { apiKey, queuedCalls: await ports.stores.apiKeys.countQueuedCalls(apiKey.id) };
}

/** Holds from the very next request on, wherever that arrives. */
export async function revokeApiKey(ports: Ports, viewer: Viewer, actor: Actor, id: string, cancelQueuedCalls: boolean): Promise<void> {
  await revokeVisible(ports, scopeOf(viewer).apiKeys, actor, id, cancelQueuedCalls);
}

export async function revokeVisible(
  ports: Ports,
  sight: KeyVisibility,
  actor: Actor,
  id: string,
  cancelQueuedCalls: boolean,
): Promise<ApiKey> {
  const apiKey = await findApiKey(ports, sight, id);
  const event = auditEvent(ports, actor, 'api-key.revoked', { kind: 'api-key', id: apiKey.id, name: apiKey.name }, apiKey.home);
  const revoked = await ports.stores.apiKeys.revoke(apiKey.id, { cancelQueuedCalls, at: ports.clock.now() }, event);
  if (!revoked) throw noSuchKey();
  return apiKey;
}

/** Which key in the viewer's sight has this digest. */
export function identifyApiKey(ports: Ports, viewer: Viewer, digest: Digest): Promise<ApiKey | null> {
  return ports.stores.apiKeys.findByDigest(scopeOf(viewer).apiKeys, digest);
}

async function findApiKey(ports: Ports, sight: KeyVisibility, id: string): Promise<ApiKey> {
  const apiKey = await ports.stores.apiKeys.find(sight, id);
  // Out of sight answers as out of existence.
  if (!apiKey) throw noSuchKey();
  return apiKey;
}

function noSuchKey(): Problem {
  return new Problem('not-found', 'There is no such API key in your scope.');
}
