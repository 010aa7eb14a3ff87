import { expect } from 'chai';
import { callDetailsSchema } from '#contract/console/calls.ts';
import type { Settlement } from '../../core/domain/calls/call-states.ts';
import { instant } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('call details', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const its = openOnce(() => openCore({ kind, clock }));
    let cookie: string;
    let keyValue: string;

    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      cookie = await signIn(its.core.url, 'ada@example.com');
      ({ keyValue } = await createKey(its.core.url, cookie, 'Order system'));
    });

    const place = async (more: object = {}) => {
      const body = { contact: { phone: '+493012345678', name: 'Ada Lovelace', timeZone: 'Europe/Berlin' }, ...more };
      return textAt(await placeCall(its.core.url, its.tenants.campaign.id, keyValue, body), 'contactId');
    };
    const show = (contactId: string, campaignId = its.tenants.campaign.id) =>
      ask('GET', `${its.core.url}/console/campaigns/${campaignId}/calls/${contactId}`, { cookie });
    const readDetails = async (contactId: string) => callDetailsSchema.strict().parse((await show(contactId)).json);
    const claim = () => its.direct.ports.stores.dialing.claim(10, 'webhook', clock.now(), instant(clock.now() + 30_000));

    it("include the call's time window, variables, time zone and key", async () => {
      const window = { notBefore: '2026-11-21T10:00:00.000Z', notAfter: '2026-11-21T12:00:00.000Z' };
      const contactId = await place({ requestId: 'order-1', variables: { order: '4711', a: '' }, ...window });
      const { call, ...details } = await readDetails(contactId);
      expect(call).to.deep.include({ contactId, requestId: 'order-1', state: 'queued' });
      expect(call.apiKey?.name).to.equal('Order system');
      expect(details).to.deep.equal({
        ...window,
        timeZone: 'Europe/Berlin',
        variables: { a: '', order: '4711' },
        durationSeconds: null,
        attempts: 0,
        firstAttemptAt: null,
        nextAttemptAt: window.notBefore,
        toldLateAt: null,
      });
    });

    it('show the number of attempts and, until the provider has the call, when the next attempt is due', async () => {
      const contactId = await place();
      const [first] = (await claim()).filter((each) => each.contactId === contactId);
      const due = clock.now() + 60_000;
      if (first)
        await its.direct.ports.stores.dialing.settle(first, { event: 'not-taken', to: 'retry', at: clock.now(), dueAt: instant(due) });
      const tried = { attempts: 1, firstAttemptAt: '2026-11-21T09:00:00.000Z', nextAttemptAt: '2026-11-21T09:01:00.000Z' };
      expect(await readDetails(contactId)).to.deep.include(tried);
      clock.set('2026-11-21T09:01:00.000Z');
      const [second] = (await claim()).filter((each) => each.contactId === contactId);
      if (second)
        await its.direct.ports.stores.dialing.settle(second, { event: 'taken', to: 'taken', dialedAt: clock.now(), dueAt: instant(due) });
      expect(await readDetails(contactId)).to.deep.include({ ...tried, attempts: 2, nextAttemptAt: null });
    });

    it('show no next attempt of a call that lapses before the provider can be asked again', async () => {
      const contactId = await place({ notAfter: '2026-11-21T09:30:00.000Z' });
      const [call] = (await claim()).filter((each) => each.contactId === contactId);
      const dueAt = instant(Date.parse('2026-11-21T09:30:00.001Z'));
      if (call) await its.direct.ports.stores.dialing.settle(call, { event: 'not-taken', to: 'retry', at: clock.now(), dueAt });
      expect(await readDetails(contactId)).to.deep.include({ attempts: 1, nextAttemptAt: null });
    });

    describe('count as attempts only claims that may have handed the call off,', () => {
      let contactId: string;
      const ending = { endedAt: instant(1), durationSeconds: null, detail: null };
      /** Claims the call a minute later, and settles it. @param step without an attempt, as the dialer does if it has no hand-off to make */
      const claimAgain = async (settlement?: Settlement, step?: 'without an attempt') => {
        clock.set(new Date(clock.now() + 60_000).toISOString());
        const call = (await claim()).find((each) => each.contactId === contactId);
        if (!call) throw new Error("The call wasn't claimed.");
        const { dialing } = its.direct.ports.stores;
        if (settlement) expect(await dialing.settle(call, settlement, step === undefined)).to.equal(true);
      };
      const refused = () => ({ event: 'not-taken', to: 'retry', at: clock.now(), dueAt: clock.now() }) as const;
      const taken = () => ({ event: 'taken', to: 'taken', dialedAt: clock.now(), dueAt: clock.now() }) as const;

      beforeEach(async () => {
        await its.direct.storage.database.write('calls').delete();
        contactId = await place();
      });

      it('whatever collects the outcome', async () => {
        await claimAgain(taken());
        await claimAgain();
        await claimAgain({ event: 'outcome', to: 'busy', ...ending }, 'without an attempt');
        expect(await readDetails(contactId)).to.deep.include({ attempts: 1 });
      });

      it('also if the call ends as unknown', async () => {
        await claimAgain();
        await claimAgain({ event: 'must-not-repeat', to: 'unknown', ...ending }, 'without an attempt');
        const { call, attempts } = await readDetails(contactId);
        expect([call.state, attempts]).to.deep.equal(['unknown', 1]);
      });

      it('also if claims were put back between the attempts', async () => {
        await claimAgain(refused(), 'without an attempt');
        expect(await readDetails(contactId)).to.deep.include({ attempts: 0 });
        for (let attempt = 1; attempt <= 3; attempt++) {
          await claimAgain(refused());
          await claimAgain(refused(), 'without an attempt');
        }
        expect(await readDetails(contactId)).to.deep.include({ attempts: 3 });
      });
    });

    it('no longer include the variables once the contact’s data is erased', async () => {
      const contactId = await place({ variables: { order: '4711' } });
      await its.direct.storage.database
        .write('calls')
        .where({ contact_id: contactId })
        .update({ phone: null, name: null, time_zone: null, variables: null });
      expect(await readDetails(contactId)).to.deep.include({ variables: null, timeZone: null });
    });

    it("aren't found through another campaign, or by an invalid ID", async () => {
      const contactId = await place();
      cookie = await signIn(its.core.url, 'pat@example.com');
      expect((await show(contactId)).status).to.equal(200);
      for (const [id, campaign] of [
        [contactId, its.tenants.siblingCampaign.id],
        ['none', its.tenants.campaign.id],
        ['x'.repeat(65), its.tenants.campaign.id],
      ] as const) {
        const answer = await show(id, campaign);
        expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
      }
    });
  });
});
