import { z } from 'zod';
import { callStates } from './calls/states.ts';
import { expirationSchema, timeZoneSchema } from './expiry.ts';
import { limits } from './limits.ts';
import { networksSchema } from './text/networks.ts';
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

/** Null for the first page. */
export const cursorSchema = identifierSchema.optional().transform((cursor) => cursor ?? null);
export const searchSchema = z
  .string()
  .max(limits.search)
  .refine(isPrintable, { error: 'Must not contain control characters.' })
  .default('');

export const daySchema = z.iso
  .date({ error: 'Must be a date in the format YYYY-MM-DD.' })
  .refine((day) => day >= '1970-01-01' && day <= '9998-12-31', { error: 'Must be a date from 1970-01-01 to 9998-12-31.' });

/** Calendar days in a time zone, both included. */
const dayRange = {
  from: daySchema.optional(),
  to: daySchema.optional(),
  timeZone: timeZoneSchema.default('UTC'),
};

/** Days in the format YYYY-MM-DD sort as text. */
function isRange({ value: { from, to }, issues }: z.core.ParsePayload<{ from?: string | undefined; to?: string | undefined }>): void {
  if (from !== undefined && to !== undefined && from > to)
    issues.push({ code: 'custom', path: ['from'], message: 'Must not be after "to".', input: from });
}

/** The number of all matches, up to 10,000. Earlier cores don't send it. */
const totals = {
  total: z.number().int().optional(),
  /** Whether there are, or may be, more matches than `total`. */
  totalIsMore: z.boolean().optional(),
};

export const namedSchema = z.object({ id: identifierSchema, name: z.string() });
export type Named = z.infer<typeof namedSchema>;

/** An account, or a partner with all its accounts. */
export const placeSchema = z.object({ kind: tenancyKindSchema, id: identifierSchema, name: z.string() });

// Sessions

export const signInSchema = z.strictObject({
  email: z.string().max(1_000).transform(normalEmail),
  password: z.string().max(1_000),
});

/** Six digits from an authenticator app, or a recovery code. */
const codeSchema = z.string().max(100);

/** The response to a right password if a code has to follow. */
export const secondFactorNeededSchema = z.object({ secondFactor: z.literal(true) });
export const enterCodeSchema = z.strictObject({ code: codeSchema });
/** The code is required if the signed-in user has a second factor. */
export const confirmedByCodeSchema = z.strictObject({ code: codeSchema.optional() }).optional();

export const enrollSecondFactorSchema = z.strictObject({ currentPassword: z.string().max(1_000) });
/** @property secret in base32, as authenticator apps expect. @property uri contains it, for a QR code */
export const enrolledSecondFactorSchema = z.object({ secret: z.string(), uri: z.string() });
export type EnrolledSecondFactorView = z.infer<typeof enrolledSecondFactorSchema>;
export const recoveryCodesSchema = z.object({ recoveryCodes: z.array(z.string()) });
export type RecoveryCodesView = z.infer<typeof recoveryCodesSchema>;

/** Only the length of a new password matters (NIST SP 800-63B §3.1.1.2). No characters are required. */
export const newPasswordSchema = z
  .string()
  .refine((text) => codePoints(text) >= limits.passwordMin, { error: `Must be at least ${limits.passwordMin} characters.` })
  .refine((text) => isWithinCodePoints(text, limits.passwordMax), { error: `Must be at most ${limits.passwordMax} characters.` })
  .meta({ minLength: limits.passwordMin, maxLength: limits.passwordMax });

export const changePasswordSchema = z.strictObject({
  /** Required, unless the user signed in with a one-time password. */
  currentPassword: z.string().max(1_000).optional(),
  newPassword: newPasswordSchema,
  /** Required if the user has a second factor, unless they signed in with a one-time password. */
  code: codeSchema.optional(),
});
export type PasswordChange = z.infer<typeof changePasswordSchema>;

/** The tenancy that a staff user's request is for: `account/` or `partner/`, and the ID. It overrides the session's tenancy. */
export const tenancyHeader = 'Callkey-Tenancy';

