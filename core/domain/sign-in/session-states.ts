import { Duration } from 'luxon';
import type { AuditAction } from '#contract/console/activity.ts';
import type { ConsoleRoutes } from '#contract/routes/console.ts';
import type { Session } from '../model.ts';
import type { Ports } from '../ports.ts';

/**
 * The life of a session. What it has proved decides its stage, and the stage decides which routes it can use:
 *
 *     stage              proved                                             may use
 *     half-open          the password of a user with a second factor        entering the code, which replaces it with a session
 *     password-due       a one-time password, so someone else knows it      seeing the session, signing out, choosing a password
 *     second-factor-due  the user's own password, but a factor is required  seeing the session, signing out, setting up the factor
 *     full               everything that's required: password and factor,   everything
 *                        or the identity that the user is linked to
 *
 *     password ─┬─ there's a second factor ─► half-open ─── code ───┬─ one-time password ─► password-due ── own password ─┐
 *               └─ there isn't ────────────────────────────────────►┤                                                     ▼
 *                                                                   ├─ factor required and missing ─► second-factor-due ─ set up ─► full
 *                                                                   └─ otherwise ─► full
 *     identity at the provider ─► full
 *
 * A session ends when its user signs out, when it reaches one of the limits below, or when the way it was started (`issuer`) is turned off.
 * It also ends with each of the `signInChanges`, and when the user is moved, gets another type or address, or is deleted. These end all of
 * the user's sessions except the one that made the change, and everything that's only half done: half-open sessions, a second factor that
 * waits for its confirmation, and codes for the app. They also change the user's `signInVersion`. Every proof carries the version at the
 * time it was checked, and the transaction that starts a session compares the two. So a sign-in that was under way ends, too.
 *
 * Every change that a session makes is recorded with an audit event that names the session, and the transaction checks that it's still
 * there. So a request that was waiting when its session ended changes nothing.
 */
export const sessionStages = {
  'half-open': { allows: ['enterCode'], refusal: null },
  'password-due': {
    allows: ['showSession', 'signOut', 'changePassword'],
    refusal: 'You signed in with a one-time password. Choose your own password first.',
  },
  'second-factor-due': {
    allows: ['showSession', 'signOut', 'enrollSecondFactor', 'confirmSecondFactor'],
    refusal: 'This server requires a second factor. Set it up first.',
  },
  full: { allows: 'everything', refusal: null },
} as const satisfies Record<string, { allows: readonly (keyof ConsoleRoutes)[] | 'everything'; refusal: string | null }>;

type SessionStage = keyof typeof sessionStages;

/** The changes of how a user signs in, as the audit log names them. */
const signInChanges: readonly AuditAction[] = [
  ...(['password.changed', 'password.reset', 'second-factor.enabled', 'second-factor.removed', 'second-factor.reset'] as const),
  ...(['user.linked', 'user.unlinked', 'user.disabled', 'user.enabled', 'session.revoked'] as const),
];

export function changesSignIn(action: AuditAction): boolean {
  return signInChanges.includes(action);
}

/**
 * The limits of a session (OWASP ASVS 5.0 7.3.1 and 7.3.2), and how old the stored `lastSeenAt` may become before it's updated.
 * `touchEvery` must be much shorter than `idle`, because a session may end too early by up to `touchEvery`.
 */
export const sessionLimits = {
  idle: Duration.fromObject({ hours: 24 }),
  absolute: Duration.fromObject({ days: 7 }),
  touchEvery: Duration.fromObject({ minutes: 1 }),
  /** How long a half-open session waits for a code. */
  halfOpen: Duration.fromObject({ minutes: 10 }),
};

/** The password comes before the second factor, because setting that up asks for a password that only the user knows. */
export function stageOf(ports: Ports, session: Session): SessionStage {
  if (session.halfOpenUntil !== null) return 'half-open';
  if (session.passwordChangeDue) return 'password-due';
  return isSecondFactorDue(ports, session) ? 'second-factor-due' : 'full';
}

/** Users of a provider don't need a second factor here, because the provider has its own. */
export function isSecondFactorDue({ requiresSecondFactor }: Ports, { hasSecondFactor, issuer }: Session): boolean {
  return requiresSecondFactor && !hasSecondFactor && issuer === null;
}

export function mayUse(stage: SessionStage, route: keyof ConsoleRoutes): boolean {
  const allowed: readonly (keyof ConsoleRoutes)[] | 'everything' = sessionStages[stage].allows;
  return allowed === 'everything' || allowed.includes(route);
}
