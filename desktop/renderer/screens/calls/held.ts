import { DateTime } from 'luxon';
import type { CallView } from '#contract/console/calls.ts';
import { formatMinute } from '../../state/format/format-time.ts';

type HeldCall = Pick<CallView, 'state' | 'heldUntil' | 'heldZone'>;

/**
 * Says that calling hours hold a call, and until when: "held until 24 Nov 2026, 09:00 Europe/Berlin".
 *
 * @param ownZone used instead if the number may be in several zones
 */
export function describeHeld({ state, heldUntil, heldZone }: HeldCall, ownZone: string): string | null {
  if (state !== 'queued' || !heldUntil) return null;
  const until = DateTime.fromISO(heldUntil, { zone: heldZone ?? ownZone });
  return `held until ${formatMinute(until)} ${until.zoneName}`;
}
