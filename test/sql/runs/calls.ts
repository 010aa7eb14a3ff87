import { toDigest } from '../../../core/domain/api-keys.ts';
import type { CallFilter } from '../../../core/domain/model.ts';
import type { ScopeRules } from '../../../core/domain/ports.ts';
import { testRandomness } from '../../support/clock.ts';
import { toCaller } from '../../support/tenants.ts';
import { allCalls, each, type Fixtures, later, now, oneDay, type Runs, today } from '../fixtures.ts';

export function createCallsRuns({
  stores,
  partner,
  account,
  campaign,
  event,
  own,
  callScopes,
  oneCampaign,
  key,
  requestWith,
  createCall,
  placed,
  claimed,
  toNumbers,
}: Fixtures): Pick<Runs, 'calls' | 'dialing' | 'callList'> {
  return {
    calls: {
      async findActive(findActive) {
        const unlimited = await key();
        const limited = await key();
        const limits = { version: testRandomness.id(), addresses: ['192.0.2.0/24'], callsPerDay: null, timeZone: 'UTC' };
        await stores.apiKeys.limit(limited.key.id, null, limits, today, event());
        for (const digest of [unlimited.digest, limited.digest, toDigest('unknown')]) await findActive({ ...toCaller(digest), at: now });
      },
      async place(place) {
        const { request, call } = await placed();
        await place(request, createCall());
        // One of the two is a repeated call. The statement inserts only the other one, so a query has to find out which call is new.
        await Promise.all([place(request, { ...call, contactId: testRandomness.id() }), place(request, createCall())]);
        const counted = await key();
        const limits = { version: testRandomness.id(), addresses: null, callsPerDay: 1, timeZone: 'UTC' };
        await stores.apiKeys.limit(counted.key.id, null, limits, today, event());
        await place({ ...requestWith(counted.digest), key: { expiresAt: null, limits } }, createCall());
      },
      async cancel(cancel) {
        const { request, call } = await placed();
        await cancel(request, { requestId: call.requestId });
        await cancel(request, { requestId: call.requestId });
        const other = await placed();
        await cancel(other.request, { contactId: other.call.contactId });
        await cancel(other.request, { contactId: other.call.contactId });
      },
      authorize: async (authorize) => authorize(requestWith((await key()).digest)),
    },
    dialing: {
      async claim(claim) {
        await placed();
        await claim(1, 'webhook', now, later);
        const scope = {
          kind: 'campaign',
          id: campaign.id,
          name: 'A campaign',
          owner: { accountId: account.id, partnerId: partner.id },
        } as const;
        const call = createCall();
        await stores.calls.place(requestWith((await key()).digest), call);
        const rules: Partial<ScopeRules>[] = [
          { hours: [{ prefix: '', days: ['sun'], from: '09:00', to: '18:00' }] },
          { hours: [{ prefix: '', date: '2026-11-21', from: '00:00', to: '24:00' }] },
          { hours: null, countries: ['FR'] },
        ];
        await each(rules, async (rule) => {
          await placed();
          await stores.protection.setRules(scope, rule, event(), null);
          await claim(1, 'webhook', now, later);
        });
        await stores.protection.setRules(scope, { hours: null, countries: null }, event(), null);
        const listed = await placed();
        await stores.protection.addNumbers(toNumbers(listed.call.phone), now, event());
        await claim(100, 'webhook', now, later);
      },
      async settle(settle) {
        const settled = { detail: 'No answer.', endedAt: now, durationSeconds: null };
        await settle(await claimed(), { event: 'taken', to: 'taken', dialedAt: now, dueAt: later });
        await settle(await claimed(), { event: 'not-taken', to: 'retry', at: now, dueAt: later, detail: 'Busy.' });
        await settle(await claimed(), { event: 'rejected', to: 'failed', ...settled });
      },
      async reportOutcome(reportOutcome) {
        const { contactId } = await claimed();
        const outcome = { state: 'completed', detail: null, endedAt: later, durationSeconds: 30 } as const;
        await reportOutcome(contactId, outcome, later);
        await reportOutcome(contactId, outcome, later);
        const nextEvent = () => event();
        await reportOutcome(contactId, outcome, later, { id: testRandomness.id(), buildEvent: nextEvent });
      },
      lapse: (lapse) => lapse(now),
      endForgotten: (endForgotten) => endForgotten(now),
      recoverFromClockStep: (recover) => recover(now, true),
      async noteTrouble(noteTrouble) {
        await noteTrouble('a core', { since: now, reason: 'The provider is down.' }, now);
      },
      findTrouble: (findTrouble) => findTrouble(now),
      queue: (queue) => queue(now),
    },
    callList: {
      hasCampaign: (hasCampaign) => hasCampaign({ kind: 'account', accountId: account.id }, campaign.id),
      async list(list) {
        const { call } = await placed();
        await each(callScopes, (scope) => list(scope, allCalls, null, own, 1));
        const narrow: CallFilter = { placed: oneDay, states: ['queued', 'dialing'], apiKey: testRandomness.id(), search: '+49 30' };
        await list(oneCampaign, narrow, call.contactId, own, 100);
        await list({ kind: 'account', accountId: account.id }, { ...allCalls, search: 'Ada' }, null, own, 100);
        await list({ kind: 'account', accountId: account.id }, { ...allCalls, states: ['failed', 'busy'] }, null, own, 100);
      },
      async countUpTo(countUpTo) {
        await countUpTo(oneCampaign, allCalls, 1_000);
        await countUpTo(oneCampaign, { ...allCalls, states: ['completed'] }, 1_000);
        await countUpTo({ kind: 'account', accountId: account.id }, { ...allCalls, placed: oneDay, states: ['failed'] }, 1_000);
      },
      count: (count) => count(oneCampaign, allCalls, null),
      seesKey: (seesKey) => seesKey(own, testRandomness.id()),
      find: async (find) => find(campaign.id, (await placed()).call.contactId, own),
      summary: (summary) => summary(campaign.id, now),
      summaryOfAll: (summaryOfAll) => summaryOfAll([campaign.id], [now], null),
      compactCounts: (compactCounts) => compactCounts(),
    },
  };
}
