import { z } from 'zod';
import { expirationSchema } from '../expiry.ts';
import { limits } from '../limits.ts';
import { route } from '../route.ts';
import { networksSchema } from '../text/networks.ts';
import { identifierSchema, instantSchema, lineSchema } from '../text/text.ts';
import { timeZoneSchema } from '../time-zones.ts';
import { eventSchema } from './activity.ts';
import { chartQuerySchema } from './calls.ts';
import { flagSchema, placeSchema } from './common.ts';

export const apiKeySchema = z.object({
  id: identifierSchema,
  name: z.string(),
  createdAt: instantSchema,
  lastUsedAt: instantSchema.nullable(),
  expiresAt: instantSchema.nullable(),
  /** The key expires at the end of a day in this time zone. */
  expiryTimeZone: z.string().nullable(),
  /** The key's days begin at midnight in this time zone, for its daily call limit. */
  timeZone: z.string(),
  expired: z.boolean(),
  /** Present if the viewer can see other users' keys. */
  owner: z.object({ isYou: z.boolean(), name: z.string(), email: z.string().optional() }).optional(),
  /** Present and true while the owner is disabled and the key is refused. */
  ownerDisabled: z.literal(true).optional(),
  /** Present and true if the owner hasn't signed in for 90 days. */
  ownerAway: z.literal(true).optional(),
  /** The addresses and networks (CIDR) from which the key is accepted; null for any address. */
  addresses: z.array(z.string()).nullable(),
  /** How many calls the key can place on one day; null for no limit. */
  callsPerDay: z.number().int().nullable(),
  /** Changes with each change of the two limits; null if the key has no limits. */
  limitsVersion: z.string().nullable(),
});

export type ApiKeyView = z.infer<typeof apiKeySchema>;

export const apiKeysSchema = z.object({
  /** Newest first. */
  apiKeys: z.array(apiKeySchema),
  /** The number of keys in the viewer's scope. The list contains only the newest, up to `limit`. */
  total: z.number().int(),
  limit: z.literal(limits.listedApiKeys),
});

export type ApiKeysView = z.infer<typeof apiKeysSchema>;

export const createApiKeySchema = z.strictObject({
  name: lineSchema(limits.apiKeyName, 'Enter a name.'),
  expiration: expirationSchema,
  timeZone: timeZoneSchema,
});

export type CreateApiKey = z.infer<typeof createApiKeySchema>;

export const createdApiKeySchema = z.object({ apiKey: apiKeySchema, keyValue: z.string() });

export type CreatedApiKeyView = z.infer<typeof createdApiKeySchema>;

export const revocationSchema = z.object({
  apiKey: apiKeySchema,
  queuedCalls: z.number().int(),
  /** The key's use in the last 24 hours, including all of the quarter-hour in which they begin. The counts are up to a minute behind. */
  lastDay: z.object({
    placed: z.number().int(),
    addresses: z.array(z.object({ address: z.string(), lastUsedAt: instantSchema })),
  }),
});

export type RevocationView = z.infer<typeof revocationSchema>;

export const revokeQuerySchema = z.strictObject({ cancelQueuedCalls: flagSchema });

/** The reasons for revoking a key, as the activity list shows them. */
export const revokeReasons = {
  leaked: 'leaked',
  replaced: 'replaced',
  unused: 'no longer needed',
  left: 'someone left',
  other: 'other',
} as const;

export type RevokeReason = keyof typeof revokeReasons;

const reasonNames = ['leaked', 'replaced', 'unused', 'left', 'other'] as const satisfies readonly RevokeReason[];

const why = {
  reason: z.enum(reasonNames, { error: `Must be one of ${reasonNames.join(', ')}.` }).optional(),
  note: lineSchema(limits.revokeNote).optional(),
};

export const changeApiKeySchema = z
  .strictObject({
    addresses: networksSchema.nullable().optional(),
    callsPerDay: z
      .int({ error: 'Must be a whole number.' })
      .min(1, { error: 'Must be at least 1.' })
      .max(limits.callsPerDay, { error: `Must be at most ${limits.callsPerDay}.` })
      .nullable()
      .optional(),
    /** Refuses the change if the limits have changed since this version. If omitted, the last change wins. */
    limitsVersion: z.string().nullable().optional(),
  })
  .refine(({ addresses, callsPerDay }) => addresses !== undefined || callsPerDay !== undefined, {
    error: 'Must contain addresses or callsPerDay.',
  });

export type ChangeApiKey = z.infer<typeof changeApiKeySchema>;

export const changedApiKeySchema = z.object({ apiKey: apiKeySchema });

