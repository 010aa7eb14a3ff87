import { z } from 'zod';
import { callStates } from './calls/states.ts';
import { expirationSchema, timeZoneSchema } from './expiry.ts';
import { limits } from './limits.ts';
import {
  codePoints,
  emailSchema,
  identifierSchema,
  instantSchema,
  isPrintable,
  isWithinCodePoints,
  lineSchema,
  normalEmail,
} from './text/text.ts';

export const userTypes = ['account', 'partner', 'staff'] as const;
export const userTypeSchema = z.enum(userTypes, { error: 'Must be account, partner or staff.' });
export type UserType = z.infer<typeof userTypeSchema>;

export const tenancyKindSchema = z.enum(['account', 'partner']);
export type TenancyKind = z.infer<typeof tenancyKindSchema>;

/** Null: the first page. */
const cursorSchema = identifierSchema.optional().transform((cursor) => cursor ?? null);
const searchSchema = z.string().max(limits.search).refine(isPrintable, { error: 'Must not contain control characters.' }).default('');

const daySchema = z.iso
  .date({ error: 'Must be a date in the format YYYY-MM-DD.' })
  .refine((day) => day >= '1970-01-01' && day <= '9998-12-31', { error: 'Must be a date from 1970-01-01 to 9998-12-31.' });

/** Calendar days of a zone, both included. */
const dayRange = {
  from: daySchema.optional(),
  to: daySchema.optional(),
  timeZone: timeZoneSchema.default('UTC'),
};

/** Days as YYYY-MM-DD sort as text. */
function isRange({ value: { from, to }, issues }: z.core.ParsePayload<{ from?: string | undefined; to?: string | undefined }>): void {
  if (from !== undefined && to !== undefined && from > to)
    issues.push({ code: 'custom', path: ['from'], message: 'Must not be after "to".', input: from });
}

/** How many match in all, up to 10,000. Absent from earlier cores. */
const totals = {
  total: z.number().int().optional(),
  /** Whether there are, or may be, more than `total`. */
  totalIsMore: z.boolean().optional(),
};

export const namedSchema = z.object({ id: identifierSchema, name: z.string() });
export type Named = z.infer<typeof namedSchema>;

/** An account, or a partner with all accounts beneath it. */
export const placeSchema = z.object({ kind: tenancyKindSchema, id: identifierSchema, name: z.string() });

// Sessions

export const signInSchema = z.strictObject({
  email: z.string().max(1_000).transform(normalEmail),
  password: z.string().max(1_000),
});

/** A new password. Length is what counts (NIST SP 800-63B §3.1.1.2): no rule asks for kinds of characters. */
export const newPasswordSchema = z
  .string()
  .refine((text) => codePoints(text) >= limits.passwordMin, { error: `Must be at least ${limits.passwordMin} characters.` })
  .refine((text) => isWithinCodePoints(text, limits.passwordMax), { error: `Must be at most ${limits.passwordMax} characters.` })
  .meta({ minLength: limits.passwordMin, maxLength: limits.passwordMax });

export const changePasswordSchema = z.strictObject({
  /** Required, unless one signed in with a one-time password. */
  currentPassword: z.string().max(1_000).optional(),
  newPassword: newPasswordSchema,
});
export type PasswordChange = z.infer<typeof changePasswordSchema>;

/** Says for which tenancy a request of staff is: `account/` or `partner/`, and the id. It wins over the session's. */
export const tenancyHeader = 'Callkey-Tenancy';

export const selectTenancySchema = z.union(
  [z.strictObject({ kind: tenancyKindSchema, id: identifierSchema }), z.strictObject({ kind: z.null() })],
  { error: 'Must be {"kind":"account" or "partner","id":…}, or {"kind":null} to clear the selection.' },
);

/** @property partnerName of an account: two may share a name. Absent from earlier cores in a session. */
const tenancySchema = placeSchema.extend({ partnerName: z.string().optional() });

const viewerSchema = z.object({
  id: identifierSchema,
  email: z.string(),
  name: z.string(),
  userType: userTypeSchema,
  account: namedSchema.nullable(),
  partner: namedSchema.nullable(),
});

