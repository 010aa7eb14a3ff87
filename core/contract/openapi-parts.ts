import { apiKeyHeader, keyExpiresHeader, replayedHeader } from './calls.ts';
import { tenancyHeader } from './console.ts';
import { generation, generationHeader } from './generation.ts';
import { requestIdHeader } from './problems.ts';
import { signatureHeaders } from './signature.ts';

type Kind = 'schemas' | 'responses' | 'headers' | 'parameters';

export function reference(kind: Kind, name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

const text = { type: 'string' };
export const requestId = { type: 'string', pattern: '^[A-Za-z0-9._~:-]{1,128}$' };

/** Answer headers. */
export const headers = {
  [requestIdHeader]: {
    description: "Names the request in the operator's log: the client's own, or a new one.",
    required: true,
    schema: requestId,
  },
  [keyExpiresHeader]: { description: 'When the key ends, if it has 30 days or less.', schema: reference('schemas', 'Instant') },
  [replayedHeader]: { description: 'This request id has placed this call before.', schema: { const: 'true' } },
  [generationHeader]: { description: "The contract's generation.", required: true, schema: { type: 'integer', const: generation } },
  'Retry-After': { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 0 } },
  Allow: { description: 'The methods of this path.', required: true, schema: text },
  'WWW-Authenticate': { required: true, schema: text, example: 'ApiKey realm="callkey"' },
  'Set-Cookie': {
    description:
      'Two cookies, `callkey_session` and `callkey_session.sig`: from signing in, from signing out, which takes them back, and after a change of `SESSION_SECRETS`. Over https their names begin with `__Host-`. Signing in and changing the password also set `callkey_device` and `callkey_device.sig`, by which a known browser is not locked out.',
    schema: text,
  },
};
export type HeaderName = keyof typeof headers;

/** Request headers. */
export const parameters = {
  [requestIdHeader]: { in: 'header', description: 'Your name for this request. Another form than this counts as left out.', schema: text },
  [tenancyHeader]: {
    in: 'header',
    description: "The account or partner that the request is for, in place of the session's. For staff.",
    schema: { type: 'string', pattern: '^(account|partner)/[A-Za-z0-9_-]{1,64}$' },
    example: 'account/01a20138-3d19-7da7-9907-3a9fb48fa32a',
  },
  'Idempotency-Key': {
    in: 'header',
    description: "Another spelling of the body's `requestId`: bare, or between double quotes.",
    schema: { type: 'string', pattern: '^("[A-Za-z0-9._~:-]{1,128}"|[A-Za-z0-9._~:-]{1,128})$' },
    example: 'order-4711',
  },
  [signatureHeaders.id]: {
    in: 'header',
    required: true,
    description: "The message's identifier: of a hand-off, the same on every try.",
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
    description: 'An API key. It opens the three routes that name it and nothing else.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'callkey_session',
    description: 'A session of the console, with `callkey_session.sig` beside it. Over https both names begin with `__Host-`.',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: signatureHeaders.signature,
    description:
      'Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of "id.timestamp.body" with a shared secret. Of several, separated by spaces, one has to be right.',
  },
};
