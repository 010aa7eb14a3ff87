import { userTypes } from '#contract/console/common.ts';
import type { StopDialing } from '#contract/protection/dialing.ts';
import { auditEvent, cancelledCalls, joinDetail } from '../audit/audit.ts';
import { findDoubt } from '../clock.ts';
import { scopeFor } from '../directory/scope.ts';
import type { AuditSubject, Caller } from '../model.ts';
import type { DialingStop, Ports, ProtectionAccess } from '../ports.ts';
import { notFound, Problem } from '../problem.ts';
import { findVisible } from '../protection/rules.ts';

/**
 * Once this returns, no call of the scope leaves any core until dialing is resumed.
 *
 * @throws Problem `unavailable` as {@link StopStore} does. Stopping it again finds out
 */
export async function stopDialing(
  ports: Ports,
  { viewer, actor }: Caller,
  { cancelQueuedCalls = false, ...input }: Omit<StopDialing, 'cancelQueuedCalls'> & { cancelQueuedCalls?: boolean | 'soon' | undefined },
  rest?: (ms: number) => Promise<void>,
): Promise<{ stop: DialingStop; isNew: boolean; queuedCalls: number; withProvider: number }> {
  const { scope, id = '', reason = null } = input;
  const target = scope === 'server' ? null : await findVisible(ports, viewer, { scope, id });
  if (target === null && !isOfService(viewer.userType))
    throw new Problem('forbidden', 'Only service staff can stop dialing for the whole server.');
  const stop: DialingStop = {
    id: ports.randomness.id(),
    scope,
    target: target && { id: target.id, name: target.name },
    owner: target?.owner ?? null,
    at: ports.clock.now(),
    by: actor.who && { id: actor.who.id, name: actor.who.name },
    byType: viewer.userType,
    reason,
  };
  const detail = joinDetail(reason, cancelQueuedCalls && cancelledCalls);
  const event = { ...auditEvent(ports, actor, 'dialing.stopped', toSubject(stop), stop.owner), detail };
  const { stop: current, isNew } = await ports.stores.stops.stop(stop, cancelQueuedCalls, event, rest);
  if (cancelQueuedCalls === 'soon') ports.onCallsLeft();
  // It was already stopped, but someone has resumed it since then, without knowing of this stop.
  if (current === null) return stopDialing(ports, { viewer, actor }, { cancelQueuedCalls, ...input }, rest);
  return { stop: current, isNew, ...(await ports.stores.stops.count(current)) };
}

/** Includes stops of the whole partner and server. */
export async function listStops(ports: Ports, viewer: Caller['viewer']): Promise<DialingStop[]> {
  const access = findAccess(viewer);
  return access ? ports.stores.stops.list(access) : [];
}

/** Staff without a tenancy see all stops, because a stop of the server has none. */
function findAccess(viewer: Caller['viewer']): ProtectionAccess | null {
  const { campaigns } = scopeFor(viewer);
  return campaigns.kind !== 'nothing' ? campaigns : isOfService(viewer.userType) ? { kind: 'all' } : null;
}

/** @throws Problem `forbidden` if someone else has to resume it, or `not-found` */
async function findResumable(ports: Ports, viewer: Caller['viewer'], id: string): Promise<DialingStop> {
  const stop = (await listStops(ports, viewer)).find((each) => each.id === id);
  if (!stop) throw notFound('ID', viewer);
  if (!mayResume(viewer, stop)) throw new Problem('forbidden', `Only ${describeResumers(stop)} can resume this.`);
  return stop;
}

/** Shows a stop and counts its calls, for those who may resume it: others see a stop of the whole partner, but not its calls. */
export async function showStop(ports: Ports, viewer: Caller['viewer'], id: string) {
  const stop = await findResumable(ports, viewer, id);
  return { stop, ...(await ports.stores.stops.count(stop)) };
}

export async function resumeDialing(ports: Ports, { viewer, actor }: Caller, id: string): Promise<void> {
  const stop = await findResumable(ports, viewer, id);
  // What has passed its time by now lapses because of the stop, and its details say so only while the stop is there.
  const now = ports.clock.now();
  if (findDoubt(await ports.stores.clock.read(), now) === null) await ports.stores.dialing.lapse(now);
  const event = auditEvent(ports, actor, 'dialing.resumed', toSubject(stop), stop.owner);
  // Someone else has resumed it, or stopped it, too.
  if (!(await ports.stores.stops.resume(stop, event, viewer.userType === 'operator' || 'soon')))
    return resumeDialing(ports, { viewer, actor }, id);
  ports.onRulesChanged();
}

const typesByRank = [...userTypes, 'operator'] as const;

/** Returns the types of users who can't resume what a user of this type has stopped, even if they stopped it first. */
export function typesBelow(type: DialingStop['byType']): DialingStop['byType'][] {
  return typesByRank.slice(0, typesByRank.indexOf(type));
}

/**
 * Account users can resume only what they stopped themselves, and partner users what isn't stopped by the service and is theirs: someone
 * who's limited to one account sees the partner's stop, but can't end it. `byType` is the highest type that has stopped it.
 */
export function mayResume(viewer: Caller['viewer'], { by, byType, scope, owner }: DialingStop): boolean {
  switch (viewer.userType) {
    case 'account':
      return byType === 'account' && by?.id === viewer.id;
    case 'partner':
      return !isOfService(byType) && scope !== 'server' && (viewer.account === null || owner?.accountId === viewer.account.id);
    case 'staff':
    case 'operator':
      return true;
  }
}

function describeResumers({ byType, scope }: DialingStop): string {
  if (isOfService(byType) || scope === 'server') return 'service staff';
  return byType === 'partner'
    ? 'partner users who can see all of it, and service staff,'
    : 'the user who stopped it, partner users and service staff';
}

function isOfService(type: DialingStop['byType']): boolean {
  return type === 'staff' || type === 'operator';
}

function toSubject({ scope, target }: DialingStop): AuditSubject {
  return target === null ? { kind: 'server', id: 'server', name: 'the server' } : { kind: scope, ...target };
}
