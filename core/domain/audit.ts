import type { DateTime } from 'luxon';
import type { Named } from '#contract/console.ts';
import type { Ports } from './ports.ts';
import type { OwningScope } from './tenancy.ts';

export type AuditAction =
  | 'session.started'
  | 'session.ended'
  | 'session.revoked'
  | 'tenancy.selected'
  | 'password.changed'
  | 'password.reset'
  | 'api-key.created'
  | 'api-key.revoked'
  | 'user.added'
  | 'user.changed'
  | 'user.deleted'
  | 'partner.added'
  | 'partner.changed'
  | 'account.added'
  | 'account.changed'
  | 'campaign.added'
  | 'campaign.changed';

export type AuditSubject = Named & { kind: 'api-key' | 'user' | 'session' | 'partner' | 'account' | 'campaign' };

/** Who did what to which thing, when and from where. Never holds a secret. */
export type AuditEvent = {
  id: string;
  at: DateTime;
  /** Null for what the self-hoster does on the machine itself. */
  actor: Named | null;
  action: AuditAction;
  subject: AuditSubject;
  /** The scope that the event belongs to, or null where it belongs to the service as a whole. */
  home: OwningScope | null;
  /** The caller's network address, or `local`. */
  address: string;
};

/** Who acts, and from where. */
export type Actor = { who: Named | null; address: string };

/** The self-hoster, on the machine itself. */
export const operator: Actor = { who: null, address: 'local' };

export function auditEvent(ports: Ports, actor: Actor, action: AuditAction, subject: AuditSubject, home: OwningScope | null): AuditEvent {
  return {
    id: ports.randomness.id(),
    at: ports.clock.now(),
    actor: actor.who && { id: actor.who.id, name: actor.who.name },
    action,
    subject,
    home,
    address: actor.address,
  };
}
