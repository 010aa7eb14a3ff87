import { z } from 'zod';
import { limits } from '../limits.ts';
import { route, routeBy } from '../route.ts';
import { countCodePoints, identifierSchema, isWithinCodePoints, normalizeEmail } from '../text/text.ts';
import { namedSchema, placeSchema, searchSchema, tenancyKindSchema, userTypeSchema } from './common.ts';

export const signInSchema = z.strictObject({
  email: z.string().max(1_000).transform(normalizeEmail),
  password: z.string().max(1_000),
});

/** Six digits from an authenticator app, or a recovery code. */
const codeSchema = z.string().max(100);

/** A field of the requests that `confirm` in the table of routes marks. It's required if the signed-in user has a second factor. */
export const confirmationCode = { code: codeSchema.optional() };

/** The response to a correct password if a code is required, too. */
export const secondFactorNeededSchema = z.object({ secondFactor: z.literal(true) });

export const enterCodeSchema = z.strictObject({ code: codeSchema });

export const confirmedByCodeSchema = z.strictObject(confirmationCode).optional();

export const enrollSecondFactorSchema = z.strictObject({ currentPassword: z.string().max(1_000) });

/** @property secret in base32, as authenticator apps expect. @property uri contains it, for a QR code */
export const enrolledSecondFactorSchema = z.object({ secret: z.string(), uri: z.string() });

export type EnrolledSecondFactorView = z.infer<typeof enrolledSecondFactorSchema>;

export const recoveryCodesSchema = z.object({ recoveryCodes: z.array(z.string()) });

/** How many recovery codes the user hasn't used yet. */
export const secondFactorSchema = z.object({ recoveryCodesLeft: z.int().min(0) });

/** Only the length of a new password matters, not which characters it contains (NIST SP 800-63B §3.1.1.2). */
export const newPasswordSchema = z
  .string()
  .refine((text) => countCodePoints(text) >= limits.passwordMin, { error: `Must be at least ${limits.passwordMin} characters.` })
  .refine((text) => isWithinCodePoints(text, limits.passwordMax), { error: `Must be at most ${limits.passwordMax} characters.` })
  .meta({ minLength: limits.passwordMin, maxLength: limits.passwordMax });

export const changePasswordSchema = z.strictObject({
  /** Required, unless the user signed in with a one-time password. */
  currentPassword: z.string().max(1_000).optional(),
  newPassword: newPasswordSchema,
  ...confirmationCode,
});

export type PasswordChange = z.infer<typeof changePasswordSchema>;

/** The tenancy that a staff user's request is for: `account/` or `partner/`, and the ID. It overrides the session's tenancy. */
export const tenancyHeader = 'Callkey-Tenancy';

export const selectTenancySchema = z.union(
  [z.strictObject({ kind: tenancyKindSchema, id: identifierSchema }), z.strictObject({ kind: z.null() })],
  { error: 'Must be {"kind":"account" or "partner","id":…}, or {"kind":null} to clear the selection.' },
);

/** @property partnerName tells apart accounts with the same name */
const tenancySchema = placeSchema.extend({ partnerName: z.string().optional() });

export const viewerSchema = z.object({
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
  /** Present and true until the user has changed a one-time password. Until then, they can't do anything else. */
  passwordChangeDue: z.literal(true).optional(),
  secondFactor: z.boolean(),
  /** Present and true until the user has set up the second factor that the operator requires. Until then, they can't do anything else. */
  secondFactorDue: z.literal(true).optional(),
  dialer: z.enum(['off', 'simulated', 'webhook']),
  /** Whether the server has its page for integrators, `/reference`. */
  reference: z.boolean(),
  version: z.string(),
  /** The name of the provider that the user signed in with; missing after signing in with a password. */
  signedInWith: z.string().optional(),
  /** Present and true if this session has linked the user. The person may not know the user's account, so the console names it. */
  justLinked: z.literal(true).optional(),
});

export type SessionView = z.infer<typeof sessionSchema>;

export const tenanciesQuerySchema = z.strictObject({ search: searchSchema });

export const tenanciesSchema = z.object({
  tenancies: z.array(tenancySchema),
});

export type TenanciesView = z.infer<typeof tenanciesSchema>;

export const sessionRoutes = {
  signIn: routeBy('nothing', 'POST', '/console/session', {
    summary: 'Sign in. If the user has a second factor, finish with a code',
    body: signInSchema,
    answer: sessionSchema,
    status: 201,
    pending: secondFactorNeededSchema,
    problems: ['forbidden', 'too-many-requests'],
  }),
  enterCode: routeBy('halfOpenSession', 'POST', '/console/session/second-factor', {
    summary: 'Finish signing in with a code from an authenticator app, or a recovery code',
    body: enterCodeSchema,
    answer: sessionSchema,
    status: 201,
    problems: ['too-many-requests'],
  }),
  showSession: route('GET', '/console/session', {
    summary: 'Show the session',
    answer: sessionSchema,
  }),
  signOut: route('DELETE', '/console/session', {
    summary: 'Sign out',
  }),
  selectTenancy: route('PUT', '/console/session/tenancy', {
    summary: 'Select an account or partner, or clear the selection (staff only)',
    body: selectTenancySchema,
    answer: sessionSchema,
    problems: ['forbidden'],
  }),
  changePassword: route('POST', '/console/password', {
    summary: 'Change your own password and end your other sessions',
    body: changePasswordSchema,
  }),
  enrollSecondFactor: route('POST', '/console/second-factor', {
    summary: 'Get a secret for an authenticator app, which is returned only once',
    body: enrollSecondFactorSchema,
    answer: enrolledSecondFactorSchema,
    status: 201,
    secret: 'secret',
    problems: ['conflict'],
  }),
  confirmSecondFactor: route('POST', '/console/second-factor/confirmation', {
    summary: 'Turn on the second factor with a code from the app, and get recovery codes, which are returned only once',
    body: enterCodeSchema,
    answer: recoveryCodesSchema,
    secret: 'recoveryCodes',
    problems: ['conflict'],
  }),
  showSecondFactor: route('GET', '/console/second-factor', {
    summary: 'Show how many of your recovery codes are left',
    answer: secondFactorSchema,
  }),
  renewRecoveryCodes: route('POST', '/console/second-factor/recovery-codes', {
    summary: 'Replace your recovery codes with new ones, which are returned only once',
    body: enterCodeSchema,
    answer: recoveryCodesSchema,
    secret: 'recoveryCodes',
  }),
  removeSecondFactor: route('DELETE', '/console/second-factor', {
    summary: 'Turn off your own second factor',
    body: enterCodeSchema,
  }),
  searchTenancies: route('GET', '/console/tenancies', {
    summary: 'Search accounts and partners (staff only)',
    query: tenanciesQuerySchema,
    answer: tenanciesSchema,
    problems: ['forbidden'],
  }),
} as const;