export const selectTenancySchema = z.union(
  [z.strictObject({ kind: tenancyKindSchema, id: identifierSchema }), z.strictObject({ kind: z.null() })],
  { error: 'Must be {"kind":"account" or "partner","id":…}, or {"kind":null} to clear the selection.' },
);

/** @property partnerName the account's partner, because two accounts may have the same name. Earlier cores omit it from a session. */
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
  /**
   * Present, and true, while the user still has a one-time password that someone else chose. Until the user changes it, they can't do
   * anything else.
   */
  passwordChangeDue: z.literal(true).optional(),
  /** Whether the user has a second factor. Earlier cores don't send it. */
  secondFactor: z.boolean().optional(),
  /** Present, and true, until the user has set up a second factor that the operator requires. Until then, they can't do anything else. */
  secondFactorDue: z.literal(true).optional(),
  /** What dials the calls: a provider, nothing, or a simulation. Earlier cores don't send it. */
  dialer: z.enum(['off', 'simulated', 'webhook']).optional(),
  /** The name of the provider that the user signed in with; missing after signing in with a password. */
  signedInWith: z.string().optional(),
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
  /** The key expires at the end of a day in this time zone. */
  expiryTimeZone: z.string().nullable(),
  expired: z.boolean(),
  /** Present if the viewer can see other users' keys. Earlier cores don't send the email address. */
  owner: z.object({ isYou: z.boolean(), name: z.string(), email: z.string().optional() }).optional(),
  /** Present, and true, while the owner is disabled and the key is refused. */
  ownerDisabled: z.literal(true).optional(),
  /** Present, and true, if the owner hasn't signed in for 90 days. */
  ownerAway: z.literal(true).optional(),
  /** The addresses and networks (CIDR) from which the key is accepted; null for any address. Earlier cores don't send it. */
  addresses: z.array(z.string()).nullable().default(null),
  /** How many calls the key can place on one day; null for no limit. Earlier cores don't send it. */
  callsPerDay: z.number().int().nullable().default(null),
  /** Changes with each change of the two limits; null if the key has none. */
  limitsVersion: z.string().nullable().default(null),
});
export type ApiKeyView = z.infer<typeof apiKeySchema>;

export const apiKeysQuerySchema = z.strictObject({
  /** The ID of a key. Lists up to `limit` keys after it. */
  olderThan: identifierSchema.optional(),
});

