import {
  activityExportQuerySchema,
  activityFacetsSchema,
  activityQuerySchema,
  activitySchema,
  recordExportSchema,
} from '../console/activity.ts';
import { route } from './route.ts';

export const activityRoutes = {
  listActivity: route('GET', '/console/activity', {
    by: 'session',
    summary: 'List events, newest first',
    query: activityQuerySchema,
    answer: activitySchema,
  }),
  listActivityFacets: route('GET', '/console/activity/facets', {
    by: 'session',
    summary: 'List the users and actions that occur in the activity list',
    answer: activityFacetsSchema,
  }),
  exportActivity: route('GET', '/console/activity.csv', {
    by: 'session',
    summary: 'Export events. A complete file ends with the line `# complete, N rows`',
    query: activityExportQuerySchema,
    answer: 'csv',
    problems: ['too-many-requests'],
  }),
  recordExport: route('POST', '/console/exports', {
    by: 'session',
    summary: 'Record that a list was exported',
    body: recordExportSchema,
    problems: ['too-many-requests'],
  }),
} as const;
