export const callStates = ['queued', 'dialing', 'completed', 'no_answer', 'busy', 'failed', 'unknown', 'cancelled', 'lapsed'] as const;
export type CallState = (typeof callStates)[number];