export const apiKeysSchema = z.object({
  /** Newest first. */
  apiKeys: z.array(apiKeySchema),
  /** The number of keys in the viewer's scope. The list contains only the newest, up to `limit`. */
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

export const revocationSchema = z.object({
  apiKey: apiKeySchema,
  queuedCalls: z.number().int(),
  /** What the key has done in the last 24 hours. Earlier cores don't send it. The counts are up to a minute behind. */
  lastDay: z
    .object({
      placed: z.number().int(),
      addresses: z.array(z.object({ address: z.string(), lastUsedAt: instantSchema })),
    })
    .optional(),
});
export type RevocationView = z.infer<typeof revocationSchema>;

/** A query parameter that is off unless it says `true`. */
const flagSchema = z
  .enum(['true', 'false'], { error: 'Must be true or false.' })
  .default('false')
  .transform((text) => text === 'true');

export const revokeQuerySchema = z.strictObject({
  cancelQueuedCalls: flagSchema,
});

/** Why keys are revoked, and how the activity says it. */
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
  /** Explains the reason. Required with `other`. */
  note: lineSchema(limits.revokeNote).optional(),
};
const hasNote = ({ reason, note }: { reason?: RevokeReason | undefined; note?: string | undefined }) =>
  reason !== 'other' || note !== undefined;
const noteMissing = { path: ['note'], error: 'The reason other needs a note.' };
export const revokeApiKeyQuerySchema = revokeQuerySchema.extend(why).refine(hasNote, noteMissing);
export type RevokeApiKey = z.infer<typeof revokeApiKeyQuerySchema>;

export const changeApiKeySchema = z
  .strictObject({
    /** Null for any address. */
    addresses: networksSchema.nullable().optional(),
    /** Null for no limit. */
    callsPerDay: z
      .int({ error: 'Must be a whole number.' })
      .min(1, { error: 'Must be at least 1.' })
      .max(limits.callsPerDay, { error: `Must be at most ${limits.callsPerDay}.` })
      .nullable()
      .optional(),
    /** The version that the change is based on. If the key has another one, the change is refused. If omitted, the last change wins. */
    limitsVersion: z.string().nullable().optional(),
  })
  .refine(({ addresses, callsPerDay }) => addresses !== undefined || callsPerDay !== undefined, {
    error: 'Must contain addresses or callsPerDay.',
  });
export type ChangeApiKey = z.infer<typeof changeApiKeySchema>;
export const changedApiKeySchema = z.object({ apiKey: apiKeySchema });
export type ChangedApiKeyView = z.infer<typeof changedApiKeySchema>;

/** Revokes all of them in one transaction. It isn't an error if a key isn't visible to the viewer or is already revoked. */
export const revokeApiKeysSchema = z
  .strictObject({
    ids: z
      .array(identifierSchema)
      .min(1, { error: 'Must contain at least one ID.' })
      .max(limits.revokedApiKeys, { error: `Must contain at most ${limits.revokedApiKeys} IDs.` }),
    cancelQueuedCalls: z.boolean().default(false),
    ...why,
  })
  .refine(hasNote, noteMissing);
export type RevokeApiKeys = z.infer<typeof revokeApiKeysSchema>;

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
export type IdentifiedApiKeyView = z.infer<typeof identifiedApiKeySchema>;

// Accounts and campaigns

/** A page of a list that can be searched by name. In the directory, the search includes only a row's own name. */
export const directoryQuerySchema = z.strictObject({ search: searchSchema, cursor: cursorSchema });

/** Null on the last page. Earlier cores have only one page, and don't send it. */
export const nextCursorSchema = z.string().nullable().default(null);

export const accountsSchema = z.object({ accounts: z.array(namedSchema), nextCursor: nextCursorSchema });
export type AccountsView = z.infer<typeof accountsSchema>;

export const campaignsSchema = z.object({
  /** Sorted by account and name. The search includes both names, and finds a campaign by its ID. */
  campaigns: z.array(z.object({ id: identifierSchema, name: z.string(), account: namedSchema })),
  nextCursor: nextCursorSchema,
});
export type CampaignsView = z.infer<typeof campaignsSchema>;

// Directory: managing partners, accounts and campaigns

const nameSchema = lineSchema(limits.name);

/** If the database has no partners, staff create the first of each. */
export const setupSchema = z.strictObject({ partner: nameSchema, account: nameSchema, campaign: nameSchema });
export type Setup = z.infer<typeof setupSchema>;
export const createdSetupSchema = z.object({ partner: namedSchema, account: namedSchema, campaign: namedSchema });
export type CreatedSetupView = z.infer<typeof createdSetupSchema>;

/** Without a partner, lists the accounts of all partners that the viewer manages. */
export const directoryAccountsQuerySchema = directoryQuerySchema.extend({ partner: identifierSchema.optional() });
/** Without an account, lists the campaigns of all accounts that the viewer manages. */
export const directoryCampaignsQuerySchema = directoryQuerySchema.extend({ account: identifierSchema.optional() });

const directoryPartnerSchema = namedSchema.extend({ accounts: z.number().int() });
const directoryAccountSchema = namedSchema.extend({ partner: namedSchema, campaigns: z.number().int() });
const directoryCampaignSchema = namedSchema.extend({ account: namedSchema, partner: namedSchema });

/** Sorted by name. */
export const directoryPartnersSchema = z.object({ partners: z.array(directoryPartnerSchema), nextCursor: nextCursorSchema });
export type DirectoryPartnersView = z.infer<typeof directoryPartnersSchema>;
/** Sorted by the names of partner and account. */
export const directoryAccountsSchema = z.object({ accounts: z.array(directoryAccountSchema), nextCursor: nextCursorSchema });
export type DirectoryAccountsView = z.infer<typeof directoryAccountsSchema>;
/** Sorted by the names of partner, account and campaign. */
export const directoryCampaignsSchema = z.object({ campaigns: z.array(directoryCampaignSchema), nextCursor: nextCursorSchema });
export type DirectoryCampaignsView = z.infer<typeof directoryCampaignsSchema>;

/** Creates a partner, or renames a partner, account or campaign. */
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
  /** One or more states. */
  state: z
    .union([stateSchema, z.array(stateSchema).max(callStates.length)], stateError)
    .optional()
    .transform((given) => (given === undefined ? [] : [given].flat())),
  /** The ID of the key that placed the call. */
  apiKey: identifierSchema.optional(),
};
/** Searches the contact's name and phone number, and the request ID. */
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
  /** When calling hours allow the call; null if it isn't waiting for that. Earlier cores don't send it. */
  heldUntil: instantSchema.nullable().optional(),
  /** The time zone of these hours: the contact's, or the only one in which the number may be; null if there are several. */
  heldZone: z.string().nullable().optional(),
  /** The key that placed the call; null if the viewer can't see that key. */
  apiKey: z.object({ id: identifierSchema, name: z.string(), owner: z.object({ isYou: z.boolean(), name: z.string() }) }).nullable(),
  /** No phone rang: the core invented the outcome. */
  simulated: z.boolean(),
  /** Earlier cores don't send it. */
  campaign: namedSchema.optional(),
});
export type CallView = z.infer<typeof callSchema>;

