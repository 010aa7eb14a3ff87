export const apiKeyHeader = 'X-API-Key';
/** When the key ends (RFC 3339): in answers to requests whose key ends soon. */
export const keyExpiresHeader = 'Callkey-Key-Expires';
/** The answer header that marks a repeated request id. */
export const replayedHeader = 'Idempotent-Replayed';

/** Where calls are placed. */
export const placeCallPath = '/api/v1/campaigns/:campaignId/contacts/on-demand';
