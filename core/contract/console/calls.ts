import { z } from 'zod';
import { answerers } from '../calls/dialer.ts';
import { callStates } from '../calls/states.ts';
import { heldReasons } from '../protection/dialing.ts';
import { route } from '../route.ts';
import { identifierSchema, instantSchema } from '../text/text.ts';
import { cursorSchema, dayRange, isRange, namedSchema, searchSchema, totals } from './common.ts';

const stateError = { error: `Must be one of ${callStates.join(', ')}.` };

const stateSchema = z.enum(callStates, stateError);

const callFilter = {
  ...dayRange,
  /** One or more states. */
  state: z
    .union([stateSchema, z.array(stateSchema).max(callStates.length)], stateError)
    .optional()
    .transform((values) => (values === undefined ? [] : [values].flat())),
  apiKey: identifierSchema.optional(),
  /** Searches the contact's name and phone number, and the request ID. */
  search: searchSchema,
};

const callsExportQuerySchema = z.strictObject(callFilter).check(isRange);

export const callsQuerySchema = z.strictObject({ ...callFilter, cursor: cursorSchema }).check(isRange);

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
  /** Until when the call waits for calling hours or contact limits; null if it isn't waiting, or waits for a stop or a pace (`heldFor`). */
  heldUntil: instantSchema.nullable(),
  heldFor: z.enum(heldReasons).nullable(),
  /** True if contact limits don't allow the call in time, so that it lapses at `heldUntil`. Omitted otherwise. */
  lapses: z.literal(true).optional(),
  /** When the number was last called, if contact limits hold the call because of that. Omitted otherwise. */
  lastCalledAt: instantSchema.optional(),
  /** Who answered the call, as far as the provider has reported it. */
  answeredBy: z.enum(answerers).nullable(),
  /** The time zone of the calling hours: the contact's, or the only one that the number may be in; null if there are several. */
  heldZone: z.string().nullable(),
  /** The key that placed the call; null if the viewer can't see that key. */
  apiKey: z.object({ id: identifierSchema, name: z.string(), owner: z.object({ isYou: z.boolean(), name: z.string() }) }).nullable(),
  /** Whether the core made up the outcome, without making any phone ring. */
  simulated: z.boolean(),
  campaign: namedSchema,
});

export type CallView = z.infer<typeof callSchema>;

export const callsSchema = z.object({
  calls: z.array(callSchema),
  nextCursor: z.string().nullable(),
  /** Present if the search took too long to fill a page: it has covered calls placed since then, and the next page continues from there. */
  searchedBackTo: instantSchema.optional(),
  ...totals,
});

export type CallsView = z.infer<typeof callsSchema>;

/** The time zone and variables are also null once contact data has been erased. */
export const callDetailsSchema = z.object({
  call: callSchema,
  /** The contact's time zone. */
  timeZone: z.string().nullable(),
  variables: z.record(z.string(), z.string()).nullable(),
  notBefore: instantSchema.nullable(),
  notAfter: instantSchema.nullable(),
  /** As reported by the provider. */
  durationSeconds: z.number().nullable(),
  /** How many times a dialer has claimed the call, to hand it off or to check on its outcome. */
  attempts: z.number().int(),
  firstAttemptAt: instantSchema.nullable(),
  /** When a dialer will claim the call next; null while a provider has it, if a stop or a pace holds it, if it lapses first, and at its end. */
  nextAttemptAt: instantSchema.nullable(),
  /** When the provider reported the outcome of a call that had been `unknown`. */
  toldLateAt: instantSchema.nullable(),
});

export type CallDetailsView = z.infer<typeof callDetailsSchema>;

/** The time zone of a chart's calendar days. */
export const chartQuerySchema = z.strictObject({ timeZone: dayRange.timeZone });

const callsByOutcome = {
  states: z.partialRecord(z.enum(callStates), z.number().int()),
  /** How many of the completed calls were answered by whom, as far as the provider has reported it. Omitted if it hasn't. */
  answeredBy: z.partialRecord(z.enum(answerers), z.number().int()).optional(),
};

/** Null unless the provider hasn't accepted any calls for at least a minute. */
const dialerTroubleSchema = z.object({ since: instantSchema, reason: z.string() }).nullable();

export type DialerTroubleView = z.infer<typeof dialerTroubleSchema>;

/** Present if there are too many calls to count. Only calls placed since this time are counted. */
const countedBackTo = { countedBackTo: instantSchema.optional() };

export const callsSummarySchema = z.object({
  /** Oldest first; without a range, the last 30, including today. A call counts on the day it was placed. States without calls are omitted. */
  days: z.array(z.object({ day: z.iso.date(), ...callsByOutcome })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});

export type CallsSummaryView = z.infer<typeof callsSummarySchema>;

export const allCallsSummarySchema = z.object({
  /** The same days as for one campaign. Campaigns without calls are omitted. */
  days: z.array(z.object({ day: z.iso.date(), campaigns: z.array(z.object({ id: identifierSchema, ...callsByOutcome })) })),
  ...countedBackTo,
  dialerTrouble: dialerTroubleSchema,
});

export type AllCallsSummaryView = z.infer<typeof allCallsSummarySchema>;

export const callRoutes = {
  listCalls: route('GET', '/console/campaigns/:id/calls', {
    summary: "List a campaign's calls, newest first",
    query: callsQuerySchema,
    answer: callsSchema,
  }),
  listAllCalls: route('GET', '/console/calls', {
    summary: 'List the calls of all campaigns, newest first',
    query: callsQuerySchema,
    answer: callsSchema,
  }),
  exportCalls: route('GET', '/console/campaigns/:id/calls.csv', {
    summary: "Export a campaign's calls. A complete file ends with the line `# complete, N rows`",
    query: callsExportQuerySchema,
    answer: 'csv',
  }),
  exportAllCalls: route('GET', '/console/calls.csv', {
    summary: 'Export the calls of all campaigns. A complete file ends with the line `# complete, N rows`',
    query: callsExportQuerySchema,
    answer: 'csv',
  }),
  summarizeCalls: route('GET', '/console/campaigns/:id/calls/summary', {
    summary: "Count a campaign's calls by day, in the last 30 days or a range of days",
    query: callsExportQuerySchema,
    answer: callsSummarySchema,
  }),
  summarizeAllCalls: route('GET', '/console/calls/summary', {
    summary: 'Count calls by day in each campaign, one page of campaigns at a time, in the last 30 days or a range of days',
    /** Covers one page of the campaign list, selected by `campaignSearch` and `cursor`. */
    query: z.strictObject({ ...callFilter, campaignSearch: searchSchema, cursor: cursorSchema }).check(isRange),
    answer: allCallsSummarySchema,
  }),
  showCall: route('GET', '/console/campaigns/:id/calls/:contactId', {
    summary: 'Show a call with its time window, variables and hand-off',
    answer: callDetailsSchema,
  }),
} as const;
