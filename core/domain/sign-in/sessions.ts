import { Duration } from 'luxon';
import type { AuditAction } from '#contract/console/activity.ts';
import type { ConsoleRoutes } from '#contract/routes.ts';
import { auditEvent, userEvent } from '../audit/audit.ts';
import { clockSkew } from '../deadlines.ts';
import { type Millis, plus } from '../instant.ts';
import type { Actor, Credentials, Digest, Proof, Session, SignedInCaller, Tenancy, User, Viewer } from '../model.ts';
import type { Ports, SessionBounds } from '../ports.ts';
import { Problem, unauthorized } from '../problem.ts';
import { findVoucher, type Vouchers } from './devices.ts';
import { finishSignIn } from './second-factor.ts';
import { checkPassword, countRecorded, oncePerHour, requirePasswordSignIn } from './throttle.ts';

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
 *     linked identity ─► full
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
const sessionStages = {
  'half-open': { allows: ['enterCode'], refusal: 'Finish signing in first.' },
  'password-due': {
    allows: ['showSession', 'signOut', 'changePassword'],
    refusal: 'You signed in with a one-time password. Choose your own password first.',
  },
  'second-factor-due': {
    allows: ['showSession', 'signOut', 'enrollSecondFactor', 'confirmSecondFactor'],
    refusal: 'This server requires a second factor. Set it up first.',
  },
  full: { allows: 'everything', refusal: '' },
} as const satisfies Record<string, { allows: readonly (keyof ConsoleRoutes)[] | 'everything'; refusal: string }>;

/** The changes of how a user signs in, as the audit log names them. */
const signInChanges: readonly AuditAction[] = [
  ...(['password.changed', 'password.reset', 'second-factor.enabled', 'second-factor.removed', 'second-factor.reset'] as const),
  ...(['user.linked', 'user.unlinked', 'user.disabled', 'user.enabled', 'session.revoked'] as const),
];

export function changesSignIn(action: AuditAction): boolean {
  return signInChanges.includes(action);
}

/** OWASP ASVS 5.0 7.3.1 and 7.3.2. `touchEvery` must be much shorter than `idle`, because a session may end too early by that much. */
export const sessionLimits = {
  idle: Duration.fromObject({ hours: 24 }),
  absolute: Duration.fromObject({ days: 7 }),
  touchEvery: Duration.fromObject({ minutes: 1 }),
  /** How long a half-open session waits for a code. */
  halfOpen: Duration.fromObject({ minutes: 10 }),
};

/** The password comes before the second factor, because setting that up asks for a password that only the user knows. */
export function stageOf(ports: Ports, session: Session): keyof typeof sessionStages {
  if (session.halfOpenUntil !== null) return 'half-open';
  if (session.passwordChangeDue) return 'password-due';
  return isSecondFactorDue(ports, session) ? 'second-factor-due' : 'full';
}

/** @throws Problem `forbidden` if what the session has proved isn't enough for the route */
export function requireStage(ports: Ports, session: Session, route: keyof ConsoleRoutes): void {
  const { allows, refusal } = sessionStages[stageOf(ports, session)];
  const routes: readonly (keyof ConsoleRoutes)[] | 'everything' = allows;
  if (routes !== 'everything' && !routes.includes(route)) throw new Problem('forbidden', refusal);
}

/** Users of an identity provider don't need a second factor here, because it has its own. */
export function isSecondFactorDue({ requiresSecondFactor }: Ports, { hasSecondFactor, issuer }: Session): boolean {
  return requiresSecondFactor && !hasSecondFactor && issuer === null;
}

/** The caller starts the session. */
export async function authenticate(
  ports: Ports,
  { email, password, address, vouchers }: { email: string; password: string; address: string; vouchers: Vouchers },
): Promise<Credentials> {
  requirePasswordSignIn(ports);
  const mayEnter = ({ disabledAt, passwordExpiresAt }: Credentials) =>
    disabledAt === null && (passwordExpiresAt === null || passwordExpiresAt >= ports.clock.now());
  const attempt = { email, address, vouched: await findVoucher(ports, email, vouchers) };
  const credentials = await checkPassword(ports, attempt, email, password, mayEnter);
  if (!credentials) throw unauthorized();
  return credentials;
}

/** @throws Problem `unauthorized` if the way in which the user signs in has changed since the check */
export async function startSession(ports: Ports, id: Digest, proof: Proof, address: string): Promise<Session> {
  const { sessions } = ports.stores;
  const started = 'halfOpen' in proof ? await finishSignIn(ports, id, proof, address) : await startProved(ports, id, proof, address);
  const session = started ? await sessions.find(id) : null;
  if (!session) throw unauthorized();
  return session;
}

async function startProved(ports: Ports, id: Digest, proof: Exclude<Proof, { halfOpen: object }>, address: string): Promise<boolean> {
  const { user, signInVersion } = proof;
  const { sessions } = ports.stores;
  const event = userEvent(ports, { who: user, address }, 'session.started', user, 'session');
  const session = { id, userId: user.id, at: event.at, halfOpenUntil: null };
  if ('issuer' in proof) return sessions.startLinked(session, signInVersion, proof, event);
  if (!proof.hasSecondFactor) return sessions.start(session, signInVersion, event);
  const halfOpenUntil = plus(event.at, sessionLimits.halfOpen.toMillis());
  return sessions.start({ ...session, halfOpenUntil }, signInVersion, null);
}

