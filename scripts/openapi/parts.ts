import { signatureHeaders } from '#contract/calls/signature.ts';
import { tenancyHeader } from '#contract/console/session.ts';
import { generation, generationHeader } from '#contract/generation.ts';
import { apiKeyHeader, keyExpiresHeader, replayedHeader } from '#contract/headers.ts';
import { requestIdHeader } from '#contract/problems.ts';

type Kind = 'schemas' | 'responses' | 'headers' | 'parameters';

export function reference(kind: Kind, name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

const text = { type: 'string' };
export const requestId = { type: 'string', pattern: '^[A-Za-z0-9._~:-]{1,128}$' };

/** The response headers. */
export const headers = {
  [requestIdHeader]: {
    description: "This request's ID in the operator's log: the client's own, or a generated one.",
    required: true,
    schema: requestId,
  },
  [keyExpiresHeader]: { description: "When the key expires, if that's within 30 days.", schema: reference('schemas', 'Instant') },
  [replayedHeader]: { description: 'The call was already placed with this request ID.', schema: { const: 'true' } },
  [generationHeader]: {
    description: 'The generation of the API contract.',
    required: true,
    schema: { type: 'integer', const: generation },
  },
  'Retry-After': { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 0 } },
  Allow: { description: 'The methods that this path supports.', required: true, schema: text },
  'WWW-Authenticate': { required: true, schema: text, example: 'ApiKey realm="callkey"' },
  ETag: { description: 'Send it as `If-None-Match`: the response is 304 if nothing has changed.', required: true, schema: text },
  Location: { description: "The provider's page, or the console's page.", required: true, schema: text },
  'Set-Cookie': {
    description:
      "Two cookies, `callkey_session` and `callkey_session.sig`: set at sign-in, cleared at sign-out, and reissued after a change of `SESSION_SECRETS`. Over HTTPS, their names start with `__Host-`. Signing in and changing the password also set `callkey_device` and `callkey_device.sig`, so that a known browser isn't locked out.",
    schema: text,
  },
};
export type HeaderName = keyof typeof headers;

/** The request headers. */
export const parameters = {
  [requestIdHeader]: { in: 'header', description: 'Your own ID for this request. Ignored if its format is invalid.', schema: text },
  [tenancyHeader]: {
    in: 'header',
    description: 'The account or partner that the request is for, instead of the one selected in the session. Only for staff.',
    schema: { type: 'string', pattern: '^(account|partner)/[A-Za-z0-9_-]{1,64}$' },
    example: 'account/01a20138-3d19-7da7-9907-3a9fb48fa32a',
  },
  'If-None-Match': { in: 'header', description: 'The `ETag` of an earlier response.', schema: text },
  'Idempotency-Key': {
    in: 'header',
    description: 'An alternative to `requestId` in the body, with or without double quotes.',
    schema: { type: 'string', pattern: '^("[A-Za-z0-9._~:-]{1,128}"|[A-Za-z0-9._~:-]{1,128})$' },
    example: 'order-4711',
  },
  [signatureHeaders.id]: {
    in: 'header',
    required: true,
    description: 'The message ID, which is the same for all attempts of a hand-off.',
    schema: text,
  },
  [signatureHeaders.timestamp]: {
    in: 'header',
    required: true,
    description: 'Unix time in seconds, at most five minutes from now.',
    schema: { type: 'integer' },
    example: 1_795_500_000,
  },
};

export const securitySchemes = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: apiKeyHeader,
    description: 'An API key. It works only for the three on-demand call endpoints.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'callkey_session',
    description: 'A console session, sent together with `callkey_session.sig`. Over HTTPS, both names start with `__Host-`.',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: signatureHeaders.signature,
    description:
      'Standard Webhooks: `v1,` followed by the base64 HMAC-SHA256 of "id.timestamp.body" with a shared secret. If the header contains several signatures, separated by spaces, at least one must match.',
  },
};
