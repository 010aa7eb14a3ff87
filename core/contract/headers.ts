export const apiKeyHeader = 'X-API-Key';
/** When the key expires (RFC 3339), in responses to requests whose key expires soon. */
export const keyExpiresHeader = 'Callkey-Key-Expires';
/** Marks the response to a repeated request ID. */
export const replayedHeader = 'Idempotent-Replayed';

/** The path for placing a call. */
export const placeCallPath = '/api/v1/campaigns/:campaignId/contacts/on-demand';