export const callsSchema = z.object({
  calls: z.array(callSchema),
  nextCursor: z.string().nullable(),
  /**
   * Present if the search took too long to fill a page. The search has covered calls placed since this time, and the next page continues
   * from there.
   */
  searchedBackTo: instantSchema.optional(),
  ...totals,
});
export type CallsView = z.infer<typeof callsSchema>;

/** Adds the details of a call that a list doesn't show. The time zone and variables are also null once contact data has been erased. */
export const callDetailsSchema = z.object({
  call: callSchema,
  /** The contact's time zone. */
  timeZone: z.string().nullable(),
  variables: z.record(z.string(), z.string()).nullable(),
  notBefore: instantSchema.nullable(),
  notAfter: instantSchema.nullable(),
  /** As reported by the provider. */
  durationSeconds: z.number().nullable(),
  /** How often a dialer has claimed the call, to hand it off or to check on its outcome. */
  attempts: z.number().int(),
  firstAttemptAt: instantSchema.nullable(),
  /** When a dialer will claim the call next; null while a provider has it, and once it has ended. */
  nextAttemptAt: instantSchema.nullable(),
  /** When the provider reported the outcome of a call that had been `unknown`. */
  toldLateAt: instantSchema.nullable().default(null),
});
export type CallDetailsView = z.infer<typeof callDetailsSchema>;

/** The time zone of a chart's calendar days. */
const chartZone = { timeZone: timeZoneSchema };
export const chartQuerySchema = z.strictObject(chartZone);
export const callsSummaryQuerySchema = z.strictObject({ ...callFilter, ...callSearch, ...chartZone }).check(isRange);
/** Covers one page of the campaign list, selected by `campaignSearch` and `cursor`. */
export const allCallsSummaryQuerySchema = z
  .strictObject({ ...callFilter, ...callSearch, campaignSearch: searchSchema, cursor: cursorSchema, ...chartZone })
  .check(isRange);

const callsByStateSchema = z.partialRecord(z.enum(callStates), z.number().int());

/** Null unless the provider hasn't taken any calls for at least a minute. */
const dialerTroubleSchema = z.object({ since: instantSchema, reason: z.string() }).nullable().default(null);
export type DialerTroubleView = z.infer<typeof dialerTroubleSchema>;

/** Present if there are too many calls to count. Only calls placed since this time are counted. */
const countedBackTo = { countedBackTo: instantSchema.optional() };