export const sessionSchema = z.object({
  viewer: viewerSchema,
  tenancy: tenancySchema.nullable(),
  /** Present, and true, while the user still has the one-time password that someone else chose. Until then they can do nothing but change it. */
  passwordChangeDue: z.literal(true).optional(),
  /** What places the calls: a provider, none, or only a simulation. Absent from earlier cores. */
  dialer: z.enum(['off', 'simulated', 'webhook']).optional(),
});
export type SessionView = z.infer<typeof sessionSchema>;

export const tenanciesQuerySchema = z.strictObject({ search: searchSchema });

export const tenanciesSchema = z.object({
  tenancies: z.array(tenancySchema),
});
export type TenanciesView = z.infer<typeof tenanciesSchema>;

// API keys

export const apiKeySchema = z.object({
  id: identifierSchema,
  name: z.string(),
  createdAt: instantSchema,
  lastUsedAt: instantSchema.nullable(),
  expiresAt: instantSchema.nullable(),
  /** The zone at the end of whose day the key expires. */
  expiryTimeZone: z.string().nullable(),
  expired: z.boolean(),
  /** Present for viewers who can see others' keys. Earlier cores send no email. */
  owner: z.object({ isYou: z.boolean(), name: z.string(), email: z.string().optional() }).optional(),
  /** Present, and true, while the owner is disabled: until they are enabled again, the key is refused. */
  ownerDisabled: z.literal(true).optional(),
});
export type ApiKeyView = z.infer<typeof apiKeySchema>;

export const apiKeysQuerySchema = z.strictObject({
  /** The id of a key: lists the ones after it, `limit` at most. */
  olderThan: identifierSchema.optional(),
});

export const apiKeysSchema = z.object({
  /** The newest first. */
  apiKeys: z.array(apiKeySchema),
  /** How many keys there are in the viewer's scope; the list holds the newest of them, `limit` at most. */
  total: z.number().int(),
  limit: z.literal(limits.listedApiKeys),
});
export type ApiKeysView = z.infer<typeof apiKeysSchema>;

export const createApiKeySchema = z.strictObject({
  name: lineSchema(limits.apiKeyName),
  expiration: expirationSchema,
  timeZone: timeZoneSchema,
});
export type CreateApiKey = z.infer<typeof createApiKeySchema>;

export const createdApiKeySchema = z.object({ apiKey: apiKeySchema, keyValue: z.string() });
export type CreatedApiKeyView = z.infer<typeof createdApiKeySchema>;

export const revocationSchema = z.object({ apiKey: apiKeySchema, queuedCalls: z.number().int() });
export type RevocationView = z.infer<typeof revocationSchema>;

export const revokeQuerySchema = z.strictObject({
  cancelQueuedCalls: z
    .enum(['true', 'false'], { error: 'Must be true or false.' })
    .default('false')
    .transform((text) => text === 'true'),
});

/** Revokes all of them in one transaction. Those that are not in the viewer's sight, or already revoked, are no error. */
export const revokeApiKeysSchema = z.strictObject({
  ids: z
    .array(identifierSchema)
    .min(1, { error: 'Must contain at least one ID.' })
    .max(limits.revokedApiKeys, { error: `Must contain at most ${limits.revokedApiKeys} IDs.` }),
  cancelQueuedCalls: z.boolean().default(false),
});
export type RevokeApiKeys = z.infer<typeof revokeApiKeysSchema>;

/** Each id that was asked for is in one of the two lists, once. */
export const revokedApiKeysSchema = z.object({
  revoked: z.array(identifierSchema),
  /** Not in the viewer's sight, or revoked before. */
  gone: z.array(identifierSchema),
});
export type RevokedApiKeysView = z.infer<typeof revokedApiKeysSchema>;

export const identifyApiKeySchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/i, { error: 'Must be the SHA-256 hash of the key value as 64 hexadecimal digits.' }),
});
export const identifiedApiKeySchema = z.object({ apiKey: apiKeySchema.nullable() });
export type IdentifiedApiKeyView = z.infer<typeof identifiedApiKeySchema>;

// Accounts and campaigns

/** A page of a list that is searched by name. In the directory, the search looks in a row's own name, and finds it by its ID. */
export const directoryQuerySchema = z.strictObject({ search: searchSchema, cursor: cursorSchema });

/** Null on the last page. Absent from earlier cores, which have one page. */
const nextCursorSchema = z.string().nullable().default(null);

export const accountsSchema = z.object({ accounts: z.array(namedSchema), nextCursor: nextCursorSchema });
export type AccountsView = z.infer<typeof accountsSchema>;

