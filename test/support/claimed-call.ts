import { instant } from '../../core/domain/instant.ts';
import type { ClaimedCall } from '../../core/domain/ports.ts';

/** Returns a call at its first attempt, as a dialer gets it. It has just been claimed. */
export function claimedCall(changes: Partial<ClaimedCall> = {}): ClaimedCall {
  return {
    ...{ contactId: 'c', requestId: 'r', campaignId: 'g', phone: '+493012345678', name: null, timeZone: null, variables: {} },
    ...{ placedAt: instant(1), notBefore: null, notAfter: null, firstAttemptAt: instant(1), provider: 'webhook', attempt: 1 },
    campaign: { id: 'g', name: 'Recall', settings: {}, account: { id: 'a', name: 'Blue' }, partner: { id: 'p', name: 'North' } },
    ...{ handoff: 'open', leaseUntil: instant(30_000), leaves: null, stopped: null, claimedAt: performance.now(), ...changes },
  };
}
