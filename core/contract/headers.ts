export const apiKeyHeader = 'X-API-Key';
/** When the key expires (RFC 3339). Sent only if the key expires soon. */
export const keyExpiresHeader = 'Callkey-Key-Expires';
/** A key's daily call limit, and what's left of it (draft-ietf-httpapi-ratelimit-headers-10). */
export const rateLimitHeader = 'RateLimit';
export const rateLimitPolicyHeader = 'RateLimit-Policy';
/** Marks the response to a repeated request ID. */
export const replayedHeader = 'Idempotent-Replayed';

export const placeCallPath = '/api/v1/campaigns/:campaignId/contacts/on-demand';
