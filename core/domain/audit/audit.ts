import type { AuditAction } from '#contract/console/activity.ts';
import { type Millis, oneHour, plus } from '../instant.ts';
import type { Actor, AuditEvent, AuditSubject, Budget, Caller, OwningScope, User } from '../model.ts';
import type { Ports } from '../ports.ts';
import { Problem } from '../problem.ts';

/** The caller of changes made on the server itself, for example with `admin`. */
export const operator: Caller = { viewer: { userType: 'operator' }, actor: { who: null, address: 'local' } };

export function auditEvent(
  ports: Ports,
  actor: Actor,
  action: AuditAction,
  subject: AuditSubject,
  owningScope: OwningScope | null,
): AuditEvent {
  return {
    id: ports.randomness.id(),
    at: ports.clock.now(),
    actor: actor.who && { id: actor.who.id, name: actor.who.name },
    action,
    subject,
    owningScope,
    address: actor.address,
    ...(actor.session === undefined ? {} : { session: actor.session, budget: budgetFor(ports, action) }),
  };
}

/** Describes a change for an event: `name: Ada → Ada Byron`. Undefined if none of the values has changed. */
export function describeChange(values: Readonly<Record<string, readonly [before: string, after: string]>>): string | undefined {
  const changed = Object.entries(values).filter(([, [before, after]]) => before !== after);
  return changed.map(([what, [before, after]]) => `${what}: ${before} → ${after}`).join('; ') || undefined;
}

/** A session is named after its user, because it has no name and its ID isn't recorded. */
export function userEvent(ports: Ports, actor: Actor, action: AuditAction, user: User, kind: 'user' | 'session' = 'user'): AuditEvent {
  return auditEvent(ports, actor, action, { kind, id: user.id, name: user.name }, toOwningScope(user));
}

/** Returns the scope of audit events about a user; null for staff, who belong to the service. */
export function toOwningScope(user: User): OwningScope | null {
  const partnerId = user.partner?.id ?? user.account?.partnerId;
  return partnerId === undefined ? null : { accountId: user.account?.id ?? null, partnerId };
}

/**
 * The maximum of the changes below per user and hour, in all sessions and on all cores together, because what a user adds stays: rows of its
 * own, or at least an audit event. It's more than a person does by hand; `admin import` has no limit.
 */
export const changesPerHour = 200;

/** What ends something or protects someone always works, such as revoking, disabling, deleting and opting out. */
const counted: ReadonlySet<string> = new Set<AuditAction>([
  ...(['partner.added', 'partner.changed', 'account.added', 'account.changed', 'campaign.added', 'campaign.changed'] as const),
  ...(['user.added', 'user.changed', 'user.enabled', 'password.reset', 'api-key.created', 'api-key.limited'] as const),
  ...(['tenancy.selected', 'list.exported', 'do-not-call.lifted', 'calling-hours.changed', 'numbers.changed'] as const),
  ...(['dialing.resumed', 'pace.changed', 'contact-limits.changed'] as const),
]);
export const countedActions = [...counted];

/** Null if the action doesn't count. */
function budgetFor({ randomness, clock }: Ports, action: AuditAction): Budget | null {
  if (!counted.has(action)) return null;
  const since = plus(clock.now(), -oneHour);
  return { since, lowestId: randomness.idsAround(since).lowestId };
}

/** @param oldest when the user did the earliest of the changes that use up the budget */
export function budgetUsed(oldest: Millis, { at }: AuditEvent): Problem {
  const retryAfter = Math.min(3_600, Math.max(1, Math.ceil((oldest + oneHour - at) / 1_000)));
  const minutes = Math.ceil(retryAfter / 60);
  const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
  const detail = `You've made ${changesPerHour} changes within an hour, which is the most that a user can make. Try again in ${wait}.`;
  return new Problem('too-many-requests', detail, { retryAfter });
}

/** The part of a detail that says what else a revocation, deletion or stop has done. How many calls it were isn't known yet. */
export const cancelledCalls = 'cancelled the queued calls';

export function joinDetail(...parts: (string | null | undefined | false)[]): string | undefined {
  return parts.filter((part) => typeof part === 'string' && part !== '').join('; ') || undefined;
}
