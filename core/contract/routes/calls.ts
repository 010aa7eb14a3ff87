import {
  allCallsSummaryQuerySchema,
  allCallsSummarySchema,
  callDetailsSchema,
  callsExportQuerySchema,
  callsQuerySchema,
  callsSchema,
  callsSummaryQuerySchema,
  callsSummarySchema,
} from '../console/calls.ts';
import { route } from './route.ts';

export const callRoutes = {
  listCalls: route('GET', '/console/campaigns/:id/calls', {
    by: 'session',
    summary: "List a campaign's calls, newest first",
    query: callsQuerySchema,
    answer: callsSchema,
  }),
  listAllCalls: route('GET', '/console/calls', {
    by: 'session',
    summary: 'List the calls of all campaigns, newest first',
    query: callsQuerySchema,
    answer: callsSchema,
  }),
  exportCalls: route('GET', '/console/campaigns/:id/calls.csv', {
    by: 'session',
    summary: "Export a campaign's calls. A complete file ends with the line `# complete, N rows`",
    query: callsExportQuerySchema,
    answer: 'csv',
    problems: ['too-many-requests'],
  }),
  exportAllCalls: route('GET', '/console/calls.csv', {
    by: 'session',
    summary: 'Export the calls of all campaigns. A complete file ends with the line `# complete, N rows`',
    query: callsExportQuerySchema,
    answer: 'csv',
    problems: ['too-many-requests'],
  }),
  summarizeCalls: route('GET', '/console/campaigns/:id/calls/summary', {
    by: 'session',
    summary: "Count a campaign's calls by day, in the last 30 days or a range of days",
    query: callsSummaryQuerySchema,
    answer: callsSummarySchema,
  }),
  summarizeAllCalls: route('GET', '/console/calls/summary', {
    by: 'session',
    summary: 'Count calls by day in each campaign, one page of campaigns at a time, in the last 30 days or a range of days',
    query: allCallsSummaryQuerySchema,
    answer: allCallsSummarySchema,
  }),
  showCall: route('GET', '/console/campaigns/:id/calls/:contactId', {
    by: 'session',
    summary: 'Show a call with its time window, variables and hand-off',
    answer: callDetailsSchema,
  }),
} as const;
