import { Duration } from 'luxon';
import { isPrintable } from '#contract/text.ts';
import { type Actor, auditEvent } from './audit.ts';
import type { Credentials, Digest, Ports, Session } from './ports.ts';
import { Problem, unauthorizedDetail } from './problem.ts';
import type { Home, User, Viewer } from './tenancy.ts';

/** Limits of a session (OWASP ASVS 5.0 7.3.1 and 7.3.2), and how stale `lastSeenAt` may become. */
export const sessionLimits = {
  idle: Duration.fromObject({ hours: 24 }),
  absolute: Duration.fromObject({ days: 7 }),
  touchEvery: Duration.fromObject({ minutes: 1 }),
};

/** Checks e-mail and password. The caller starts the session. */
export async function checkPassword(
  ports: Ports,
  attempt: { email: string; password: string; address: string; current: Session | null },
): Promise<Credentials> {
  const { email, address } = attempt;
  const taken = { email, address, trusted: attempt.current?.user.email === email };
  // Taken before the password is looked at, so that many attempts at once count as many.
  await ports.throttle.take(taken);
  // An address that nobody can have is not looked up: databases do not take every character.
  const credentials = isPrintable(email) ? await ports.stores.users.findByEmail(email) : null;
  const matches = await ports.passwords.verify(credentials?.passwordHash ?? null, attempt.password).catch(async (error) => {
    // Only a wrong password counts, not a crowd at the door.
    await ports.throttle.giveBack(taken);
    throw error;
  });
  const lapsed = credentials?.passwordExpiresAt != null && credentials.passwordExpiresAt < ports.clock.now();
  if (!credentials || !matches || lapsed) throw new Problem('unauthorized', unauthorizedDetail);
  await ports.throttle.forgive(taken);
  return credentials;
}

/** @throws Problem `unauthorized` when the password that was checked is no longer the user's */
export async function startSession(ports: Ports, id: Digest, { user, passwordHash }: Credentials, address: string): Promise<void> {
  const event = auditEvent(ports, { who: user, address }, 'session.started', sessionOf(user), homeOf(user));
  const started = await ports.stores.sessions.start(id, user.id, passwordHash, ports.clock.now(), event);
  if (!started) throw new Problem('unauthorized', unauthorizedDetail);
}

/** The session, if it is there and within its limits. */
export async function resumeSession(ports: Ports, id: Digest): Promise<Session | null> {
  const session = await ports.stores.sessions.find(id);
  if (!session) return null;
  const now = ports.clock.now();
  if (now > session.lastSeenAt.plus(sessionLimits.idle) || now > session.startedAt.plus(sessionLimits.absolute)) return null;
  if (now > session.lastSeenAt.plus(sessionLimits.touchEvery)) await ports.stores.sessions.touch(id, now);
  return session;
}

export async function endSession(ports: Ports, id: Digest, actor: Actor, user: User): Promise<void> {
  await ports.stores.sessions.end(id, auditEvent(ports, actor, 'session.ended', sessionOf(user), homeOf(user)));
}

/** Staff only. `choice` null lets go of the tenancy. */
export async function selectTenancy(
  ports: Ports,
  id: Digest,
  actor: Actor,
  viewer: Viewer,
  choice: { kind: 'account' | 'partner'; id: string } | null,
): Promise<Viewer> {
  if (viewer.userType !== 'staff') throw new Problem('forbidden', 'Only service staff select a tenancy.');
  const tenancy = choice && (await findTenancy(ports, choice.kind, choice.id));
  const subject = { kind: tenancy?.kind ?? 'session', id: tenancy?.id ?? viewer.id, name: tenancy?.name ?? viewer.name } as const;
  const home = tenancy && { accountId: tenancy.kind === 'account' ? tenancy.id : null, partnerId: tenancy.partnerId };
  const event = auditEvent(ports, actor, 'tenancy.selected', subject, home);
  const known = await ports.stores.sessions.selectTenancy(id, tenancy, event);
  if (!known) throw new Problem('unauthorized', unauthorizedDetail);
  return { ...viewer, tenancy };
}

async function findTenancy(ports: Ports, kind: 'account' | 'partner', id: string) {
  const { tenancies } = ports.stores;
  if (kind === 'account') {
    const account = await tenancies.findAccount(id);
    if (account) return { kind, ...account };
  } else {
    const partner = await tenancies.findPartner(id);
    if (partner) return { kind, ...partner, partnerId: partner.id };
  }
  throw new Problem('not-found', `There is no such ${kind}.`);
}

/** Where events about a user belong. Those about staff belong to the service as a whole. */
export function homeOf(user: User): Home | null {
  const partnerId = user.partner?.id ?? user.account?.partnerId;
  return partnerId === undefined ? null : { accountId: user.account?.id ?? null, partnerId };
}

function sessionOf(user: User) {
  return { kind: 'session', id: user.id, name: user.name } as const;
}
