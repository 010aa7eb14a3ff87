import { DateTime } from 'luxon';
import type { CallView } from '#contract/console.ts';
import { formatMinute } from '../../state/format/format-time.ts';

/** Says that calling hours hold a call, and until when in the given zone: "held until 24 Nov 2026, 09:00 Europe/Berlin". */
export function describeHeld({ state, heldUntil }: Pick<CallView, 'state' | 'heldUntil'>, zone: string): string | null {
  if (state !== 'queued' || !heldUntil) return null;
  const until = DateTime.fromISO(heldUntil, { zone });
  return `held until ${formatMinute(until)} ${until.zoneName}`;
}