export const callsSummarySchema = z.object({
  /**
   * The days of the range, oldest first. Without a range, the last 30 days, including today. A call counts on the day it was placed. States
   * without calls are omitted.
   */
  days: z.array(z.object({ day: z.iso.date(), states: callsByStateSchema })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});
export type CallsSummaryView = z.infer<typeof callsSummarySchema>;

export const allCallsSummarySchema = z.object({
  /** The same days. Campaigns without calls are omitted. */
  days: z.array(z.object({ day: z.iso.date(), campaigns: z.array(z.object({ id: identifierSchema, states: callsByStateSchema })) })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});
export type AllCallsSummaryView = z.infer<typeof allCallsSummarySchema>;

// Users

export const userSchema = viewerSchema.extend({
  /** With its partner's name, because two accounts may have the same name. Earlier cores don't send it. */
  account: namedSchema.extend({ partnerName: z.string().optional() }).nullable(),
  createdAt: instantSchema,
  lastSignInAt: instantSchema.nullable(),
  /** When the user was disabled. Since then, the user and their keys have been refused. Earlier cores don't send it. */
  disabledAt: instantSchema.nullable().default(null),
  apiKeys: z.number().int(),
  /** The person at the OpenID Connect provider who signs in as this user. Earlier cores don't send it. */
  link: z.object({ issuer: z.string(), subject: z.string(), linkedAt: instantSchema }).nullable().default(null),
  /** Whether the user has a second factor. Earlier cores don't send it. */
  secondFactor: z.boolean().optional(),
});
export type UserView = z.infer<typeof userSchema>;

/** `away` lists only users who haven't signed in for 90 days. A user who never has counts from their creation. */
export const usersQuerySchema = directoryQuerySchema.extend({ away: flagSchema });
export const usersSchema = z.object({ users: z.array(userSchema), nextCursor: nextCursorSchema });
export type UsersView = z.infer<typeof usersSchema>;

export const createUserSchema = z.strictObject({
  email: emailSchema,
  name: lineSchema(limits.name),
  userType: userTypeSchema,
  /** If omitted, the account of the creator's scope, if the scope is an account. */
  accountId: identifierSchema.optional(),
  /** If omitted, the partner of the creator's scope. */
  partnerId: identifierSchema.optional(),
});
export type CreateUser = z.infer<typeof createUserSchema>;

export const changeUserSchema = z
  .strictObject({
    name: nameSchema.optional(),
    /** Refuses the user and their keys, and ends their sessions. */
    disabled: z.boolean().optional(),
    /** Another account in the viewer's scope. Null removes a partner user's limit to one account. */
    accountId: identifierSchema.nullable().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, { error: 'Must contain name, disabled or accountId.' });
export type ChangeUser = z.infer<typeof changeUserSchema>;
export const changedUserSchema = z.object({ user: userSchema });
export type ChangedUserView = z.infer<typeof changedUserSchema>;

/** The password is shown only once, and the user has to change it. It's null if passwords are turned off. */
export const createdUserSchema = z.object({ user: userSchema, password: z.string().nullable() });
export type CreatedUserView = z.infer<typeof createdUserSchema>;

export const deletionQuerySchema = z.strictObject({ cursor: cursorSchema });

export const deletionSchema = z.object({
  /** `apiKeys` is the number of keys. */
  user: userSchema,
  /** A page of keys, newest first. */
  apiKeys: z.array(
    z.object({ id: identifierSchema, name: z.string(), lastUsedAt: instantSchema.nullable(), queuedCalls: z.number().int() }),
  ),
  nextCursor: nextCursorSchema,
  sessions: z.number().int(),
});
export type DeletionView = z.infer<typeof deletionSchema>;

// Activity

/** Everything that the audit log records. */
export const auditActions = [
  ...(['session.started', 'session.ended', 'session.refused', 'session.revoked', 'tenancy.selected'] as const),
  ...(['session.refused-unknown', 'session.refused-disabled', 'session.refused-unverified', 'session.refused-other-person'] as const),
  ...(['user.added', 'user.changed', 'user.disabled', 'user.enabled', 'user.deleted', 'user.linked', 'user.unlinked'] as const),
  ...(['second-factor.enabled', 'second-factor.removed', 'second-factor.reset', 'second-factor.refused', 'recovery-code.used'] as const),
  ...(['password.changed', 'password.reset', 'api-key.created', 'api-key.limited', 'api-key.refused', 'api-key.revoked'] as const),
  ...(['partner.added', 'partner.changed', 'account.added', 'account.changed', 'campaign.added', 'campaign.changed'] as const),
  ...([
    'contact.erased',
    'contact.exported',
    'list.exported',
    'retention.run',
    'backup.created',
    'audit.pruned',
    'clock.accepted',
  ] as const),
  ...(['do-not-call.added', 'do-not-call.imported', 'do-not-call.lifted', 'calling-hours.changed', 'numbers.changed'] as const),
] as const;
export type AuditAction = (typeof auditActions)[number];

const activityFilter = {
  ...dayRange,
  /** The ID of the user who acted, or `operator` for the operator on the server itself. */
  actor: identifierSchema.optional(),
  action: z
    .string()
    .refine((action) => auditActions.some((known) => known === action), { error: `Must be one of ${auditActions.join(', ')}.` })
    .meta({ enum: [...auditActions] })
    .optional(),
  /** The ID of the subject. */
  subject: identifierSchema.optional(),
};
export const activityExportQuerySchema = z.strictObject(activityFilter).check(isRange);
export const activityQuerySchema = z.strictObject({ ...activityFilter, cursor: cursorSchema }).check(isRange);

/** The value of `actor` for the operator. */
export const operatorActor = 'operator';

/** Deleted users have no email address. Only staff can see those of staff. */
const actorSchema = namedSchema.extend({ email: z.string().optional() });

export const eventSchema = z.object({
  id: identifierSchema,
  at: instantSchema,
  /** Null for the operator on the server itself. */
  actor: actorSchema.nullable(),
  action: z.string(),
  subject: z.object({ kind: z.string(), id: identifierSchema, name: z.string() }),
  address: z.string(),
  /** What was changed, or why. */
  detail: z.string().optional(),
});
export type EventView = z.infer<typeof eventSchema>;

export const activitySchema = z.object({ events: z.array(eventSchema), nextCursor: z.string().nullable(), ...totals });
export type ActivityView = z.infer<typeof activitySchema>;

/** The filter values that occur among the events in the viewer's scope. */
export const activityFacetsSchema = z.object({
  /** The users who acted in the viewer's scope, with their current names. `operator` is the operator. */
  actors: z.array(actorSchema),
  actions: z.array(z.string()),
});
export type ActivityFacetsView = z.infer<typeof activityFacetsSchema>;

/** Records that the console saved a list as a file. The console has to report this, because the core sees only requests for the list. */
export const recordExportSchema = z.strictObject({
  list: z.enum(['api-keys', 'calls', 'users', 'activity'], { error: 'Must be api-keys, calls, users or activity.' }),
  rows: z.number().int().min(0).max(10_000_000),
});
export type RecordExport = z.infer<typeof recordExportSchema>;

// Details of an API key

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
  /** The address of the last request that the key authenticated, as far as it's been recorded. */
  lastUsedAddress: z.string().nullable().default(null),
  /** The current day in the key's time zone, if the key has a limit of calls per day. */
  today: z.object({ day: z.iso.date(), timeZone: z.string(), placed: z.number().int(), resetsAt: instantSchema }).nullable().default(null),
  /** The address of a proxy that isn't trusted, if this request came through one. All clients behind it seem to have its address. */
  ignoredProxy: z.string().optional(),
  /** The newest events about the key that the viewer can see in Activity, at most 50, newest first. */
  activity: z.array(eventSchema),
});
export type ApiKeyDetailsView = z.infer<typeof apiKeyDetailsSchema>;

/** A new one-time password, shown only once. */
export const resetPasswordSchema = z.object({ password: z.string() });
export type ResetPasswordView = z.infer<typeof resetPasswordSchema>;
