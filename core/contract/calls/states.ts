export const callStates = [
  'queued',
  'dialing',
  'completed',
  'no_answer',
  'busy',
  'failed',
  'unknown',
  'cancelled',
  'lapsed',
  'blocked',
] as const;
export type CallState = (typeof callStates)[number];

export const callStateLabels: Readonly<Record<CallState, string>> = {
  queued: 'Queued',
  dialing: 'Dialing',
  completed: 'Completed',
  no_answer: 'No answer',
  busy: 'Busy',
  failed: 'Failed',
  unknown: 'Unknown',
  cancelled: 'Cancelled',
  lapsed: 'Lapsed',
  blocked: 'Blocked',
};
