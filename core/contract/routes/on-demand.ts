import { cancelledCallSchema, placeCallSchema, placedCallSchema } from '../calls/calls.ts';
import { placeCallPath } from '../headers.ts';
import { route } from './route.ts';

export const onDemandRoutes = {
  placeCall: route('POST', placeCallPath, {
    by: 'apiKey',
    summary: 'Place a call. Repeating the same body with the same request ID returns the first response',
    body: placeCallSchema,
    answer: placedCallSchema,
    status: 202,
    problems: ['campaign-refused', 'do-not-call', 'outside-calling-hours', 'request-id-conflict', 'too-many-calls'],
  }),
  cancelCallByContact: route('DELETE', `${placeCallPath}/:contactId`, {
    by: 'apiKey',
    summary: 'Cancel a call by its contact ID, before it is dialed',
    answer: cancelledCallSchema,
    problems: ['campaign-refused', 'call-not-found', 'already-dialed'],
  }),
  cancelCallByRequest: route('DELETE', `${placeCallPath}/by-request-id/:requestId`, {
    by: 'apiKey',
    summary: 'Cancel a call by its request ID, before it is dialed',
    answer: cancelledCallSchema,
    problems: ['campaign-refused', 'call-not-found', 'already-dialed'],
  }),
} as const;
