import { expect } from 'chai';
import { type CallState, callStates } from '#contract/calls/states.ts';
import { instant } from '../../core/domain/instant.ts';
import type { CallFilter, CallScope } from '../../core/domain/ports.ts';
import { at, testRandomness } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { tenantsForEach } from '../support/tenants.ts';

const start = at('2026-11-01T00:00:00.000Z');
const filter: CallFilter = { placed: { from: null, before: null }, states: [], apiKey: null, search: '' };
/** With these IDs, calls sort by number. */
const toId = (number: number) => `c${String(number).padStart(6, '0')}`;

describe("a key's calls", () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsForEach(kind);

    type Placed = { number: number; campaign: { id: string; accountId: string }; key: string; state: CallState };
    const addCalls = (calls: readonly Placed[]) =>
      direct.storage.database.write.batchInsert(
        'calls',
        calls.map(({ number, campaign, key, state }) => {
          const isOpen = state === 'queued' || state === 'dialing';
          return {
            ...{ contact_id: toId(number), request_id: toId(number), campaign_id: campaign.id, account_id: campaign.accountId },
            ...{ api_key_id: key, state, name: number % 4 === 0 ? 'Zoë' : null, placed_at: start + number },
            ...{ due_at: isOpen ? start + number : null, ended_at: isOpen ? null : start + number },
          };
        }),
        50,
      );
    const list = (scope: CallScope, chosen: CallFilter, cursor: string | null, limit = 51) =>
      direct.ports.stores.callList.list(scope, chosen, cursor, { kind: 'all' }, limit);
    /** Reads the whole list, as the console does. */
    async function listAll(scope: CallScope, chosen: CallFilter): Promise<string[]> {
      const ids: string[] = [];
      for (let cursor: string | null = null; ; ) {
        const { calls, end } = await list(scope, chosen, cursor, 8);
        ids.push(...calls.slice(0, 7).map(({ contactId }) => contactId));
        if (calls.length < 8 && end === null) return ids;
        cursor = calls.length < 8 ? (end?.contactId ?? null) : (ids.at(-1) ?? null);
      }
    }

    it('are found stretch by stretch, newest first, however many calls of other keys are newer', async () => {
      const { campaign, partner, siblingCampaign } = tenants;
      const others = Array.from({ length: 12_000 }, (_, n) => ({ number: 100 + n, campaign, key: 'other', state: 'completed' as const }));
      const own = Array.from(
        { length: 60 },
        (_, n): Placed => ({ number: n, campaign: n % 2 ? campaign : siblingCampaign, key: 'own', state: 'completed' }),
      );
      await addCalls([...others, ...own]);
      const scope = { kind: 'partner', partnerId: partner.id } as const;
      const chosen = { ...filter, apiKey: 'own' };
      const first = await list(scope, chosen, null);
      expect([first.calls, first.end !== null]).to.deep.equal([[], true]);
      expect(await listAll(scope, chosen)).to.deep.equal(Array.from({ length: 60 }, (_, n) => toId(59 - n)));
    });

    it('are the same as in the list of all calls, with every filter', async () => {
      const { account, campaign, otherCampaign, partner, siblingCampaign } = tenants;
      const campaigns = [campaign, siblingCampaign, otherCampaign];
      const random = () => Buffer.from(testRandomness.bytes(4)).readUInt32BE();
      const pick = <Item>(items: readonly Item[], otherwise: Item) => items[random() % items.length] ?? otherwise;
      const all = Array.from(
        { length: 400 },
        (_, number): Placed => ({
          ...{ number, campaign: pick(campaigns, campaign), key: pick(['own', 'other'], 'own'), state: pick(callStates, 'queued') },
        }),
      );
      await addCalls(all);
      const scopes: (readonly [CallScope, readonly { id: string }[]])[] = [
        [{ kind: 'partner', partnerId: partner.id }, [campaign, siblingCampaign]],
        [{ kind: 'account', accountId: account.id }, [campaign]],
        [{ kind: 'campaigns', ids: [campaign.id] }, [campaign]],
        [{ kind: 'campaigns', ids: [campaign.id, siblingCampaign.id] }, [campaign, siblingCampaign]],
        [{ kind: 'nothing' }, []],
      ];
      const end = (number: number) => ({ at: instant(start + number), lowestId: toId(number), highestId: toId(number) });
      const ranges = [filter.placed, { from: end(100), before: end(300) }];
      const states: CallState[][] = [[], ['queued'], ['failed'], ['completed'], ['queued', 'failed', 'completed'], ['busy', 'lapsed']];
      for (const [scope, visible] of scopes)
        for (const placed of ranges)
          for (const chosen of states)
            for (const search of ['', 'zoe']) {
              const expected = all.filter(
                (call) =>
                  call.key === 'own' &&
                  visible.some(({ id }) => id === call.campaign.id) &&
                  (chosen.length === 0 || chosen.includes(call.state)) &&
                  (search === '' || call.number % 4 === 0) &&
                  (placed.from === null || (call.number >= 100 && call.number < 300)),
              );
              const query = { placed, states: chosen, apiKey: 'own', search };
              const ids = expected.map(({ number }) => toId(number)).toReversed();
              expect(await listAll(scope, query), JSON.stringify([scope, query])).to.deep.equal(ids);
              const { counts } = await direct.ports.stores.callList.count(scope, query, null);
              expect(counts.reduce((sum, { calls }) => sum + calls, 0)).to.equal(ids.length);
            }
    });
  });
});