export const revokeApiKeysSchema = z.strictObject({
  ids: z
    .array(identifierSchema)
    .min(1, { error: 'Must contain at least one ID.' })
    .max(limits.revokedApiKeys, { error: `Must contain at most ${limits.revokedApiKeys} IDs.` }),
  cancelQueuedCalls: z.boolean().default(false),
  ...why,
});

/** Each requested ID is in exactly one of the two lists. */
export const revokedApiKeysSchema = z.object({
  revoked: z.array(identifierSchema),
  /** Keys that the viewer can't see, or that were already revoked. */
  gone: z.array(identifierSchema),
});

export type RevokedApiKeysView = z.infer<typeof revokedApiKeysSchema>;

export const identifyApiKeySchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/i, { error: 'Must be the SHA-256 hash of the key value as 64 hexadecimal digits.' }),
});

export const identifiedApiKeySchema = z.object({ apiKey: apiKeySchema.nullable() });

/** The newest events about the key that the viewer can see in Activity, at most 50, newest first. */
const keyActivitySchema = z.array(eventSchema);

export const apiKeyDetailsSchema = z.object({
  apiKey: apiKeySchema,
  /** The scope in which the key was created. It determines who can see the key. */
  createdIn: placeSchema,
  /** The account or partner whose campaigns the key can place calls in. It changes when the key's creator moves. */
  reach: placeSchema,
  /** The last 30 days, including today, oldest first. The counts are up to a minute behind. If a core is killed, that minute is lost. */
  usage: z.array(
    z.object({
      day: z.iso.date(),
      placed: z.number().int(),
      cancelled: z.number().int(),
      /** Requests from an address that isn't allowed. Omitted if there were none. */
      refused: z.number().int().optional(),
    }),
  ),
  /** The address of the last request that the key authenticated; null if none has been recorded, or if only staff can see it. */
  lastUsedAddress: z.string().nullable(),
  /** The current day in the key's time zone, if the key has a daily call limit. */
  today: z
    .object({
      day: z.iso.date(),
      timeZone: z.string(),
      placed: z.number().int(),
      /** When the limit was set, if that was on this day: calls that were placed before aren't counted. */
      countedFrom: instantSchema.optional(),
      resetsAt: instantSchema,
    })
    .nullable(),
  /** The address of a proxy that isn't trusted, if this request came through one. All clients behind it seem to have its address. */
  ignoredProxy: z.string().optional(),
  activity: keyActivitySchema,
});

export type ApiKeyDetailsView = z.infer<typeof apiKeyDetailsSchema>;

export const revokedApiKeySchema = z.object({
  apiKey: apiKeySchema.pick({ id: true, name: true, owner: true }),
  revokedAt: instantSchema,
  /** The name of who revoked the key or deleted its user; null if the audit log no longer says it. */
  revokedBy: z.string().nullable(),
  /** Present and true if that was the viewer. */
  revokedByYou: z.literal(true).optional(),
  reason: z.string().nullable(),
  activity: keyActivitySchema,
});

export const apiKeyRoutes = {
  listApiKeys: route('GET', '/console/api-keys', {
    summary: 'List API keys, newest first',
    answer: apiKeysSchema,
  }),
  createApiKey: route('POST', '/console/api-keys', {
    summary: 'Create an API key. Its value is returned only once',
    body: createApiKeySchema,
    answer: createdApiKeySchema,
    status: 201,
    secret: 'keyValue',
    problems: ['forbidden', 'conflict'],
  }),
  identifyApiKey: route('POST', '/console/api-keys/identify', {
    summary: 'Find an API key by the SHA-256 hash of its value',
    body: identifyApiKeySchema,
    answer: identifiedApiKeySchema,
  }),
  revokeApiKeys: route('POST', '/console/api-keys/revocations', {
    summary: 'Revoke several API keys in one transaction',
    body: revokeApiKeysSchema,
    answer: revokedApiKeysSchema,
  }),
  showApiKey: route('GET', '/console/api-keys/:id', {
    summary: 'Show an API key with its usage and activity',
    query: chartQuerySchema,
    answer: apiKeyDetailsSchema,
  }),
  showRevokedApiKey: route('GET', '/console/api-keys/:id/end', {
    summary: 'Show who revoked an API key, when and why',
    answer: revokedApiKeySchema,
  }),
  changeApiKey: route('PATCH', '/console/api-keys/:id', {
    summary: 'Limit an API key to addresses and to a number of calls per day',
    body: changeApiKeySchema,
    answer: changedApiKeySchema,
    problems: ['conflict'],
  }),
  revokeApiKey: route('DELETE', '/console/api-keys/:id', {
    summary: 'Revoke an API key',
    query: revokeQuerySchema.extend(why),
  }),
  previewRevocation: route('GET', '/console/api-keys/:id/revocation', {
    summary: 'Preview the effects of revoking an API key',
    answer: revocationSchema,
  }),
} as const;
