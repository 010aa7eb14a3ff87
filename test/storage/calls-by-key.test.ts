import { expect } from 'chai';
import { type CallState, callStates } from '#contract/calls/states.ts';
import { instant } from '../../core/domain/instant.ts';
import type { CallFilter, CallScope } from '../../core/domain/ports.ts';
import { at, testRandomness } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { insertRows, restoredTenants } from '../support/tenants.ts';

const start = at('2026-11-01T00:00:00.000Z');
const filter: CallFilter = { placed: { from: null, before: null }, states: [], apiKey: null, search: '' };
/** With these IDs, calls sort by number. */
const toId = (number: number) => `c${String(number).padStart(6, '0')}`;

describe("a key's calls", () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = restoredTenants(kind);

    type Placed = { number: number; campaign: { id: string; accountId: string }; key: string; state: CallState };
    const addCalls = (calls: readonly Placed[]) => {
      const rows = calls.map(({ number, campaign, key, state }) => {
        const isOpen = state === 'queued' || state === 'dialing';
        return {
          ...{ contact_id: toId(number), request_id: toId(number), campaign_id: campaign.id, account_id: campaign.accountId },
          ...{ api_key_id: key, state, name: number % 4 === 0 ? 'Zoë' : null, placed_at: start + number },
          ...{ due_at: isOpen ? start + number : null, ended_at: isOpen ? null : start + number },
        };
      });
      return insertRows(direct, 'calls', rows);
    };
    const list = (scope: CallScope, chosen: CallFilter, cursor: string | null, limit = 51) =>
      direct.ports.stores.callList.list(scope, chosen, cursor, { kind: 'all' }, limit);
    /** Reads the whole list page by page, as the console does. */
    async function listAll(scope: CallScope, chosen: CallFilter, pageSize: number): Promise<string[]> {
      const ids: string[] = [];
      for (let cursor: string | null = null; ; ) {
        const { calls, end } = await list(scope, chosen, cursor, pageSize + 1);
        ids.push(...calls.slice(0, pageSize).map(({ contactId }) => contactId));
        if (calls.length <= pageSize && end === null) return ids;
        cursor = calls.length <= pageSize ? (end?.contactId ?? null) : (ids.at(-1) ?? null);
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
      expect(await listAll(scope, chosen, 7)).to.deep.equal(Array.from({ length: 60 }, (_, n) => toId(59 - n)));
    });

    /** Adds calls of two keys, in any state and campaign. @returns those of the key `own` */
    async function addRandomCalls(count: number): Promise<Placed[]> {
      const { campaign, otherCampaign, siblingCampaign } = tenants;
      const random = () => Buffer.from(testRandomness.bytes(4)).readUInt32BE();
      const pick = <Item>(items: readonly Item[], otherwise: Item) => items[random() % items.length] ?? otherwise;
      const calls = Array.from({ length: count }, (_, number) => ({
        ...{ number, campaign: pick([campaign, siblingCampaign, otherCampaign], campaign) },
        ...{ key: pick(['own', 'other'], 'own'), state: pick(callStates, 'queued') },
      }));
      await addCalls(calls);
      return calls.filter(({ key }) => key === 'own');
    }

    const end = (number: number) => ({ at: instant(start + number), lowestId: toId(number), highestId: toId(number) });
    const someStates: CallState[][] = [[], ['queued'], ['failed'], ['completed'], ['queued', 'failed', 'completed'], ['busy', 'lapsed']];
    /** Every combination of the filters, each with the calls that match it. */
    const filters = [filter.placed, { from: end(100), before: end(300) }].flatMap((placed) =>
      someStates.flatMap((states) =>
        ['', 'zoe'].map((search) => ({
          filter: { placed, states, apiKey: 'own', search },
          matches: ({ number, state }: Placed) =>
            (states.length === 0 || states.includes(state)) &&
            (search === '' || number % 4 === 0) &&
            (placed.from === null || (number >= 100 && number < 300)),
        })),
      ),
    );

    it('are the same as in the list of all calls, with every filter', async () => {
      const { account, campaign, partner, siblingCampaign } = tenants;
      const own = await addRandomCalls(400);
      const scopes: (readonly [CallScope, readonly { id: string }[]])[] = [
        [{ kind: 'partner', partnerId: partner.id }, [campaign, siblingCampaign]],
        [{ kind: 'account', accountId: account.id }, [campaign]],
        [{ kind: 'campaigns', ids: [campaign.id] }, [campaign]],
        [{ kind: 'campaigns', ids: [campaign.id, siblingCampaign.id] }, [campaign, siblingCampaign]],
        [{ kind: 'nothing' }, []],
      ];
      for (const [scope, visible] of scopes)
        for (const { filter, matches } of filters) {
          const expected = own.filter((call) => visible.some(({ id }) => id === call.campaign.id) && matches(call));
          const ids = expected.map(({ number }) => toId(number)).toReversed();
          expect(await listAll(scope, filter, 24), JSON.stringify([scope, filter])).to.deep.equal(ids);
          const { counts } = await direct.ports.stores.callList.count(scope, filter, null);
          expect(counts.reduce((sum, { calls }) => sum + calls, 0)).to.equal(ids.length);
        }
    });
  });
});
