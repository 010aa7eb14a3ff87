import { z } from 'zod';
import { daySchema, directoryQuerySchema, namedSchema, nextCursorSchema, searchSchema, totals } from '../console/common.ts';
import { limits } from '../limits.ts';
import { route } from '../route.ts';
import { identifierSchema, instantSchema, lineSchema } from '../text/text.ts';
import { timeZoneSchema } from '../time-zones.ts';
import { hoursRuleSchema, hoursRulesSchema } from './calling-hours.ts';
import { doNotCallEntrySchema, doNotCallReasonSchema, maxAddedNumbers } from './do-not-call.ts';
import { countrySchema, numberRulesSchema, restrictedKinds } from './numbers.ts';

// Do-not-call list

export const doNotCallSchema = z.object({
  /** Newest first, or by number if there's a search. */
  entries: z.array(doNotCallEntrySchema),
  nextCursor: nextCursorSchema,
  ...totals,
});
export type DoNotCallView = z.infer<typeof doNotCallSchema>;

export const addNumbersSchema = z
  .strictObject({
    phones: z
      .array(z.string().max(50, { error: 'Must be at most 50 characters.' }))
      .min(1, { error: 'Must contain at least one number.' })
      .max(maxAddedNumbers, { error: `Must contain at most ${maxAddedNumbers} numbers.` }),
    /** For numbers without a country code. */
    country: countrySchema.optional(),
    reason: doNotCallReasonSchema,
    note: lineSchema(limits.name).optional(),
    /** The last day of the entries, in `timeZone`. Without it, they don't end. */
    until: daySchema.optional(),
    timeZone: timeZoneSchema.default('UTC'),
    /** If neither ID is sent, the numbers are added for the account or partner of the viewer's scope. */
    accountId: identifierSchema.optional(),
    partnerId: identifierSchema.optional(),
  })
  .refine(({ accountId, partnerId }) => accountId === undefined || partnerId === undefined, {
    path: ['partnerId'],
    error: 'Send either accountId or partnerId.',
  });
export type AddNumbers = z.infer<typeof addNumbersSchema>;

export const addedNumbersSchema = z.object({
  added: z.number().int(),
  /** Numbers that were already on the list. */
  known: z.number().int(),
  /** Those numbers, as they were sent. Omitted if there are none. */
  knownPhones: z.array(z.string()).optional(),
  /** Calls to these numbers that are being dialed, and can no longer be stopped. */
  beingDialed: z.number().int(),
  /** Numbers of a possible length that aren't valid, because they're old, or newer than our data. They're on the list, too. */
  notValid: z.number().int().optional(),
});
export type AddedNumbersView = z.infer<typeof addedNumbersSchema>;

export const liftNumberSchema = z.strictObject({ reason: lineSchema(limits.name, 'Enter the reason.') });

// Calling hours and numbers

export const protectionScopes = ['partner', 'account', 'campaign'] as const;
export type ProtectionScope = (typeof protectionScopes)[number];

/** A partner, account or campaign, each of which can have rules of its own. */
export const ruledSchema = namedSchema.extend({ kind: z.enum(protectionScopes) });

export function scopedQuery<const Scopes extends readonly ProtectionScope[]>(
  scopes: Scopes,
  error = `Must be one of ${scopes.join(', ')}.`,
) {
  return z.strictObject({ scope: z.enum(scopes, { error }), id: identifierSchema });
}

/** Changes with the scope's own rules. */
export const rulesVersionSchema = z.string();

/** Refuses a change if the scope's rules have changed since this version. If omitted, the last change wins. */
export const expectedVersionSchema = z.string().optional();

export const callingHoursSchema = z.object({
  scope: ruledSchema,
  rules: z.array(hoursRuleSchema),
  version: rulesVersionSchema,
  /** The rules that apply if this scope has none: those of the campaign's account, or else of its partner. */
  inherited: z.object({ from: ruledSchema, rules: z.array(hoursRuleSchema) }).nullable(),
});
export type CallingHoursView = z.infer<typeof callingHoursSchema>;

/** Replaces all rules of the scope. A scope without rules inherits them. */
export const setCallingHoursSchema = z.strictObject({ rules: hoursRulesSchema, version: expectedVersionSchema });

const numbersQuery = scopedQuery(['partner', 'account'], 'Must be partner or account.');

export const numbersSchema = z.object({
  scope: ruledSchema,
  countries: numberRulesSchema.shape.countries,
  kinds: numberRulesSchema.shape.kinds,
  version: rulesVersionSchema,
  /** An account's own settings, or else its partner's, or else all countries and no restricted kinds. */
  effective: z.object({ countries: z.array(z.string()), kinds: z.array(z.enum(restrictedKinds)) }),
});
export type NumbersView = z.infer<typeof numbersSchema>;

/** Null removes the scope's own setting. */
export const setNumbersSchema = numberRulesSchema.extend({ version: expectedVersionSchema });

