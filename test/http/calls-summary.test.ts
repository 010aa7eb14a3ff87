import { expect } from 'chai';
import { allCallsSummarySchema, callsSummarySchema } from '#contract/console/calls.ts';
import { oneDay, plus } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, placeCall, restoreForEach, signIn } from '../support/tenants.ts';

const nothingElse = { detail: null, durationSeconds: null };

describe('a call summary', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let cookie: string;
    let key: { id: string; keyValue: string };

    before(async () => {
      cookie = await signIn(harness.core.url, 'ada@example.com');
      key = await createKey(harness.core.url, cookie);
    });
    restoreForEach(() => harness.direct);
    beforeEach(() => clock.set('2026-11-21T09:00:00.000Z'));

    const summarize = (query = '?timeZone=UTC', campaign = harness.tenants.campaign.id, as = cookie) =>
      ask('GET', `${harness.core.url}/console/campaigns/${campaign}/calls/summary${query}`, { cookie: as });
    const summarizeAll = (query = '?timeZone=UTC', as = cookie) =>
      ask('GET', `${harness.core.url}/console/calls/summary${query}`, { cookie: as });
    /** The summary of all campaigns in scope is the same, since Ada has only this one. */
    const days = async (timeZone = 'UTC') => {
      const as = await signIn(harness.core.url, 'ada@example.com');
      const answer = await summarize(`?timeZone=${timeZone}`, harness.tenants.campaign.id, as);
      const { days } = callsSummarySchema.strict().parse(answer.json);
      const all = allCallsSummarySchema.strict().parse((await summarizeAll(`?timeZone=${timeZone}`, as)).json);
      const toCampaigns = (states: object) => (Object.keys(states).length === 0 ? [] : [{ id: harness.tenants.campaign.id, states }]);
      expect(all.days).to.deep.equal(days.map(({ day, states }) => ({ day, campaigns: toCampaigns(states) })));
      return days;
    };
    const filled = async (timeZone?: string) => (await days(timeZone)).filter(({ states }) => Object.keys(states).length > 0);
    const today = async () => (await days()).at(-1)?.states;
    const place = async (requestId: string, more: object = {}) => {
      const answer = await placeCall(harness.core.url, harness.tenants.campaign.id, key.keyValue, {
        requestId,
        contact: { phone: '+493012345678' },
        ...more,
      });
      expect(answer.status).to.equal(202);
    };
    const claim = (limit: number) => harness.direct.ports.stores.dialing.claim(limit, 'webhook', clock.now(), plus(clock.now(), 30_000));

    it('of the last 30 days shows a call immediately, on the day it was placed, whenever it ends', async () => {
      clock.set('2026-11-18T18:20:00.000Z');
      await place('early');
      expect((await days()).map(({ day }) => day))
        .to.include.members(['2026-10-20', '2026-11-18'])
        .and.have.length(30);
      expect(await filled()).to.deep.equal([{ day: '2026-11-18', states: { queued: 1 } }]);
      const [call] = await claim(1);
      clock.set('2026-11-21T09:00:00.000Z');
      const outcome = { state: 'completed', endedAt: clock.now(), ...nothingElse } as const;
      await harness.direct.ports.stores.dialing.recordOutcome(call?.contactId ?? '', outcome, clock.now());
      expect(await filled()).to.deep.equal([{ day: '2026-11-18', states: { completed: 1 } }]);
      // 18:15 in UTC is midnight in Kathmandu.
      expect(await filled('Asia/Kathmandu')).to.deep.equal([{ day: '2026-11-19', states: { completed: 1 } }]);
    });

    it('says who answered the completed calls, also of a late outcome, with every filter that includes them', async () => {
      const outcomes = ['person', 'machine', 'machine', 'unknown', undefined, 'machine'] as const;
      for (const n of outcomes.keys()) await place(`answered-${n}`, { contact: { phone: '+493012345678', name: 'Mia' } });
      const { dialing, callList } = harness.direct.ports.stores;
      const claimed = await claim(outcomes.length);
      const [late] = claimed;
      if (late) await dialing.settle(late, { event: 'must-not-repeat', to: 'unknown', endedAt: clock.now(), ...nothingElse });
      for (const [n, answeredBy] of outcomes.entries()) {
        const outcome = { state: n === 5 ? 'busy' : 'completed', endedAt: clock.now(), ...nothingElse, answeredBy } as const;
        for (const _ of ['first', 'repeat']) await dialing.recordOutcome(claimed[n]?.contactId ?? '', outcome, clock.now());
      }
      const counted = { states: { completed: 5, busy: 1 }, answeredBy: { person: 1, machine: 2, unknown: 1 } };
      for (const compact of [async () => {}, () => callList.compactCounts()]) {
        await compact();
        const both = { filters: ['', '&search=Mia', `&apiKey=${key.id}`], expected: counted };
        const completed = {
          filters: ['&state=completed', '&state=completed&search=Mia'],
          expected: { ...counted, states: { completed: 5 } },
        };
        const busy = { filters: ['&state=busy', '&state=busy&search=Mia'], expected: { states: { busy: 1 } } };
        for (const { filters, expected } of [both, completed, busy]) {
          for (const filter of filters) {
            const { days } = callsSummarySchema.parse((await summarize(`?timeZone=UTC${filter}`)).json);
            expect(days.at(-1), filter).to.deep.equal({ day: '2026-11-21', ...expected });
            for (const as of [cookie, await signIn(harness.core.url, 'pat@example.com')]) {
              const all = allCallsSummarySchema.parse((await summarizeAll(`?timeZone=UTC${filter}`, as)).json);
              expect(all.days.at(-1)?.campaigns, filter).to.deep.equal([{ id: harness.tenants.campaign.id, ...expected }]);
            }
          }
        }
      }
    });

    it('still includes calls whose contact data was erased', async () => {
      await place('erased');
      await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/erased`, { key: key.keyValue });
      await harness.direct.ports.stores.retention.erase(plus(clock.now(), oneDay));
      expect(await today()).to.deep.equal({ cancelled: 1 });
    });

    it('counts every call exactly once if counts are compacted while calls end', async () => {
      const ids = Array.from({ length: 60 }, (_, n) => `r${n}`);
      await Promise.all(ids.map((id) => place(id)));
      const { callList } = harness.direct.ports.stores;
      const cancels = ids.map((id) =>
        ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/${id}`, { key: key.keyValue }),
      );
      await Promise.all([...cancels, ...Array.from({ length: 10 }, () => callList.compactCounts())]);
      await callList.compactCounts();
      expect(await today()).to.deep.equal({ cancelled: 60 });
    });

    it('of several campaigns excludes ended calls that were placed after its range, and counts calls placed while the clock was ahead as placed today', async () => {
      await place('ended');
      await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/ended`, { key: key.keyValue });
      clock.set('2026-11-20T09:00:00.000Z');
      const pat = await signIn(harness.core.url, 'pat@example.com');
      const lastDay = async (range: string) => {
        const answer = await summarizeAll(`?timeZone=UTC${range}`, pat);
        return allCallsSummarySchema.strict().parse(answer.json).days.at(-1);
      };
      expect(await lastDay('&from=2026-11-18&to=2026-11-19')).to.deep.equal({ day: '2026-11-19', campaigns: [] });
      expect(await lastDay('')).to.deep.equal({
        day: '2026-11-20',
        campaigns: [{ id: harness.tenants.campaign.id, states: { cancelled: 1 } }],
      });
    });
  });
});
