import type { CallView } from '#contract/console.ts';
import { callStateLabels } from '../../state/format/labels.ts';

/** Returns the time from dialing to the end; null if a call wasn't dialed or hasn't ended. */
export function callDurationMs({ dialedAt, endedAt }: Pick<CallView, 'dialedAt' | 'endedAt'>): number | null {
  return dialedAt === null || endedAt === null ? null : Math.max(0, Date.parse(endedAt) - Date.parse(dialedAt));
}

export const callCsvHead = [
  'Request ID',
  'Contact',
  'Phone',
  'Outcome',
  'Detail',
  'Simulated',
  'Key',
  'Placed',
  'Dialed',
  'Ended',
  'Seconds',
] as const;

export function callCsvRow(call: CallView): string[] {
  const duration = callDurationMs(call);
  return [
    call.requestId,
    call.contact.name ?? '',
    call.contact.phone ?? '',
    callStateLabels[call.state],
    call.detail ?? '',
    call.simulated ? 'Simulated' : '',
    call.apiKey?.name ?? '',
    call.placedAt,
    call.dialedAt ?? '',
    call.endedAt ?? '',
    duration === null ? '' : String(Math.round(duration / 1_000)),
  ];
}