// Opt-outs during calls

export const optOutScopes = ['account', 'partner'] as const;
export type OptOutScope = (typeof optOutScopes)[number];

/** Opt-outs during the account's calls apply to this account only, or to all of its partner's accounts. */
export const optOutsSchema = z.strictObject({ listedFor: z.enum(optOutScopes, { error: 'Must be account or partner.' }) });

export const checkNumberSchema = z.strictObject({
  phone: z.string().max(50, { error: 'Must be at most 50 characters.' }),
  timeZone: timeZoneSchema.optional(),
  campaignId: identifierSchema,
});
export type CheckNumber = z.infer<typeof checkNumberSchema>;

const checkReasons = ['do-not-call', 'number-kind', 'country', 'outside-calling-hours', 'unknown-time-zone', 'contact-limit'] as const;
export type CheckReason = (typeof checkReasons)[number];

export const checkedNumberSchema = z.object({
  /** In E.164 format. */
  phone: z.string(),
  allowed: z.boolean(),
  reasons: z.array(z.enum(checkReasons)),
  kind: z.enum(['ordinary', ...restrictedKinds]),
  /** Null for numbers that don't belong to a country. */
  country: z.string().nullable(),
  /** The number of possible time zones; 0 if none is known. */
  zones: z.number().int(),
  /** The names of up to twenty of these time zones. */
  zoneNames: z.array(z.string()),
  /** The do-not-call entries that block the number. */
  entries: z.array(doNotCallEntrySchema),
  /** The rules that apply to this number today or on other days; empty if no calling hours apply. */
  rules: z.array(hoursRuleSchema),
  /** The scope that has these rules. */
  rulesFrom: ruledSchema.nullable(),
  /** The scope whose contact limits apply; omitted if none do. */
  limitsFrom: ruledSchema.optional(),
  /** When the number was last called, as far as these limits count it. */
  lastCalledAt: instantSchema.optional(),
  /** When calling hours next open, and contact limits allow a call; omitted if both allow it now, or hours don't open within 31 days. */
  opensAt: instantSchema.optional(),
});
export type CheckedNumberView = z.infer<typeof checkedNumberSchema>;

export const protectionRoutes = {
  listDoNotCall: route('GET', '/console/do-not-call', {
    summary: 'List the numbers that must not be called',
    query: directoryQuerySchema,
    answer: doNotCallSchema,
  }),
  addDoNotCall: route('POST', '/console/do-not-call', {
    summary: 'Add numbers to the do-not-call list. Adding a number again is not an error',
    body: addNumbersSchema,
    answer: addedNumbersSchema,
    status: 201,
    problems: ['forbidden'],
  }),
  liftDoNotCall: route('DELETE', '/console/do-not-call/:id', {
    summary: 'Remove a number from the do-not-call list, with a reason (partner users and staff only)',
    body: liftNumberSchema,
    problems: ['forbidden'],
  }),
  exportDoNotCall: route('GET', '/console/do-not-call.csv', {
    summary: 'Export the do-not-call list. A complete file ends with the line `# complete, N rows`',
    query: z.strictObject({ search: searchSchema }),
    answer: 'csv',
  }),
  showCallingHours: route('GET', '/console/calling-hours', {
    summary: 'Show the calling hours of a partner, account or campaign',
    query: scopedQuery(protectionScopes),
    answer: callingHoursSchema,
  }),
  setCallingHours: route('PUT', '/console/calling-hours', {
    summary: 'Replace the calling hours of a partner, account or campaign (partner users and staff only)',
    query: scopedQuery(protectionScopes),
    body: setCallingHoursSchema,
    answer: callingHoursSchema,
    problems: ['forbidden', 'conflict'],
  }),
  showNumbers: route('GET', '/console/numbers', {
    summary: 'Show which numbers a partner or account may call',
    query: numbersQuery,
    answer: numbersSchema,
  }),
  setNumbers: route('PUT', '/console/numbers', {
    summary: 'Set which numbers a partner or account may call (partner users and staff only)',
    query: numbersQuery,
    body: setNumbersSchema,
    answer: numbersSchema,
    problems: ['forbidden', 'conflict'],
  }),
  showOptOuts: route('GET', '/console/accounts/:id/opt-outs', {
    summary: "Show whether opt-outs during an account's calls apply to this account only or to all of its partner's accounts",
    answer: optOutsSchema,
  }),
  setOptOuts: route('PUT', '/console/accounts/:id/opt-outs', {
    summary:
      "Set whether opt-outs during an account's calls apply to this account only or to all of its partner's accounts (only users who can see all of them)",
    body: optOutsSchema,
    answer: optOutsSchema,
    problems: ['forbidden'],
  }),
  checkNumber: route('POST', '/console/numbers/check', {
    summary: 'Check what would happen if a number were called now, and why',
    body: checkNumberSchema,
    answer: checkedNumberSchema,
  }),
} as const;
