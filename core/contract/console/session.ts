import { z } from 'zod';
import { limits } from '../limits.ts';
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

export type RecoveryCodesView = z.infer<typeof recoveryCodesSchema>;

/** How many recovery codes the user hasn't used yet. */
export const secondFactorSchema = z.object({ recoveryCodesLeft: z.int().min(0) });

export type SecondFactorView = z.infer<typeof secondFactorSchema>;

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

/** @property partnerName the account's partner, because two accounts may have the same name. */
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
  /**
   * Present and true while the user still has a one-time password that someone else chose. Until they change it, they can't do anything
   * else.
   */
  passwordChangeDue: z.literal(true).optional(),
  /** Whether the user has a second factor. */
  secondFactor: z.boolean(),
  /** Present and true until the user has set up the second factor that the operator requires. Until then, they can't do anything else. */
  secondFactorDue: z.literal(true).optional(),
  /** The kind of dialer. */
  dialer: z.enum(['off', 'simulated', 'webhook']),
  /** Whether the server has its page for integrators, `/reference`. */
  reference: z.boolean(),
  /** The core's release. */
  version: z.string(),
  /** The name of the provider that the user signed in with; missing after signing in with a password. */
  signedInWith: z.string().optional(),
  /**
   * Present and true in the session with which the user's identity at the provider was first linked. The person may not know the user's
   * account, so the console names it.
   */
  justLinked: z.literal(true).optional(),
});

export type SessionView = z.infer<typeof sessionSchema>;

export const tenanciesQuerySchema = z.strictObject({ search: searchSchema });

export const tenanciesSchema = z.object({
  tenancies: z.array(tenancySchema),
});

export type TenanciesView = z.infer<typeof tenanciesSchema>;
