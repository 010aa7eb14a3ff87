import { expect } from 'chai';
import type { Outcome } from '#contract/calls/dialer.ts';
import { reportOutcome } from '../../core/domain/calls/dialing.ts';
import { authorize, cancelCall, findActiveKey, placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { instant } from '../../core/domain/instant.ts';
import type { NewCall } from '../../core/domain/model.ts';
import type { CallStore, Cancellation, Placement, Refusal } from '../../core/domain/ports.ts';
import { at } from '../support/clock.ts';
import { fakePorts, readProblem } from '../support/ports.ts';

const caller = { digest: 'digest', deadline: 0, address: '192.0.2.1', key: { expiresAt: null, limits: null } };
const now = at('2026-11-21T09:00:00.000Z');
const unauthorized = 'unauthorized: This request needs valid credentials.';
const campaignRefused = "campaign-refused: The campaign doesn't exist, or this key doesn't have access to it.";
const refusals: [Refusal, string][] = [
  ['unauthorized', unauthorized],
  ['campaign-refused', campaignRefused],
];

function createCalls({
  placement = { kind: 'placed', heldUntil: null, placedToday: null } as Placement,
  cancellation = { kind: 'call-not-found' } as Cancellation,
  decision = 'authorized' as Awaited<ReturnType<CallStore['authorize']>>,
} = {}) {
  const placed: NewCall[] = [];
  const asked: object[] = [];
  const calls: CallStore = {
    place: async (request, call) => {
      asked.push(request);
      placed.push(call);
      return placement;
    },
    cancel: async (request, reference) => {
      asked.push(request, reference);
      return cancellation;
    },
    findActive: async (request) => {
      asked.push(request);
      return { expiresAt: instant(5), limits: null };
    },
    authorize: async (request) => {
      asked.push(request);
      return decision;
    },
  };
  return { ports: fakePorts({ stores: { calls } }), placed, asked };
}
const place = (to: ReturnType<typeof createCalls>, more = {}) =>
  placeCall(to.ports, caller, 'g', { contact: { phone: '+493012345678' }, ...more });

describe('a call being placed', () => {
  const request = { ...caller, campaignId: 'g', at: now };

  it('gets its own ID as its request ID if none was given', async () => {
    const to = createCalls();
    expect(await place(to)).to.deep.equal({
      requestId: 'id1',
      contactId: 'id1',
      campaignId: 'g',
      placedAt: now,
      heldUntil: null,
      replayed: false,
    });
    const nothing = { name: null, timeZone: null, variables: null, notBefore: null, notAfter: null };
    expect([to.placed, to.asked]).to.deep.equal([[{ contactId: 'id1', requestId: 'id1', phone: '+493012345678', ...nothing }], [request]]);
  });

  it('keeps every field that it was placed with', async () => {
    const to = createCalls();
    const contact = { phone: '+493012345678', name: 'Ada', timeZone: 'UTC' };
    await place(to, {
      requestId: 'r',
      contact,
      variables: { a: 'b' },
      notBefore: '2026-11-21T10:00:00Z',
      notAfter: '2026-11-21T11:00:00.5Z',
    });
    const window = { notBefore: instant(now + 3_600_000), notAfter: instant(now + 7_200_500) };
    expect(to.placed).to.deep.equal([{ contactId: 'id1', requestId: 'r', ...contact, variables: { a: 'b' }, ...window }]);
  });

  it('is returned again for the same request', async () => {
    const to = createCalls({
      placement: { kind: 'replayed', contactId: 'first', placedAt: instant(5), heldUntil: null, placedToday: null },
    });
    expect(await place(to, { requestId: 'r' })).to.deep.equal({
      requestId: 'r',
      contactId: 'first',
      campaignId: 'g',
      placedAt: instant(5),
      heldUntil: null,
      replayed: true,
    });
  });

  for (const [kind, refusal] of [
    ...refusals,
    [
      'request-id-conflict',
      'request-id-conflict: This requestId was already used with a different body. To place a new call, use a new requestId.',
    ],
    [
      'call-erased',
      "request-id-conflict: This requestId was already used for a call whose contact data has been erased, so the bodies can't be compared. Nothing was placed.",
    ],
  ] as const) {
    it(`can't be placed if the storage returns ${kind}`, async () => {
      expect(await readProblem(place(createCalls({ placement: { kind } })))).to.equal(refusal);
    });
  }
});

describe('cancelling a call', () => {
  const cancel = (to: ReturnType<typeof createCalls>) => cancelCall(to.ports, caller, 'g', { requestId: 'r' });

  it('returns the call with the time of the cancellation', async () => {
    const cancelled = { contactId: 'c', requestId: 'r', cancelledAt: instant(5) };
    const to = createCalls({ cancellation: { kind: 'cancelled', ...cancelled } });
    expect(await cancel(to)).to.deep.equal({ ...cancelled, campaignId: 'g' });
    expect(to.asked).to.deep.equal([{ ...caller, campaignId: 'g', at: now }, { requestId: 'r' }]);
  });

  for (const [kind, refusal] of [
    ...refusals,
    ['already-dialed', 'already-dialed: This call can no longer be cancelled.'],
    ['call-not-found', "call-not-found: This call doesn't exist in this campaign."],
  ] as const) {
    it(`is refused if the storage returns ${kind}`, async () => {
      expect(await readProblem(cancel(createCalls({ cancellation: { kind } })))).to.equal(refusal);
    });
  }
});

describe('an API key', () => {
  it('is looked up as of the current time', async () => {
    const to = createCalls();
    expect(await findActiveKey(to.ports, { ...caller, address: 'a' })).to.deep.equal({ expiresAt: instant(5), limits: null });
    expect(to.asked).to.deep.equal([{ ...caller, address: 'a', at: now }]);
  });

  it("is checked for access to the call's campaign at the current time", async () => {
    const to = createCalls();
    await authorize(to.ports, caller, 'g');
    expect(to.asked).to.deep.equal([{ ...caller, campaignId: 'g', at: now }]);
  });

  for (const [decision, refusal] of refusals) {
    it(`is refused if the check returns ${decision}`, async () => {
      expect(await readProblem(authorize(createCalls({ decision }).ports, caller, 'g'))).to.equal(refusal);
    });
  }
});

describe('an outcome reported by a provider', () => {
  const report = async (outcome: Partial<Outcome> = {}, result: 'recorded' | 'not-needed' | null = 'recorded') => {
    const stored: unknown[] = [];
    const counted: string[] = [];
    const ports = fakePorts({
      stores: {
        dialing: {
          reportOutcome: async (...report) => {
            stored.push(report);
            return result;
          },
        },
      },
    });
    const problem = await readProblem(
      reportOutcome({ ...ports, onOutcome: (state) => counted.push(state) }, { handoffId: 'h', state: 'busy', ...outcome }),
    );
    return { stored, counted, problem };
  };

  it('is stored and counted', async () => {
    const { stored, counted } = await report({ detail: 'Busy.', endedAt: '2026-11-21T08:59:59Z', durationSeconds: 0 });
    expect(stored).to.deep.equal([['h', { state: 'busy', detail: 'Busy.', endedAt: instant(now - 1_000), durationSeconds: 0 }, now]]);
    expect(counted).to.deep.equal(['busy']);
  });

  for (const [what, endedAt] of [
    ['without an end time', {}],
    ['with an end time in the future', { endedAt: '2026-11-21T09:00:01Z' }],
  ] as const) {
    it(`${what} is stored with the current time`, async () => {
      expect((await report(endedAt)).stored).to.deep.equal([
        ['h', { state: 'busy', detail: null, endedAt: now, durationSeconds: null }, now],
      ]);
    });
  }

  it("is counted only once, even if it's repeated", async () => {
    expect((await report({}, 'not-needed')).counted).to.deep.equal([]);
  });

  it("is refused, and isn't counted, for a call that was never handed off", async () => {
    const { problem, counted } = await report({}, null);
    expect([problem, counted]).to.deep.equal(["not-found: This hand-off doesn't exist.", []]);
  });
});
