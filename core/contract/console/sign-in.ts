import { z } from 'zod';
import { routeBy } from '../route.ts';
import { readServerAddress } from '../server-address.ts';
import { sessionSchema } from './session.ts';

/** An address that the app may open in the browser. Only server addresses are allowed, because some URLs would start other programs. */
const browserUrl = z.string().refine((text) => readServerAddress(text).ok, { error: 'Must be an https URL.' });

export const signInOptionsSchema = z.object({
  password: z.boolean(),
  oidc: z
    .object({
      /** For the button: "Sign in with …". */
      name: z.string(),
      /** Starts the sign-in. It has to be opened in a browser. */
      url: browserUrl,
      /** Ends the session at the provider; null if it doesn't offer that. */
      signOutUrl: browserUrl.nullable(),
    })
    .nullable(),
});
export type SignInOptions = z.infer<typeof signInOptionsSchema>;

const randomTextForm = /^[A-Za-z0-9_-]{43}$/;
/** 32 random bytes, or a SHA-256 hash, in base64url. */
const randomText = z.string().regex(randomTextForm, { error: 'Must be 32 bytes in base64url.' });

/** The app listens on a port of this computer, and waits there for a code. The challenge is the SHA-256 hash of the app's verifier. */
export const startOidcQuerySchema = z
  .strictObject({
    port: z
      .string()
      .regex(/^[1-9]\d{3,4}$/, { error: 'Must be a port from 1024 to 65535.' })
      .transform(Number)
      .refine((port) => port >= 1_024 && port <= 65_535, { error: 'Must be a port from 1024 to 65535.' })
      .optional(),
    challenge: randomText.optional(),
  })
  .refine(({ port, challenge }) => (port === undefined) === (challenge === undefined), {
    error: 'Pass both port and challenge, or neither.',
  });

export const signInFromAppSchema = z.strictObject({ code: randomText, verifier: randomText });

const flowName = z.string().regex(/^[0-9a-f]{8}$/, { error: 'Must be 8 lowercase hexadecimal digits.' });

/** A browser may be signing in several apps. `flow` is the one that the page's address names. */
export const handOverSchema = z.strictObject({ flow: flowName });

/** The address on this computer that hands the code over to the app. */
export const handedOverSchema = z.object({ url: z.string() });

/** How a sign-in with the provider ended. The core adds this to the page's URL. */
export const signInResults = ['done', 'app', 'failed', 'unreachable', 'expired', 'cancelled', 'throttled'] as const;
export type SignInResult = (typeof signInResults)[number];
export const signInResultParameter = 'sign-in';
/** Names the sign-in that the page asks the user to confirm. The core adds this to the page's URL if the app is signing in. */
export const flowParameter = 'flow';

export const signInRoutes = {
  showSignIn: routeBy('nothing', 'GET', '/console/sign-in', {
    summary: 'Show the ways to sign in',
    answer: signInOptionsSchema,
  }),
  startOidc: routeBy('nothing', 'GET', '/console/oidc', {
    summary: "Start signing in with the company's provider, in a browser",
    query: startOidcQuerySchema,
    status: 303,
  }),
  finishOidc: routeBy('nothing', 'GET', '/console/oidc/callback', {
    summary: 'Finish signing in with the provider, which sends the browser here',
    status: 303,
  }),
  signOutOfProvider: routeBy('nothing', 'GET', '/console/oidc/sign-out', {
    summary: 'End the session at the provider, in a browser',
    status: 303,
  }),
  handOver: routeBy('nothing', 'POST', '/console/oidc/hand-over', {
    summary: 'Get the address that hands a sign-in over to the desktop app, after the user has confirmed it',
    body: handOverSchema,
    answer: handedOverSchema,
    status: 201,
  }),
  signInFromApp: routeBy('nothing', 'POST', '/console/oidc/session', {
    summary: 'Sign in the desktop app with the code that the browser handed over',
    body: signInFromAppSchema,
    answer: sessionSchema,
    status: 201,
  }),
} as const;
