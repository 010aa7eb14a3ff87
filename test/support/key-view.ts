import type { ApiKeyView } from '#contract/console/api-keys.ts';

/** Creates a key as the core lists it: without expiration or limits, and never used. */
export function keyView(changes: Partial<ApiKeyView> = {}): ApiKeyView {
  return {
    ...{ id: 'k', name: 'Key', createdAt: '2026-11-01T00:00:00.000Z', lastUsedAt: null, expiresAt: null, expiryTimeZone: null },
    ...{ timeZone: 'UTC', expired: false, addresses: null, callsPerDay: null, limitsVersion: null },
    ...changes,
  };
}
