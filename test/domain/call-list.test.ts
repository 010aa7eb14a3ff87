import { expect } from 'chai';
import { listCalls, showCall, summarizeAllCalls, summarizeCalls } from '../../core/domain/calls/call-list.ts';
import { instant } from '../../core/domain/instant.ts';
import type { CallCount, CallDetails, ListedCall } from '../../core/domain/model.ts';
import { at } from '../support/clock.ts';
import { fakePorts, readProblem, viewers } from '../support/ports.ts';

describe("a campaign's calls", () => {
  const { account } = viewers;
  const listed = (contactId: string): ListedCall => ({
    ...{ requestId: contactId, contactId, phone: null, name: null, state: 'queued', detail: null },
    ...{ placedAt: at('2026-11-21T09:00:00Z'), dialedAt: null, endedAt: null, apiKey: null, isSimulated: false },
    ...{ heldUntil: null, heldFor: null, answeredBy: null, timeZone: null },
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
  const forEver = { yieldTurn: async () => true };

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

  it('are returned even if the search runs out of time: those found so far, with a cursor to where the search stopped', async () => {
    const { ports } = createPorts({ ends: ['e1', 'e2'] });
    const page = await listCalls(ports, account, query, { yieldTurn: async () => false });
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

  it('are counted by state and by day in a time zone', async () => {
    const count = (instant: string, state: 'queued' | 'busy' | 'unknown', calls: number) => ({
      quarterAt: at(instant),
      state,
      calls,
    });
    const counts = [
      // A late outcome has replaced the state of the only `unknown` call, so it's no longer counted as such.
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
