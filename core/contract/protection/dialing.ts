import { z } from 'zod';
import { namedSchema } from '../console/common.ts';
import { limits } from '../limits.ts';
import { route } from '../route.ts';
import { identifierSchema, instantSchema, lineSchema } from '../text/text.ts';
import { expectedVersionSchema, protectionScopes, ruledSchema, rulesVersionSchema, scopedQuery } from './protection.ts';

export const stopScopes = ['server', 'partner', 'account', 'campaign'] as const;
export type StopScope = (typeof stopScopes)[number];

/** While there's a stop, no call of its scope leaves the core. */
export const stopSchema = z.object({
  id: identifierSchema,
  scope: z.enum(stopScopes),
  /** The partner, account or campaign; null for the server. */
  target: namedSchema.nullable(),
  at: instantSchema,
  /** Null for the operator on the server itself. */
  by: namedSchema.nullable(),
  reason: z.string().nullable(),
  /** Whether the user who asks may resume dialing. */
  mayResume: z.boolean(),
});
export type StopView = z.infer<typeof stopSchema>;

export const stopsSchema = z.object({ stops: z.array(stopSchema) });
export type StopsView = z.infer<typeof stopsSchema>;

export const stopDialingSchema = z
  .strictObject({
    scope: z.enum(stopScopes, { error: `Must be one of ${stopScopes.join(', ')}.` }),
    /** The ID of the partner, account or campaign. The server has none. */
    id: identifierSchema.optional(),
    reason: lineSchema(limits.name).nullable().optional(),
    cancelQueuedCalls: z.boolean({ error: 'Must be true or false.' }).optional(),
  })
  .refine(({ scope, id }) => (scope === 'server') === (id === undefined), {
    path: ['id'],
    error: 'Must be the ID of the partner, account or campaign, or omitted for the server.',
  });
export type StopDialing = z.infer<typeof stopDialingSchema>;

/** The counts are as of the response. The provider can no longer be kept from dialing the calls that it has. */
export const stoppedDialingSchema = z.object({ stop: stopSchema, queuedCalls: z.number().int(), withProvider: z.number().int() });
export type StoppedDialingView = z.infer<typeof stoppedDialingSchema>;

const perSecondError = { error: 'Must be a number from 0.1 to 1000, or null.' };
const liveCallsError = { error: 'Must be a whole number from 1 to 100000, or null.' };
/** How many calls may leave the core per second, and how many may be with the provider at the same time. Null for any number. */
export const paceSchema = z.strictObject({
  perSecond: z.number(perSecondError).min(0.1, perSecondError).max(1_000, perSecondError).nullable(),
  liveCalls: z.int(liveCallsError).min(1, liveCallsError).max(100_000, liveCallsError).nullable(),
});
export type Pace = z.infer<typeof paceSchema>;

export const scopePaceSchema = z.object({ ...paceSchema.shape, version: rulesVersionSchema });
export type PaceView = z.infer<typeof scopePaceSchema>;

export const setPaceSchema = paceSchema.extend({ version: expectedVersionSchema });

const countError = { error: 'Must be a whole number from 1 to 100.' };
const daysError = { error: 'Must be a whole number from 1 to 30.' };
const minutesError = { error: 'Must be a whole number from 0 to 43200.' };
/** One number gets at most `calls` calls in `days` days, at least `minutesBetween` minutes apart. */
export const contactLimitsSchema = z.strictObject({
  calls: z.int(countError).min(1, countError).max(100, countError),
  days: z.int(daysError).min(1, daysError).max(30, daysError),
  minutesBetween: z.int(minutesError).min(0, minutesError).max(43_200, minutesError),
});
export type ContactLimits = z.infer<typeof contactLimitsSchema>;

/** Null removes the scope's own limits, so that those of its account or partner apply. */
export const setContactLimitsSchema = z.strictObject({ limits: contactLimitsSchema.nullable(), version: expectedVersionSchema });

export const scopeContactLimitsSchema = z.object({
  scope: ruledSchema,
  limits: contactLimitsSchema.nullable(),
  version: rulesVersionSchema,
  /** The limits in effect for the scope's calls, and where they come from; null if there are none. */
  effective: z.object({ from: ruledSchema, limits: contactLimitsSchema }).nullable(),
});
export type ContactLimitsView = z.infer<typeof scopeContactLimitsSchema>;

/** What a held call waits for, other than calling hours. */
export const heldReasons = ['stop', 'pace', 'contact-limit'] as const;
export type HeldFor = (typeof heldReasons)[number];

export const dialingRoutes = {
  stopDialing: route('POST', '/console/stops', {
    summary:
      'Stop dialing for the server (staff only), a partner, an account or a campaign. Once this has responded, no call leaves the core until dialing is resumed',
    body: stopDialingSchema,
    answer: stoppedDialingSchema,
    status: 201,
    repeated: 200,
    problems: ['forbidden'],
  }),
  listStops: route('GET', '/console/stops', {
    summary: 'List what is stopped, including by stops of the whole partner or server',
    answer: stopsSchema,
  }),
  showStop: route('GET', '/console/stops/:id', {
    summary: 'Show a stop that you can resume, with how many calls wait for it',
    answer: stoppedDialingSchema,
    problems: ['forbidden'],
  }),
  resumeDialing: route('DELETE', '/console/stops/:id', {
    summary: 'Resume dialing',
    problems: ['forbidden'],
  }),
  showPace: route('GET', '/console/pace', {
    summary: 'Show how fast the calls of an account or campaign leave the core',
    query: scopedQuery(['account', 'campaign']),
    answer: scopePaceSchema,
  }),
  setPace: route('PUT', '/console/pace', {
    summary: 'Set how fast the calls of an account or campaign leave the core (partner users and staff only)',
    query: scopedQuery(['account', 'campaign']),
    body: setPaceSchema,
    answer: scopePaceSchema,
    problems: ['forbidden', 'conflict'],
  }),
  showContactLimits: route('GET', '/console/contact-limits', {
    summary: 'Show how often the calls of a partner, account or campaign may reach one number',
    query: scopedQuery(protectionScopes),
    answer: scopeContactLimitsSchema,
  }),
  setContactLimits: route('PUT', '/console/contact-limits', {
    summary: 'Set how often the calls of a partner, account or campaign may reach one number (partner users and staff only)',
    query: scopedQuery(protectionScopes),
    body: setContactLimitsSchema,
    answer: scopeContactLimitsSchema,
    problems: ['forbidden', 'conflict'],
  }),
} as const;
