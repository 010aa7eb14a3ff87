import {
  apiKeyDetailsSchema,
  apiKeysSchema,
  changeApiKeySchema,
  changedApiKeySchema,
  createApiKeySchema,
  createdApiKeySchema,
  identifiedApiKeySchema,
  identifyApiKeySchema,
  revocationSchema,
  revokeApiKeyQuerySchema,
  revokeApiKeysSchema,
  revokedApiKeysSchema,
} from '../console/api-keys.ts';
import { chartQuerySchema } from '../console/calls.ts';
import { route } from './route.ts';

export const apiKeyRoutes = {
  listApiKeys: route('GET', '/console/api-keys', {
    by: 'session',
    summary: 'List API keys, newest first',
    answer: apiKeysSchema,
  }),
  createApiKey: route('POST', '/console/api-keys', {
    by: 'session',
    summary: 'Create an API key. Its value is returned only once',
    body: createApiKeySchema,
    answer: createdApiKeySchema,
    status: 201,
    secret: 'keyValue',
    problems: ['forbidden', 'conflict'],
  }),
  identifyApiKey: route('POST', '/console/api-keys/identify', {
    by: 'session',
    summary: 'Find an API key by the SHA-256 hash of its value',
    body: identifyApiKeySchema,
    answer: identifiedApiKeySchema,
  }),
  revokeApiKeys: route('POST', '/console/api-keys/revocations', {
    by: 'session',
    summary: 'Revoke several API keys in one transaction',
    body: revokeApiKeysSchema,
    answer: revokedApiKeysSchema,
  }),
  showApiKey: route('GET', '/console/api-keys/:id', {
    by: 'session',
    summary: 'Show an API key with its usage and activity',
    query: chartQuerySchema,
    answer: apiKeyDetailsSchema,
  }),
  changeApiKey: route('PATCH', '/console/api-keys/:id', {
    by: 'session',
    summary: 'Limit an API key to addresses and to a number of calls per day',
    body: changeApiKeySchema,
    answer: changedApiKeySchema,
    problems: ['conflict'],
  }),
  revokeApiKey: route('DELETE', '/console/api-keys/:id', {
    by: 'session',
    summary: 'Revoke an API key',
    query: revokeApiKeyQuerySchema,
  }),
  previewRevocation: route('GET', '/console/api-keys/:id/revocation', {
    by: 'session',
    summary: 'Preview the effects of revoking an API key',
    answer: revocationSchema,
  }),
} as const;
