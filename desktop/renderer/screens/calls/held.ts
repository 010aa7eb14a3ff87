import { DateTime } from 'luxon';
import type { CallView } from '#contract/console/calls.ts';
import { formatMinute } from '../../state/format/format-time.ts';

type HeldCall = Pick<CallView, 'heldUntil' | 'heldZone'>;

/**
 * Says that calling hours hold a call, and until when: "held until 24 Nov 2026, 09:00 Europe/Berlin".
 *
 * @param ownZone used instead if the number may be in several zones
 */
export function describeHeld({ heldUntil, heldZone }: HeldCall, ownZone: string): string | null {
  if (!heldUntil) return null;
  const until = DateTime.fromISO(heldUntil, { zone: heldZone ?? ownZone });
  return `held until ${formatMinute(until)} ${until.zoneName}`;
}

/** Says why a call waits, or how it ended. A retry may wait for calling hours, and its detail says why it's retried. */
export function describeState(call: HeldCall & Pick<CallView, 'detail'>, ownZone: string): string | null {
  const parts = [describeHeld(call, ownZone), call.detail].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(' · ');
}