export const campaignsSchema = z.object({
  /** By account and name. The search looks in both names, and finds a campaign by its id. */
  campaigns: z.array(z.object({ id: identifierSchema, name: z.string(), account: namedSchema })),
  nextCursor: nextCursorSchema,
});
export type CampaignsView = z.infer<typeof campaignsSchema>;

// Directory: partners, accounts and campaigns, for those who manage them

const nameSchema = lineSchema(limits.name);

/** On a database without partners, staff create the first of each. */
export const setupSchema = z.strictObject({ partner: nameSchema, account: nameSchema, campaign: nameSchema });
export type Setup = z.infer<typeof setupSchema>;
export const createdSetupSchema = z.object({ partner: namedSchema, account: namedSchema, campaign: namedSchema });
export type CreatedSetupView = z.infer<typeof createdSetupSchema>;

/** Without a partner: of all that the viewer manages. */
export const directoryAccountsQuerySchema = directoryQuerySchema.extend({ partner: identifierSchema.optional() });
/** Without an account: of all that the viewer manages. */
export const directoryCampaignsQuerySchema = directoryQuerySchema.extend({ account: identifierSchema.optional() });

export const directoryPartnerSchema = namedSchema.extend({ accounts: z.number().int() });
export const directoryAccountSchema = namedSchema.extend({ partner: namedSchema, campaigns: z.number().int() });
export const directoryCampaignSchema = namedSchema.extend({ account: namedSchema, partner: namedSchema });

/** By name. */
export const directoryPartnersSchema = z.object({ partners: z.array(directoryPartnerSchema), nextCursor: nextCursorSchema });
export type DirectoryPartnersView = z.infer<typeof directoryPartnersSchema>;
/** By the names of partner and account. */
export const directoryAccountsSchema = z.object({ accounts: z.array(directoryAccountSchema), nextCursor: nextCursorSchema });
export type DirectoryAccountsView = z.infer<typeof directoryAccountsSchema>;
/** By the names of partner, account and campaign. */
export const directoryCampaignsSchema = z.object({ campaigns: z.array(directoryCampaignSchema), nextCursor: nextCursorSchema });
export type DirectoryCampaignsView = z.infer<typeof directoryCampaignsSchema>;

/** Creates a partner, and renames a partner, account or campaign. */
export const nameInDirectorySchema = z.strictObject({ name: nameSchema });
export const createAccountSchema = z.strictObject({ name: nameSchema, partnerId: identifierSchema });
export const createCampaignSchema = z.strictObject({ name: nameSchema, accountId: identifierSchema });

export const partnerInDirectorySchema = z.object({ partner: directoryPartnerSchema });
export type PartnerInDirectoryView = z.infer<typeof partnerInDirectorySchema>;
export const accountInDirectorySchema = z.object({ account: directoryAccountSchema });
export type AccountInDirectoryView = z.infer<typeof accountInDirectorySchema>;
export const campaignInDirectorySchema = z.object({ campaign: directoryCampaignSchema });
export type CampaignInDirectoryView = z.infer<typeof campaignInDirectorySchema>;

// Calls

const stateError = { error: `Must be one of ${callStates.join(', ')}.` };
const stateSchema = z.enum(callStates, stateError);

const callFilter = {
  ...dayRange,
  /** One or several. */
  state: z
    .union([stateSchema, z.array(stateSchema).max(callStates.length)], stateError)
    .optional()
    .transform((given) => (given === undefined ? [] : [given].flat())),
  /** The id of the key that placed the call. */
  apiKey: identifierSchema.optional(),
};
/** Found in the contact's name or phone number, or in the request id. */
const callSearch = { search: searchSchema };

export const callsExportQuerySchema = z.strictObject({ ...callFilter, ...callSearch }).check(isRange);
export const callsQuerySchema = z.strictObject({ ...callFilter, ...callSearch, cursor: cursorSchema }).check(isRange);

