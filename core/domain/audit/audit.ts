import type { AuditAction } from '#contract/console/activity.ts';
import type { Actor, AuditEvent, AuditSubject, OwningScope, User } from '../model.ts';
import type { Ports } from '../ports.ts';
import { budgetFor } from './budget.ts';

/** The actor for changes made on the server itself, for example with `admin`. */
export const operator: Actor = { who: null, address: 'local' };

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

export function userSubject({ id, name }: User): AuditSubject {
  return { kind: 'user', id, name };
}

/** Returns the audit subject for a session: its user's name, because a session has no name and its ID isn't recorded. */
export function sessionSubject({ id, name }: User): AuditSubject {
  return { kind: 'session', id, name };
}

/** Returns the scope of audit events about a user; null for staff, who belong to the service. */
export function toOwningScope(user: User): OwningScope | null {
  const partnerId = user.partner?.id ?? user.account?.partnerId;
  return partnerId === undefined ? null : { accountId: user.account?.id ?? null, partnerId };
}
