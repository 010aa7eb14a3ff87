import { expect } from 'chai';
import type { Outcome } from '#contract/calls/dialer.ts';
import { listCalls, showCall, summarizeAllCalls, summarizeCalls } from '../../core/domain/calls/call-list.ts';
import { authorize, cancelCall, findActiveKey, placeCall } from '../../core/domain/calls/calls.ts';
import { reportOutcome } from '../../core/domain/calls/outcomes.ts';
import { instant } from '../../core/domain/instant.ts';
import type { CallCount, CallDetails, ListedCall, NewCall } from '../../core/domain/model.ts';
import type { CallStore, Cancellation, Placement, Refusal } from '../../core/domain/ports/calls.ts';
import { at } from '../support/clock.ts';
import { fakePorts, readProblem, viewers } from '../support/ports.ts';

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

describe('a placed call', () => {
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
  ] as const) {
    it(`is refused for ${kind}`, async () => {
      expect(await readProblem(place(createCalls({ placement: { kind } })))).to.equal(refusal);
    });
  }
});

describe('a cancelled call', () => {
  const cancel = (to: ReturnType<typeof createCalls>) => cancelCall(to.ports, caller, 'g', { requestId: 'r' });

  it('is returned with the time of the cancellation', async () => {
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
    it(`is refused for ${kind}`, async () => {
      expect(await readProblem(cancel(createCalls({ cancellation: { kind } })))).to.equal(refusal);
    });
  }
});

describe('an API key', () => {
  it('is looked up at the current time', async () => {
    const to = createCalls();
    expect(await findActiveKey(to.ports, { ...caller, address: 'a' })).to.deep.equal({ expiresAt: instant(5), limits: null });
    expect(to.asked).to.deep.equal([{ ...caller, address: 'a', at: now }]);
  });

  it('has access to its campaigns', async () => {
    const to = createCalls();
    await authorize(to.ports, caller, 'g');
    expect(to.asked).to.deep.equal([{ ...caller, campaignId: 'g', at: now }]);
  });

  for (const [decision, refusal] of refusals) {
    it(`with the result ${decision} is refused`, async () => {
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

describe("a campaign's calls", () => {
  const { account } = viewers;
  const listed = (contactId: string): ListedCall => ({
    ...{ requestId: contactId, contactId, phone: null, name: null, state: 'queued', detail: null },
    ...{ placedAt: at('2026-11-21T09:00:00Z'), dialedAt: null, endedAt: null, apiKey: null, isSimulated: false },
    ...{ heldUntil: null, timeZone: null },
    campaign: { id: 'g', name: 'G' },
  });
  const placedAt = at('2026-11-21T08:00:00Z');
  const nothing = { count: 0, isInScope: true, ends: [] as string[], summary: [] as CallCount[], details: null as CallDetails | null };
  const createPorts = (given: Partial<typeof nothing> = {}) => {
    const { count, isInScope, ends, summary, details } = { ...nothing, ...given };
    const asked: unknown[] = [];
    const callList = {
      hasCampaign: async (...access: unknown[]) => {
        asked.push(access);
        return isInScope;
      },
      list: async (...filter: unknown[]) => {
        asked.push(filter);
        const end = ends.shift();
        return {
          calls: Array.from({ length: end ? 1 : count }, (_, n) => listed(`c${n}`)),
          end: end ? { contactId: end, placedAt } : null,
        };
      },
      countUpTo: async () => 10_001,
      count: async () => ({ counts: [{ campaignId: 'g', quarterAt: instant(0), state: 'busy' as const, calls: 70 }], end: null }),
      find: async (...given: unknown[]) => {
        asked.push(given);
        return details;
      },
      summary: async (...since: unknown[]) => {
        asked.push(since);
        return summary;
      },
      summaryOfAll: async (...access: unknown[]) => {
        asked.push(access);
        return summary.flatMap((count) => ['g', 'h'].map((campaignId) => ({ ...count, campaignId })));
      },
    };
    const listCampaigns = async () => ['g', 'h'].map((id) => ({ id, name: id, account: { id: 'a1', name: 'A' } }));
    return { ports: fakePorts({ stores: { callList, tenancies: { listCampaigns } } }), asked };
  };
  const always = { from: null, before: null };
  const filter = { placed: always, states: [], apiKey: null, search: '' };
  const query = { campaignId: 'g', cursor: null, filter };
  const scope = { kind: 'campaigns', ids: ['g'] };
  const forEver = { goOn: async () => true };

  it('are searched in batches until a page is full or no more calls are left', async () => {
    const { ports, asked } = createPorts({ count: 49, ends: ['e1', 'e2'] });
    const { items, nextCursor, searchedBackTo } = await listCalls(
      ports,
      account,
      { ...query, filter: { ...filter, search: 'x' } },
      forEver,
    );
    expect([items.length, nextCursor, searchedBackTo]).to.deep.equal([50, 'c47', null]);
    expect(asked.slice(1).map((each) => (each as unknown[]).toSpliced(3, 1))).to.deep.equal([
      [scope, { ...filter, search: 'x' }, null, 51],
      [scope, { ...filter, search: 'x' }, 'e1', 50],
      [scope, { ...filter, search: 'x' }, 'e2', 49],
    ]);
  });

  it('are returned as far as they were found when the time is up, with the place where the search stopped', async () => {
    const { ports } = createPorts({ ends: ['e1', 'e2'] });
    const page = await listCalls(ports, account, query, { goOn: async () => false });
    expect([page.items.length, page.nextCursor, page.searchedBackTo]).to.deep.equal([1, 'e1', placedAt]);
    expect(page.total).to.equal(1);
    expect(page.totalIsMore).to.equal(true);
  });

  it('are returned in pages of fifty with a cursor', async () => {
    const { ports, asked } = createPorts({ count: 51 });
    const { items, nextCursor, total, totalIsMore } = await listCalls(ports, account, query, forEver);
    expect(items.length).to.equal(50);
    expect(nextCursor).to.equal('c49');
    expect(total).to.equal(10_000);
    expect(totalIsMore).to.equal(true);
    expect(asked).to.deep.equal([
      [{ kind: 'account', accountId: 'a1' }, 'g'],
      [scope, filter, null, { kind: 'own', userId: 'ada' }, 51],
    ]);
  });

  it("are returned with their details, but with their key only if it's in the viewer's scope", async () => {
    const details: CallDetails = {
      ...{ call: listed('c'), timeZone: null, variables: {}, notBefore: null, notAfter: null, durationSeconds: null },
      ...{ attempts: 0, firstAttemptAt: null, nextAttemptAt: null, toldLateAt: null },
    };
    const { ports, asked } = createPorts({ details });
    expect(await showCall(ports, account, 'g', 'c')).to.equal(details);
    expect(asked).to.deep.equal([
      [{ kind: 'account', accountId: 'a1' }, 'g'],
      ['g', 'c', { kind: 'own', userId: 'ada' }],
    ]);
    expect(await readProblem(showCall(createPorts().ports, account, 'g', 'c'))).to.equal(
      "not-found: This call doesn't exist in this campaign.",
    );
  });

  it('are counted by day, in a time zone, and by state', async () => {
    const count = (instant: string, state: 'queued' | 'busy' | 'unknown', calls: number) => ({
      quarterAt: at(instant),
      state,
      calls,
    });
    const counts = [
      // A late outcome has replaced the only one.
      count('2026-11-21T01:00:00Z', 'unknown', 1),
      count('2026-11-21T01:00:00Z', 'unknown', -1),
      count('2026-11-20T23:00:00Z', 'busy', 1),
      count('2026-11-21T01:00:00Z', 'busy', 2),
      count('2026-11-21T01:00:00Z', 'queued', 4),
    ];
    const { ports, asked } = createPorts({ summary: counts });
    const chart = { days: { timeZone: 'Europe/Berlin' }, filter };
    const { days } = await summarizeCalls(ports, account, 'g', chart, forEver);
    expect(days.slice(-2)).to.deep.equal([
      { day: '2026-11-20', states: {} },
      { day: '2026-11-21', states: { busy: 3, queued: 4 } },
    ]);
    expect(asked[1]).to.deep.equal(['g', Date.parse('2026-10-22T22:00:00Z')]);
    const { days: all } = await summarizeAllCalls(ports, account, { search: '', cursor: null }, chart, forEver);
    const states = { busy: 3, queued: 4 };
    expect(all.slice(-2)).to.deep.equal([
      { day: '2026-11-20', campaigns: [] },
      { day: '2026-11-21', campaigns: ['g', 'h'].map((id) => ({ id, states })) },
    ]);
    const [ids, starts] = asked[2] as [unknown, number[]];
    expect(ids).to.deep.equal(['g', 'h']);
    expect([starts.length, starts[0], starts[29]]).to.deep.equal([
      30,
      Date.parse('2026-10-22T22:00:00Z'),
      Date.parse('2026-11-20T23:00:00Z'),
    ]);
  });

  it("aren't found outside the viewer's scope", async () => {
    const { ports } = createPorts({ isInScope: false });
    const refusal = "not-found: This campaign doesn't exist, or you don't have access to it.";
    expect(await readProblem(listCalls(ports, account, query, forEver))).to.equal(refusal);
    expect(await readProblem(showCall(ports, account, 'g', 'c'))).to.equal(refusal);
    expect(await readProblem(summarizeCalls(ports, account, 'g', { days: { timeZone: 'UTC' }, filter }, forEver))).to.equal(refusal);
  });
});