export const callSchema = z.object({
  requestId: z.string(),
  contactId: identifierSchema,
  /** The phone number is null once contact data has been erased. */
  contact: z.object({ phone: z.string().nullable(), name: z.string().nullable() }),
  state: z.enum(callStates),
  detail: z.string().nullable(),
  placedAt: instantSchema,
  dialedAt: instantSchema.nullable(),
  endedAt: instantSchema.nullable(),
  /** The key that placed it; null if the viewer does not see that key. */
  apiKey: z.object({ id: identifierSchema, name: z.string(), owner: z.object({ isYou: z.boolean(), name: z.string() }) }).nullable(),
  /** No phone rang: the core made the outcome up. */
  simulated: z.boolean(),
  /** Absent from earlier cores. */
  campaign: namedSchema.optional(),
});
export type CallView = z.infer<typeof callSchema>;

export const callsSchema = z.object({
  calls: z.array(callSchema),
  nextCursor: z.string().nullable(),
  /** Present where the search took too long to find a whole page: it has looked at the calls placed since then. The next page goes on. */
  searchedBackTo: instantSchema.optional(),
  ...totals,
});
export type CallsView = z.infer<typeof callsSchema>;

/** What a list does not show of a call. Time zone and variables are null once contact data has been erased, too. */
export const callDetailsSchema = z.object({
  call: callSchema,
  /** The contact's. */
  timeZone: z.string().nullable(),
  variables: z.record(z.string(), z.string()).nullable(),
  notBefore: instantSchema.nullable(),
  notAfter: instantSchema.nullable(),
  /** As the provider reports it. */
  durationSeconds: z.number().nullable(),
  /** How many times a dialer has taken the call up, to hand it off to the provider or to see what became of it. */
  attempts: z.number().int(),
  firstAttemptAt: instantSchema.nullable(),
  /** When a dialer takes it up next; null while a provider has it, and once it has ended. */
  nextAttemptAt: instantSchema.nullable(),
  /** When the provider reported the outcome of a call that was `unknown` until then. */
  toldLateAt: instantSchema.nullable().default(null),
});
export type CallDetailsView = z.infer<typeof callDetailsSchema>;

/** The calendar days of a chart are those of this zone. */
const chartZone = { timeZone: timeZoneSchema };
export const chartQuerySchema = z.strictObject(chartZone);
export const callsSummaryQuerySchema = z.strictObject({ ...callFilter, ...callSearch, ...chartZone }).check(isRange);
/** Of the campaigns on the same page of the list of campaigns, which `search` and `cursor` choose. */
export const allCallsSummaryQuerySchema = z.strictObject({ ...callFilter, ...directoryQuerySchema.shape, ...chartZone }).check(isRange);

const callsByStateSchema = z.partialRecord(z.enum(callStates), z.number().int());

/** That the provider has taken no calls for at least a minute; null if all is well. */
const dialerTroubleSchema = z.object({ since: instantSchema, reason: z.string() }).nullable().default(null);
export type DialerTroubleView = z.infer<typeof dialerTroubleSchema>;

/** Present if there are too many calls to count them all: those placed since then are counted. */
const countedBackTo = { countedBackTo: instantSchema.optional() };

