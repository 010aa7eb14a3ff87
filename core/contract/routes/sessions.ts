import {
  changePasswordSchema,
  selectTenancySchema,
  sessionSchema,
  signInSchema,
  tenanciesQuerySchema,
  tenanciesSchema,
} from '../console.ts';
import { route } from './route.ts';

export const sessionRoutes = {
  signIn: route('POST', '/console/session', {
    by: 'nothing',
    summary: 'Sign in',
    body: signInSchema,
    answer: sessionSchema,
    status: 201,
    problems: ['too-many-requests'],
  }),
  showSession: route('GET', '/console/session', {
    by: 'session',
    summary: 'Show the session',
    answer: sessionSchema,
  }),
  signOut: route('DELETE', '/console/session', {
    by: 'session',
    summary: 'Sign out',
  }),
  selectTenancy: route('PUT', '/console/session/tenancy', {
    by: 'session',
    summary: 'Select an account or partner, or clear the selection (staff only)',
    body: selectTenancySchema,
    answer: sessionSchema,
    problems: ['forbidden', 'not-found', 'too-many-requests'],
  }),
  changePassword: route('POST', '/console/password', {
    by: 'session',
    summary: 'Change your own password and end your other sessions',
    body: changePasswordSchema,
    problems: ['too-many-requests'],
  }),
  searchTenancies: route('GET', '/console/tenancies', {
    by: 'session',
    summary: 'Search accounts and partners (staff only)',
    query: tenanciesQuerySchema,
    answer: tenanciesSchema,
    problems: ['forbidden'],
  }),
} as const;