/** Returns the session if it's within its limits, and the user could still sign in the same way. */
export async function resumeSession(ports: Ports, id: Digest): Promise<Session | null> {
  const session = await ports.stores.sessions.find(id);
  const now = ports.clock.now();
  if (!session || !isWithinLimits(session, now) || !isAllowed(ports, session)) return null;
  // Compare the absolute difference, because a `lastSeenAt` from a clock that was ahead would extend the idle limit.
  if (Math.abs(now - session.lastSeenAt) > sessionLimits.touchEvery.toMillis()) await ports.stores.sessions.touch(id, now);
  return session;
}

/** Whether the way in which the user signed in is still allowed. Otherwise, users of a removed identity provider would stay signed in. */
function isAllowed({ passwordSignIn, identityProvider }: Ports, { issuer }: Session): boolean {
  return issuer === null ? passwordSignIn : issuer === identityProvider?.issuer;
}

/** A time in the future means that the clock was set back. It's better to require a new sign-in than to keep a session beyond its limits. */
function isWithinLimits({ startedAt, lastSeenAt, halfOpenUntil }: Session, now: Millis): boolean {
  if (halfOpenUntil !== null && halfOpenUntil < now) return false;
  const { seenAfter, startedAfter, before } = sessionBounds(now);
  return startedAt >= startedAfter && lastSeenAt >= seenAfter && startedAt <= before && lastSeenAt <= before;
}

function sessionBounds(now: Millis): SessionBounds {
  const { idle, absolute } = sessionLimits;
  return {
    startedAfter: plus(now, -absolute.toMillis()),
    seenAfter: plus(now, -idle.toMillis()),
    before: plus(now, clockSkew.toMillis()),
    now,
  };
}

/** Also deletes sessions from the future, which would become valid again when the clock catches up. */
export async function sweepSessions(ports: Ports): Promise<void> {
  await ports.stores.sessions.sweep(sessionBounds(ports.clock.now()));
  await endDisallowedSessions(ports);
}

/** A core does this before it accepts requests, so that the sessions stay ended if their way to sign in is allowed again later. */
export async function endDisallowedSessions({ stores, passwordSignIn, identityProvider }: Ports): Promise<void> {
  await stores.sessions.endDisallowed({ password: passwordSignIn, issuer: identityProvider?.issuer ?? null });
}

export async function endSession(ports: Ports, id: Digest, actor: Actor, user: User): Promise<void> {
  await ports.stores.sessions.end(id, userEvent(ports, actor, 'session.ended', user, 'session'));
}

/** Regardless of the tenancy that's selected in the session. */
export async function withTenancy(ports: Ports, session: Session, choice: TenancyChoice): Promise<Session> {
  if (session.user.userType !== 'staff')
    throw new Problem('forbidden', 'Only service staff can choose the account or partner for a request.');
  return { ...session, tenancy: await findTenancy(ports, choice) };
}

/** @param choice null clears the selection */
export async function selectTenancy(ports: Ports, id: Digest, viewer: Viewer, choice: TenancyChoice | null): Promise<Viewer> {
  if (viewer.userType !== 'staff') throw new Problem('forbidden', 'Only service staff can select an account or partner.');
  const tenancy = choice && (await findTenancy(ports, choice));
  // Read the session's own selection, because the viewer's tenancy may come from the request's header.
  const session = await ports.stores.sessions.find(id);
  if (!session) throw unauthorized();
  if (session.tenancy?.kind === tenancy?.kind && session.tenancy?.id === tenancy?.id) return { ...viewer, tenancy };
  await countRecorded(ports, 'tenancy', viewer.id);
  if (!(await ports.stores.sessions.selectTenancy(id, tenancy))) throw unauthorized();
  return { ...viewer, tenancy };
}

/**
 * Records that staff work in the session's or request's tenancy, once per session and hour. Selecting it records nothing yet, because no
 * data of it has been shown.
 */
export async function recordTenancyAccess(ports: Ports, sessionId: Digest, { viewer, actor }: SignedInCaller): Promise<void> {
  const { tenancy } = viewer;
  if (tenancy === null) return;
  const { kind, id, name, partnerId } = tenancy;
  await oncePerHour(ports, `${sessionId} ${kind} ${id}`, async () => {
    await countRecorded(ports, 'tenancy', viewer.id);
    const owningScope = { accountId: kind === 'account' ? id : null, partnerId };
    await ports.stores.activity.record(auditEvent(ports, actor, 'tenancy.selected', { kind, id, name }, owningScope));
  });
}

type TenancyChoice = Pick<Tenancy, 'kind' | 'id'>;

async function findTenancy(ports: Ports, choice: TenancyChoice): Promise<Tenancy> {
  const tenancy = await ports.stores.directory.findTenancy(choice);
  if (!tenancy) throw new Problem('not-found', `This ${choice.kind} doesn't exist.`);
  return tenancy;
}