export const callsSummarySchema = z.object({
  /**
   * The days of the range, the oldest first, without one the last 30 with today. A call counts on the day it was placed; a state that no call has
   * is left out.
   */
  days: z.array(z.object({ day: z.iso.date(), states: callsByStateSchema })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});
export type CallsSummaryView = z.infer<typeof callsSummarySchema>;

export const allCallsSummarySchema = z.object({
  /** The same days. A campaign without a call on a day is left out there. */
  days: z.array(z.object({ day: z.iso.date(), campaigns: z.array(z.object({ id: identifierSchema, states: callsByStateSchema })) })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});
export type AllCallsSummaryView = z.infer<typeof allCallsSummarySchema>;

// Users

export const userSchema = viewerSchema.extend({
  createdAt: instantSchema,
  lastSignInAt: instantSchema.nullable(),
  /** Since when neither the user nor their keys get in. Absent from earlier cores. */
  disabledAt: instantSchema.nullable().default(null),
  apiKeys: z.number().int(),
});
export type UserView = z.infer<typeof userSchema>;

export const usersSchema = z.object({ users: z.array(userSchema), nextCursor: nextCursorSchema });
export type UsersView = z.infer<typeof usersSchema>;

export const createUserSchema = z.strictObject({
  email: emailSchema,
  name: lineSchema(limits.name),
  userType: userTypeSchema,
  /** Left out: the account of the creator's scope, if that is an account. */
  accountId: identifierSchema.optional(),
  /** Left out: the partner of the creator's scope. */
  partnerId: identifierSchema.optional(),
});
export type CreateUser = z.infer<typeof createUserSchema>;

export const changeUserSchema = z
  .strictObject({
    name: nameSchema.optional(),
    /** Keeps the user and their keys out, and ends their sessions. */
    disabled: z.boolean().optional(),
    /** Another account in the viewer's scope. Null frees a partner user from the one that they are tied to. */
    accountId: identifierSchema.nullable().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, { error: 'Must contain name, disabled or accountId.' });
export type ChangeUser = z.infer<typeof changeUserSchema>;
export const changedUserSchema = z.object({ user: userSchema });
export type ChangedUserView = z.infer<typeof changedUserSchema>;

/** The password is shown this once, to be changed by its user. */
export const createdUserSchema = z.object({ user: userSchema, password: z.string() });
export type CreatedUserView = z.infer<typeof createdUserSchema>;

export const deletionQuerySchema = z.strictObject({ cursor: cursorSchema });

export const deletionSchema = z.object({
  /** Its `apiKeys` is how many keys there are. */
  user: userSchema,
  /** A page of them, newest first. */
  apiKeys: z.array(
    z.object({ id: identifierSchema, name: z.string(), lastUsedAt: instantSchema.nullable(), queuedCalls: z.number().int() }),
  ),
  nextCursor: nextCursorSchema,
  sessions: z.number().int(),
});
export type DeletionView = z.infer<typeof deletionSchema>;

// Activity

const activityFilter = {
  ...dayRange,
  /** The id of the user who did it; `operator` for the operator, on the machine itself. */
  actor: identifierSchema.optional(),
  /** As events have it, such as `api-key.created`. */
  action: z.string().max(limits.identifier).refine(isPrintable, { error: 'Must not contain control characters.' }).optional(),
  /** The id of what it was done to. */
  subject: identifierSchema.optional(),
};
export const activityExportQuerySchema = z.strictObject(activityFilter).check(isRange);
export const activityQuerySchema = z.strictObject({ ...activityFilter, cursor: cursorSchema }).check(isRange);

/** The `actor` of a filter that means the operator. */
export const operatorActor = 'operator';

export const eventSchema = z.object({
  id: identifierSchema,
  at: instantSchema,
  /** Null for the operator, on the machine itself. */
  actor: namedSchema.nullable(),
  action: z.string(),
  subject: z.object({ kind: z.string(), id: identifierSchema, name: z.string() }),
  address: z.string(),
});
export type EventView = z.infer<typeof eventSchema>;

export const activitySchema = z.object({ events: z.array(eventSchema), nextCursor: z.string().nullable(), ...totals });
export type ActivityView = z.infer<typeof activitySchema>;

/** What the events in the viewer's scope can be filtered by. */
export const activityFacetsSchema = z.object({
  /** The people who did something there, under their latest names. `operator` is the operator. */
  actors: z.array(namedSchema),
  actions: z.array(z.string()),
});
export type ActivityFacetsView = z.infer<typeof activityFacetsSchema>;

/** The console has saved a list as a file. It says so by itself: the core has only answered the list's requests. */
export const recordExportSchema = z.strictObject({
  list: z.enum(['api-keys', 'calls', 'users', 'activity'], { error: 'Must be api-keys, calls, users or activity.' }),
  rows: z.number().int().min(0).max(10_000_000),
});
export type RecordExport = z.infer<typeof recordExportSchema>;

// Details of an API key

export const apiKeyDetailsSchema = z.object({
  apiKey: apiKeySchema,
  /** The scope that the key was created in, which decides who sees it. */
  createdIn: placeSchema,
  /** Whose campaigns the key can place calls in now: it follows its creator. */
  reach: placeSchema,
  /** The last 30 days, today included, the oldest first. At most a minute behind; a core that is killed loses that minute. */
  usage: z.array(z.object({ day: z.iso.date(), placed: z.number().int(), cancelled: z.number().int() })),
  /** The newest events about the key that the viewer's Activity has, the newest first, 50 at most. */
  activity: z.array(eventSchema),
});
export type ApiKeyDetailsView = z.infer<typeof apiKeyDetailsSchema>;

/** A new one-time password, shown this once. */
export const resetPasswordSchema = z.object({ password: z.string() });
export type ResetPasswordView = z.infer<typeof resetPasswordSchema>;
