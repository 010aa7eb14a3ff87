import type { PlaceCall } from '#contract/calls/calls.ts';
import { counted } from '#contract/text/count.ts';
import { parseTimestamp, timestamp } from '#contract/text/text.ts';
import { toQuota } from '../api-keys.ts';
import { instant, type Millis } from '../instant.ts';
import type { ActiveKey, CallReference, KeyCaller, NewCall, Objection, Ports, Refusal } from '../ports.ts';
import { invalidBody, Problem, type Quota, unauthorized } from '../problem.ts';
import { describeObjection, toStopReason } from '../protection/judge.ts';

export type PlacedCall = {
  requestId: string;
  contactId: string;
  campaignId: string;
  placedAt: Millis;
  /** When calling hours allow the call; null if it isn't waiting for them. */
  heldUntil: Millis | null;
  replayed: boolean;
  quota: Quota | undefined;
};
export type CancelledCall = { requestId: string; contactId: string; campaignId: string; cancelledAt: Millis };

/** A repeated request ID returns the call that was placed first. */
export async function placeCall(ports: Ports, caller: KeyCaller, campaignId: string, input: PlaceCall): Promise<PlacedCall> {
  const at = ports.clock.now();
  const contactId = ports.randomness.id();
  const { variables = {} } = input;
  const call: NewCall = {
    contactId,
    requestId: input.requestId ?? contactId,
    phone: input.contact.phone,
    name: input.contact.name ?? null,
    timeZone: input.contact.timeZone ?? null,
    variables: Object.keys(variables).length === 0 ? null : variables,
    notBefore: input.notBefore === undefined ? null : instant(parseTimestamp(input.notBefore)),
    notAfter: input.notAfter === undefined ? null : instant(parseTimestamp(input.notAfter)),
  };
  const placement = await ports.stores.calls.place({ ...caller, campaignId, at }, call);
  const { requestId } = call;
  switch (placement.kind) {
    case 'placed':
    case 'replayed': {
      const { kind, contactId, placedAt, heldUntil, placedToday } = placement;
      const quota = toQuota(caller.key.limits, placedToday, at);
      return { requestId, contactId, campaignId, placedAt, heldUntil, replayed: kind === 'replayed', quota };
    }
    case 'too-many-calls': {
      const quota = toQuota(caller.key.limits, placement.placedToday, at);
      const limit = quota ? ` of ${counted(quota.callsPerDay, 'call')} per day` : '';
      const detail = `This key has reached its limit${limit}. It can place calls again after the next midnight in its time zone.`;
      throw new Problem('too-many-calls', detail, quota && { quota, retryAfter: quota.resetsIn });
    }
    case 'request-id-conflict':
      throw new Problem(
        'request-id-conflict',
        'This requestId was already used with a different body. To place a new call, use a new requestId.',
      );
    case 'call-erased':
      throw new Problem(
        'request-id-conflict',
        "This requestId was already used for a call whose contact data has been erased, so the bodies can't be compared. Nothing was placed.",
      );
    case 'too-late':
      throw invalidBody([{ path: 'notAfter', message: 'Must be in the future.' }]);
    case 'do-not-call':
      ports.onStopped('do-not-call', 1);
      throw new Problem('do-not-call', 'This number is on a do-not-call list, so the call was not placed.');
    case 'not-allowed':
      ports.onStopped(toStopReason(placement.objection), 1);
      throw notAllowed(placement.objection, call.notAfter);
    default:
      throw refusal(placement.kind);
  }
}

/**
 * Cancels a call that hasn't been dialed. A repeated request returns the result of the first one. A cancel of an unknown call isn't
 * remembered: if the request that places it arrives later, it's placed.
 */
export async function cancelCall(ports: Ports, caller: KeyCaller, campaignId: string, reference: CallReference): Promise<CancelledCall> {
  const cancellation = await ports.stores.calls.cancel({ ...caller, campaignId, at: ports.clock.now() }, reference);
  switch (cancellation.kind) {
    case 'cancelled': {
      const { requestId, contactId, cancelledAt } = cancellation;
      return { requestId, contactId, campaignId, cancelledAt };
    }
    case 'already-dialed':
      // Don't mention an outcome here, because key-authenticated requests can't read outcomes.
      throw new Problem('already-dialed', 'This call can no longer be cancelled.');
    case 'call-not-found':
      throw new Problem('call-not-found', "This call doesn't exist in this campaign.");
    default:
      throw refusal(cancellation.kind);
  }
}

export function findActiveKey(ports: Ports, caller: Omit<KeyCaller, 'key'>): Promise<ActiveKey | null> {
  return ports.stores.calls.findActive({ ...caller, at: ports.clock.now() });
}

/**
 * Throws unless the key is active and has access to the campaign. Callers check this before anything else, so that a key without access
 * learns nothing about the campaign.
 */
export async function authorize(ports: Ports, caller: KeyCaller, campaignId: string): Promise<void> {
  const decision = await ports.stores.calls.authorize({ ...caller, campaignId, at: ports.clock.now() });
  if (decision !== 'authorized') throw refusal(decision);
}

function refusal(kind: Refusal): Problem {
  return kind === 'unauthorized'
    ? unauthorized()
    : // The response is the same whether the campaign exists or not, so that a key doesn't learn which ones do.
      new Problem('campaign-refused', "The campaign doesn't exist, or this key doesn't have access to it.");
}

function notAllowed(objection: Objection, notAfter: Millis | null): Problem {
  switch (objection.kind) {
    case 'number-kind':
    case 'country':
      return invalidBody([{ path: 'contact.phone', message: describeObjection(objection) }]);
    case 'unknown-time-zone':
      return invalidBody([
        { path: 'contact.timeZone', message: "Calling hours apply, but the number's time zone is unknown: send contact.timeZone." },
      ]);
    case 'outside-calling-hours': {
      const { opensAt } = objection;
      const next = opensAt === null ? 'No window opens within 31 days.' : `The next window opens at ${timestamp(opensAt)}.`;
      const detail = `Calling hours don't allow a call ${notAfter === null ? 'within 30 days' : 'before notAfter'}. ${next}`;
      return new Problem('outside-calling-hours', detail);
    }
    case 'contact-limit':
    case 'stop':
    case 'pace':
      throw new Error("This doesn't refuse a call that's being placed.");
  }
}
