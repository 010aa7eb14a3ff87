import { expect } from 'chai';
import { callStates } from '#contract/calls/calls.ts';
import { handoffStages, isHandoffStage, stagesBefore, toState } from '../../core/domain/calls/call-states.ts';
import { instant } from '../../core/domain/instant.ts';
import { ResultUnknown } from '../../core/domain/problem.ts';
import { callStoreForEach, rejection } from '../support/call-store.ts';
import { onEachDatabase } from '../support/databases.ts';
import { toCaller } from '../support/tenants.ts';

describe('calls in the database', () => {
  onEachDatabase((kind) => {
    const store = callStoreForEach(kind);
    const { now, createKey, storeOn, request, place, row } = store;

    for (const by of ['requestId', 'contactId'] as const) {
      const reference = (requestId: string) => (by === 'requestId' ? { requestId } : { contactId: `contact of ${requestId}` });

      it(`are cancelled by their ${by}, and cancelling them again returns the same result`, async () => {
        await place('r');
        store.seen = [];
        const cancelled = { kind: 'cancelled', contactId: 'contact of r', requestId: 'r', cancelledAt: instant(now + 5) };
        expect(await store.calls.cancel(request({ at: instant(now + 5) }), reference('r'))).to.deep.equal(cancelled);
        expect(store.seen).to.deep.equal([
          ['cancel', 1],
          [store.digest, now + 5, 'cancelled'],
        ]);
        expect(await store.calls.cancel(request({ at: instant(now + 6) }), reference('r'))).to.deep.equal(cancelled);
        expect(store.seen.slice(2)).to.deep.equal([
          ['cancel', 1],
          ['explain', 1],
          [store.digest, now + 6],
        ]);
      });

      it(`can't be cancelled by their ${by} after they were dialed, or without access to them`, async () => {
        await place('r');
        await place('dialed');
        await store.direct.storage.database.write('calls').where({ request_id: 'dialed' }).update({ state: 'dialing', handoff: 'open' });
        const kinds = await Promise.all([
          store.calls.cancel(request(), reference('dialed')),
          store.calls.cancel(request(), reference('none')),
          store.calls.cancel(request({ campaignId: store.tenants.siblingCampaign.id }), reference('r')),
          store.calls.cancel(request({ by: 'no key' }), reference('r')),
          store.calls.cancel(request({ campaignId: store.tenants.siblingCampaign.id, by: store.partnerDigest }), reference('r')),
        ]);
        expect(kinds.map((answer) => answer.kind)).to.deep.equal([
          ...['already-dialed', 'call-not-found', 'campaign-refused', 'unauthorized', 'call-not-found'],
        ]);
        expect((await row('r'))?.state).to.equal('queued');
      });

      it(`are cancelled by their ${by} once they're dialed only if the provider certainly doesn't have them, and not after they ended`, async () => {
        const stages = [...handoffStages, ...callStates.filter((state) => state !== 'dialing' && state !== 'cancelled')];
        for (const stage of stages) {
          await place(stage);
          const handoff = isHandoffStage(stage) ? stage : null;
          const state = toState(stage);
          await store.direct.storage.database.write('calls').where({ request_id: stage }).update({ state, handoff });
          const { kind } = await store.calls.cancel(request(), reference(stage));
          expect(kind, stage).to.equal(stagesBefore('cancel').includes(stage) ? 'cancelled' : 'already-dialed');
        }
      });
    }

    it('are cancelled, but both results are unknown, if two requests cancel the same call in one batch and the lookup that tells them apart fails', async () => {
      const { database } = store.direct.storage;
      await place('r');
      store.calls = storeOn({
        ...database,
        prepare: (sql, mode) =>
          sql.includes('is_listed')
            ? () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
            : database.prepare(sql, mode),
      });
      const twice = [store.calls.cancel(request(), { requestId: 'r' }), store.calls.cancel(request(), { requestId: 'r' })];
      for (const error of await Promise.all(twice.map(rejection))) expect(error).to.be.an.instanceOf(ResultUnknown);
      expect((await row('r'))?.state).to.equal('cancelled');
    });

    it('with the same request ID in two campaigns are cancelled together, each with its own result', async () => {
      const campaigns = [store.tenants.campaign.id, store.tenants.siblingCampaign.id];
      for (const campaignId of campaigns) await place('r', { contactId: `in ${campaignId}` }, { campaignId, by: store.partnerDigest });
      const cancelled = await Promise.all(
        campaigns.map((campaignId) => store.calls.cancel(request({ campaignId, by: store.partnerDigest }), { requestId: 'r' })),
      );
      expect(cancelled.map((one) => one.kind === 'cancelled' && one.contactId)).to.deep.equal(campaigns.map((id) => `in ${id}`));
    });

    it("require a key that's active at the time of the request, and record the key's use", async () => {
      const end = '2026-11-22T23:59:59.999Z';
      const ending = await createKey(store.tenants.users.account, { kind: 'custom', date: end.slice(0, 10) });
      const last = Date.parse(end);
      const found = await Promise.all([
        store.calls.findActive({ ...toCaller(ending), at: instant(last) }),
        store.calls.findActive({ ...toCaller('no key'), at: instant(last) }),
        store.calls.findActive({ ...toCaller(store.digest), at: instant(last) }),
        store.calls.findActive({ ...toCaller(ending), at: instant(last + 60_000) }),
      ]);
      expect(found).to.deep.equal([{ expiresAt: last, limits: null }, null, { expiresAt: null, limits: null }, null]);
      expect(store.seen).to.deep.equal([
        ['look up', 4],
        [ending, last],
        [store.digest, last],
      ]);
    });

    it('make a request fail after five tries, with a Retry-After, if they change each time between its statement and its lookup', async () => {
      const { database } = store.direct.storage;
      let tries = 0;
      await place('r');
      store.calls = storeOn({
        ...database,
        prepare: (sql, mode) => {
          if (mode === 'read') return database.prepare(sql, mode);
          return async () => {
            tries++;
            return { rows: [], changed: 0 };
          };
        },
      });
      for (const trying of [() => place('new'), () => store.calls.cancel(request(), { requestId: 'r' })]) {
        tries = 0;
        const problem: unknown = await trying().catch((error: unknown) => error);
        expect(problem).to.include({
          ...{ code: 'unavailable', retryAfter: 1, message: 'The data that this request needs is changing too fast. Try again.' },
        });
        expect(tries).to.equal(5);
      }
    });
  });
});
