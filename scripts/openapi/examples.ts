import type { ProblemCode } from '#contract/problems.ts';

const call = {
  requestId: 'order-4711',
  contactId: '01a1c7d5-3b5e-7a4e-9f0b-6c1d2e3f4a5b',
  campaignId: '01a1c7d4-9c2f-7d10-8a3b-5e6f7a8b9c0d',
};
const contact = { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' };
const placedAt = '2026-11-21T08:30:00.000Z';
const handoffId = '01a1c7d5-3b5f-7c21-b1d2-0a9b8c7d6e5f';

/** Examples of bodies, by schema name. */
export const bodyExamples: Readonly<Record<string, object>> = {
  PlaceCall: {
    requestId: call.requestId,
    contact,
    variables: { orderNumber: '4711' },
    notBefore: '2026-11-21T09:00:00.000Z',
    notAfter: '2026-11-21T18:00:00.000Z',
  },
  PlacedCall: { ...call, state: 'queued', placedAt },
  CancelledCall: { ...call, state: 'cancelled', cancelledAt: '2026-11-21T08:45:00.000Z' },
  Handoff: { handoffId, ...call, contact, variables: { orderNumber: '4711' }, placedAt },
  Outcome: { handoffId, state: 'completed', endedAt: '2026-11-21T09:02:10.000Z', durationSeconds: 97 },
  SignIn: { email: 'ada@example.com', password: 'correct horse battery staple' },
  Session: {
    viewer: {
      id: '01a1c7d4-8b1e-7f00-9c4d-3a2b1c0d9e8f',
      email: 'ada@example.com',
      name: 'Ada Account',
      userType: 'account',
      account: { id: '01a1c7d4-7a0d-7e11-8b5c-4d3e2f1a0b9c', name: 'Blue Clinic' },
      partner: null,
    },
    tenancy: null,
  },
  CreateApiKey: { name: 'Order system', expiration: { kind: 'years', years: 1 }, timeZone: 'Europe/Berlin' },
  RevokeApiKeys: { ids: ['01a1c7d4-9e3a-7c55-9d2e-1f0a2b3c4d5e'], cancelQueuedCalls: true },
  IdentifyApiKey: { sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' },
  SelectTenancy: { kind: 'account', id: '01a1c7d4-7a0d-7e11-8b5c-4d3e2f1a0b9c' },
  ChangePassword: { currentPassword: 'correct horse battery staple', newPassword: 'another quite long sentence' },
  CreateUser: { email: 'grace@example.com', name: 'Grace Hopper', userType: 'account' },
  ChangeUser: { disabled: true },
  ChangeApiKey: { addresses: ['192.0.2.0/24', '2001:db8::/32'], callsPerDay: 1000 },
  Setup: { partner: 'Northwind Voice', account: 'Blue Clinic', campaign: 'Appointment reminders' },
  NameInDirectory: { name: 'Green Clinic' },
  CreateAccount: { name: 'Green Clinic', partnerId: '01a1c7d4-6a0d-7e11-8b5c-4d3e2f1a0b9c' },
  CreateCampaign: { name: 'Recalls', accountId: '01a1c7d4-7a0d-7e11-8b5c-4d3e2f1a0b9c' },
  RecordExport: { list: 'calls', rows: 120 },
};

/** An example of each problem's `detail`. */
export const detailExamples: Record<ProblemCode, string> = {
  'malformed-request': "The body isn't valid JSON in UTF-8.",
  unauthorized: 'This request needs valid credentials.',
  'campaign-refused': "The campaign doesn't exist, or this key doesn't have access to it.",
  forbidden: 'Only service staff can select an account or partner.',
  'cross-site': 'This request came from another site.',
  'do-not-call': 'This number is on a do-not-call list.',
  'not-found': "It doesn't exist, or you don't have access to it.",
  'call-not-found': "This call doesn't exist in this campaign.",
  'method-not-allowed': 'Allowed methods: GET, POST.',
  'request-id-conflict': 'This requestId was already used with a different body. To place a new call, use a new requestId.',
  'already-dialed': 'This call can no longer be cancelled.',
  conflict: "You can't delete yourself. Ask another administrator to do it.",
  'too-large': 'The body must be at most 65536 bytes.',
  'unsupported-media-type': 'Send UTF-8 JSON with Content-Type: application/json.',
  invalid: 'Invalid body at contact.phone: Must be a phone number in E.164 format, such as +493012345678.',
  'outside-calling-hours': "Calling hours don't allow a call before notAfter. The next window opens at 2026-11-22T08:00:00.000Z.",
  'too-many-calls':
    'This key has reached its limit of 1,000 calls per day. It can place calls again after the next midnight in its time zone.',
  'too-many-requests': 'Too many attempts. Try again in 15 minutes.',
  internal: "Something went wrong on the server. The operator can find it in the log under this request's ID.",
  unavailable: "The database didn't respond in time. Try again shortly, with the same request ID.",
};
