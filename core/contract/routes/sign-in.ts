import { sessionSchema } from '../console/session.ts';
import { handedOverSchema, handOverSchema, signInFromAppSchema, signInOptionsSchema, startOidcQuerySchema } from '../console/sign-in.ts';
import { route } from './route.ts';

export const signInRoutes = {
  showSignIn: route('GET', '/console/sign-in', {
    by: 'nothing',
    summary: 'Show the ways to sign in',
    answer: signInOptionsSchema,
  }),
  startOidc: route('GET', '/console/oidc', {
    by: 'nothing',
    summary: "Start signing in with the company's provider, in a browser",
    query: startOidcQuerySchema,
    status: 303,
  }),
  finishOidc: route('GET', '/console/oidc/callback', {
    by: 'nothing',
    summary: 'Finish signing in with the provider, which sends the browser here',
    status: 303,
  }),
  signOutOfProvider: route('GET', '/console/oidc/sign-out', {
    by: 'nothing',
    summary: 'End the session at the provider, in a browser',
    status: 303,
  }),
  handOver: route('POST', '/console/oidc/hand-over', {
    by: 'nothing',
    summary: 'Get the address that hands a sign-in over to the desktop app, after the user has confirmed it',
    body: handOverSchema,
    answer: handedOverSchema,
    status: 201,
  }),
  signInFromApp: route('POST', '/console/oidc/session', {
    by: 'nothing',
    summary: 'Sign in the desktop app with the code that the browser handed over',
    body: signInFromAppSchema,
    answer: sessionSchema,
    status: 201,
  }),
} as const;
