import { outcomeSchema } from '../calls/dialer.ts';
import { route } from './route.ts';

export const dialerRoutes = {
  reportOutcome: route('POST', '/dialer/outcomes', {
    by: 'signature',
    summary: 'Report the outcome of a call. Safe to repeat: an outcome is never overwritten',
    body: outcomeSchema,
    problems: ['not-found'],
  }),
} as const;
