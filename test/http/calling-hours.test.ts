import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { callsSchema } from '#contract/console/calls.ts';
import { callingHoursSchema, checkedNumberSchema, numbersSchema } from '#contract/protection/protection.ts';
import { csvLineReader } from '#contract/text/csv.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { createKey, onDemand, placeCall, signIn } from '../support/tenants.ts';

const every = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const daily = (from: string, to: string, prefix = '') => ({ prefix, days: every, from, to });
const berlin = '+4930200000';

describe('rules for calling', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    let harness: CoreHarness;
    let key: string;
    let cookie: string;

    before(async () => {
      harness = await openCore({ kind, clock, environment: { DIALER: 'off' } });
    });
    after(() => harness.close());
    beforeEach(async () => {
      // 20:00 in Berlin, on a Saturday.
      clock.set('2026-11-21T19:00:00.000Z');
      cookie = await signIn(harness.core.url, 'pat@example.com');
      key ??= (await createKey(harness.core.url, cookie)).keyValue;
      await harness.direct.storage.database.write('calls').delete();
      for (const scope of ['campaign', 'account', 'partner'] as const) {
        await setHours([], scope);
        if (scope !== 'campaign') await setNumbers({ countries: null, kinds: null }, scope);
      }
    });

    const formatUrl = (what: string, scope: 'campaign' | 'account' | 'partner') =>
      `${harness.core.url}/console/${what}?scope=${scope}&id=${harness.tenants[scope].id}`;
    const setHours = (rules: object[], scope: 'campaign' | 'account' | 'partner' = 'account') =>
      ask('PUT', formatUrl('calling-hours', scope), { cookie, body: { rules } });
    const setNumbers = (rules: object, scope: 'account' | 'partner' = 'account') =>
      ask('PUT', formatUrl('numbers', scope), { cookie, body: rules });
    const place = (body: object = {}, phone = berlin) =>
      placeCall(harness.core.url, harness.tenants.campaign.id, key, { contact: { phone }, ...body });
    const check = async (phone: string, more: object = {}) => {
      const body = { phone, campaignId: harness.tenants.campaign.id, ...more };
      return checkedNumberSchema.parse((await ask('POST', `${harness.core.url}/console/numbers/check`, { cookie, body })).json);
    };
    const claim = () => harness.direct.ports.stores.dialing.claim(10, 'webhook', clock.now(), plus(clock.now(), 30_000));
    const listed = async () => {
      const { json } = await ask('GET', `${harness.core.url}/console/calls`, { cookie });
      return callsSchema.parse(json).calls.map(({ state, heldUntil, heldZone, detail }) => ({ state, heldUntil, heldZone, detail }));
    };
    /** Returns the request ID of each exported call, and until when the file says that calling hours hold it. */
    const exported = async () => {
      const { text } = await ask('GET', `${harness.core.url}/console/calls.csv`, { cookie });
      const [head = [], ...rows] = text.split('\r\n').map(csvLineReader(','));
      const column = head.indexOf('Held until');
      return rows.filter(({ length }) => length === head.length).map((cells) => [cells[1], cells[column]]);
    };

    describe('calling hours', () => {
      it('hold a call until they open, and a repeated request returns the same time even if they have changed', async () => {
        await setHours([daily('09:00', '20:00')]);
        const held = await place({ requestId: 'held' });
        expect([held.status, held.json]).to.deep.include(202);
        expect(held.json).to.include({ state: 'queued', heldUntil: '2026-11-22T08:00:00.000Z' });
        expect(await listed()).to.deep.equal([
          { state: 'queued', heldUntil: '2026-11-22T08:00:00.000Z', heldZone: 'Europe/Berlin', detail: null },
        ]);
        expect((await ask('GET', `${harness.core.managementUrl}/metrics`)).text).to.contain('\ncallkey_calls_held 1\n');
        await setHours([]);
        expect((await place({ requestId: 'held' })).json).to.deep.equal(held.json);
        expect((await place({ requestId: 'free' })).json).not.to.have.property('heldUntil');
        expect((await claim()).map(({ requestId }) => requestId)).to.deep.equal(['free']);
        clock.set('2026-11-22T08:00:00.000Z');
        expect((await claim()).map(({ requestId }) => requestId)).to.include('held');
      });

      it('appear in exported calls that are waiting for them, and in no others', async () => {
        await setHours([daily('09:00', '20:00')]);
        await place({ requestId: 'held' });
        await place({ requestId: 'cancelled' });
        const { status } = await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/by-request-id/cancelled`, {
          key,
        });
        expect(status).to.equal(200);
        expect(await exported()).to.have.deep.members([
          ['held', '2026-11-22T08:00:00.000Z'],
          ['cancelled', ''],
        ]);
      });

      it('refuse a call if they open only after notAfter, and say when they open', async () => {
        await setHours([daily('09:00', '20:00')]);
        const answer = await place({ notAfter: '2026-11-22T07:59:00Z' });
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'outside-calling-hours']);
        expect(answer.text).to.contain('2026-11-22T08:00:00.000Z');
        // The call's window is empty, because it ends at the moment when calling hours open.
        expect((await place({ notAfter: '2026-11-22T08:00:00Z' })).status).to.equal(422);
        expect((await place({ notAfter: '2026-11-22T08:00:00.001Z' })).status).to.equal(202);
      });

      it('refuse a call if its time zone is unknown, unless the request contains one', async () => {
        await setHours([daily('09:00', '20:00')]);
        const answer = await place({}, '+18005550199');
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
        expect(answer.json).to.deep.include({
          errors: [
            { path: 'contact.timeZone', message: "Calling hours apply, but the number's time zone is unknown: send contact.timeZone." },
          ],
        });
        const told = await place({ contact: { phone: '+18005550199', timeZone: 'America/New_York' } });
        expect([told.status, told.json]).to.deep.include(202);
      });

      it('of the campaign override those of the account, which override those of the partner', async () => {
        await setHours([daily('09:00', '10:00')], 'partner');
        expect((await place()).json).to.have.property('heldUntil', '2026-11-22T08:00:00.000Z');
        await setHours([daily('11:00', '12:00')], 'account');
        expect((await place()).json).to.have.property('heldUntil', '2026-11-22T10:00:00.000Z');
        await setHours([daily('13:00', '14:00')], 'campaign');
        expect((await place()).json).to.have.property('heldUntil', '2026-11-22T12:00:00.000Z');
        const shown = callingHoursSchema.parse((await ask('GET', formatUrl('calling-hours', 'campaign'), { cookie })).json);
        expect(shown.rules).to.deep.equal([daily('13:00', '14:00')]);
        expect(shown.inherited).to.deep.equal({
          from: { kind: 'account', id: harness.tenants.account.id, name: 'Blue Clinic' },
          rules: [daily('11:00', '12:00')],
        });
      });

      it("let a queued call lapse, with the reason, if they don't open before its notAfter", async () => {
        await place({ notAfter: '2026-11-21T21:00:00Z' });
        await setHours([daily('09:00', '20:00')]);
        await claim();
        expect((await listed())[0]).to.include({ state: 'lapsed', heldUntil: null, detail: "Calling hours don't allow the call in time." });
      });

      it('hold a call that a provider refused, and then allow another hour of attempts', async () => {
        clock.set('2026-11-21T18:58:00.000Z');
        await setHours([daily('09:00', '20:00')]);
        await place();
        const { dialing } = harness.direct.ports.stores;
        const [call] = await claim();
        if (!call) throw new Error("The call wasn't claimed.");
        await dialing.settle(call, {
          event: 'not-taken',
          to: 'retry',
          at: clock.now(),
          dueAt: plus(clock.now(), 120_000),
          detail: 'Busy.',
        });
        clock.set('2026-11-21T19:00:00.000Z');
        expect(await claim()).to.deep.equal([]);
        expect(await listed()).to.deep.equal([
          { state: 'dialing', heldUntil: '2026-11-22T08:00:00.000Z', heldZone: 'Europe/Berlin', detail: 'Busy.' },
        ]);
        expect(await exported()).to.deep.equal([[call.requestId, '2026-11-22T08:00:00.000Z']]);
        clock.set('2026-11-22T08:00:00.000Z');
        const [again] = await claim();
        expect(again).to.include({ contactId: call.contactId, handoff: 'open', firstAttemptAt: clock.now(), stopped: null });
      });

      it('prevent another hand-off of a call that the provider may have', async () => {
        clock.set('2026-11-21T18:58:59.999Z');
        await setHours([daily('09:00', '20:00')]);
        await place();
        expect(await claim()).to.have.length(1);
        clock.set('2026-11-21T19:00:00.000Z');
        expect((await claim())[0]).to.include({ handoff: 'doubt', stopped: 'Calling hours have ended.' });
      });

      it("don't delay calls whose hours are open, however many calls they hold", async () => {
        await setHours([daily('09:00', '20:00')], 'account');
        await place();
        const row = await harness.direct.storage.database.read('calls').first();
        if (!row) throw new Error("The call wasn't stored.");
        const held = Array.from({ length: 1_200 }, (_, index) => ({
          ...row,
          contact_id: `held-${index}`,
          request_id: `held-${index}`,
          due_at: row.placed_at,
        }));
        await harness.direct.storage.database.write.batchInsert('calls', held, 100);
        await place({ contact: { phone: '+12125550142' } });
        const claimed = await claim();
        expect(claimed.map(({ phone }) => phone)).to.deep.equal(['+12125550142']);
        expect(await harness.direct.ports.stores.protection.countHeld(clock.now())).to.equal(1_201);
      });

      it("don't keep a held call from being cancelled", async () => {
        await setHours([daily('09:00', '20:00')]);
        const { json } = await place({ requestId: 'held' });
        expect(json).to.have.property('heldUntil');
        const url = `${harness.core.url}/api/v1/campaigns/${harness.tenants.campaign.id}/contacts/on-demand/by-request-id/held`;
        expect((await ask('DELETE', url, { key })).status).to.equal(200);
      });

      it('are refused if a rule is incomplete', async () => {
        const answer = await setHours([{ prefix: '', days: ['mon'], from: '10:00', to: '09:00' }]);
        expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      });

      it('are refused if a day has more than 12 windows of one prefix', async () => {
        const hourly = Array.from({ length: 13 }, (_, hour) => daily(`${hour + 10}:00`, `${hour + 10}:30`));
        const dated = hourly.map(({ prefix, from, to }) => ({ prefix, date: '2026-12-25', from, to }));
        const errors = [{ path: 'rules.12', message: 'At most 12 windows per day are allowed for each prefix.' }];
        for (const windows of [hourly, dated]) {
          const answer = await setHours(windows);
          expect([answer.status, answer.json['errors']]).to.deep.equal([422, errors]);
          const ofTwoPrefixes = windows.map((window, index) => ({ ...window, prefix: index === 0 ? '+49' : '' }));
          expect((await setHours(ofTwoPrefixes)).status).to.equal(200);
        }
        expect((await setHours([...hourly.slice(1), ...dated.slice(1)])).status).to.equal(200);
      });
    });

    describe('numbers', () => {
      const premium = '+4990012345678';

      it('of restricted kinds are refused, unless they are allowed for the account or the partner', async () => {
        for (const [phone, message] of [
          [premium, "Premium-rate numbers can't be called from this account."],
          ['+881612345678', "Satellite numbers can't be called from this account."],
        ] as const) {
          const answer = await place({}, phone);
          if (readCode(answer) === 'invalid') expect(answer.text).to.contain(message).and.contain('contact.phone');
          else throw new Error(`${phone} wasn't refused: ${answer.text}`);
        }
        await setNumbers({ countries: null, kinds: ['premium-rate'] }, 'partner');
        expect((await place({}, '+491805123456')).status).to.equal(422);
        const allowed = await place({ contact: { phone: '+499001234567' } });
        expect([allowed.status, allowed.text]).to.deep.include(202);
      });

      it('of other countries are refused if countries are chosen', async () => {
        expect((await setNumbers({ countries: ['DE', 'AT'], kinds: null })).status).to.equal(200);
        expect((await place()).status).to.equal(202);
        const answer = await place({}, '+12125550142');
        expect(answer.text).to.contain("Numbers in US can't be called from this account.");
        const shown = numbersSchema.parse((await ask('GET', formatUrl('numbers', 'account'), { cookie })).json);
        expect(shown).to.deep.include({ countries: ['DE', 'AT'], kinds: null, effective: { countries: ['DE', 'AT'], kinds: [] } });
        const unknown = await setNumbers({ countries: ['GB', 'UK'], kinds: null });
        expect([unknown.status, unknown.text.includes('UK: Must be')]).to.deep.equal([422, true]);
      });

      it('are restricted by settings whose changes, like those of calling hours, are recorded in the activity', async () => {
        await setNumbers({ countries: ['DE', 'AT'], kinds: null }, 'partner');
        await setNumbers({ countries: [], kinds: ['premium-rate'] });
        const closed = Array.from({ length: 22 }, (_, n) => ({
          prefix: '',
          date: `2026-12-${n + 1}`.replace(/-(\d)$/, '-0$1'),
          closed: true,
        }));
        await setHours([{ prefix: '+49', days: ['mon', 'tue'], from: '09:00', to: '20:00' }, ...closed]);
        await setHours([]);
        const { json } = await ask('GET', `${harness.core.url}/console/activity`, { cookie });
        const [none, many = '', ...numbers] = activitySchema.parse(json).events.map(({ detail }) => detail);
        expect(none).to.equal('no rules of its own');
        expect(many).to.match(/^\+49 mon, tue 09:00 to 20:00; all numbers 2026-12-01 closed; .*2026-12-19 closed; and 3 other rules$/);
        expect(numbers.slice(0, 2)).to.deep.equal([
          'countries: all; restricted kinds: premium-rate',
          'countries: DE, AT; restricted kinds: no setting of its own',
        ]);
      });

      it('that are no longer allowed are blocked before they are dialed', async () => {
        await place();
        await setNumbers({ countries: ['US'], kinds: null });
        expect(await claim()).to.deep.equal([]);
        expect((await listed())[0]).to.include({ state: 'blocked', detail: "Numbers in DE can't be called from this account." });
      });

      it('can be checked, to see what would happen now and why', async () => {
        expect(await check(berlin)).to.include({ phone: berlin, allowed: true, kind: 'ordinary', country: 'DE', zones: 1 });
        await setHours([daily('09:00', '20:00')]);
        expect(await check('+49 30 200000')).to.deep.include({
          allowed: false,
          reasons: ['outside-calling-hours'],
          opensAt: '2026-11-22T08:00:00.000Z',
          zoneNames: ['Europe/Berlin'],
          rules: [daily('09:00', '20:00')],
          rulesFrom: { kind: 'account', id: harness.tenants.account.id, name: 'Blue Clinic' },
        });
        expect(await check('+18005550199')).to.deep.include({ reasons: ['unknown-time-zone'], zones: 0 });
        const body = { phones: [berlin], reason: 'complaint' };
        await ask('POST', `${harness.core.url}/console/do-not-call`, { cookie, body });
        const both = await check(berlin, { timeZone: 'Asia/Tokyo' });
        expect(both.reasons).to.deep.equal(['do-not-call', 'outside-calling-hours']);
        expect(both.entries.map(({ phone, reason }) => [phone, reason])).to.deep.equal([[berlin, 'complaint']]);
        await harness.direct.storage.database.write('do_not_call').delete();
      });

      it("on the partner's list are reported to an account user who checks them, but without the partner's note", async () => {
        const body = { phones: [berlin], reason: 'asked', note: 'Threatens to sue', partnerId: harness.tenants.partner.id };
        await ask('POST', `${harness.core.url}/console/do-not-call`, { cookie, body });
        expect((await check(berlin)).entries[0]).to.include({ note: 'Threatens to sue' });
        cookie = await signIn(harness.core.url, 'ada@example.com');
        expect((await check(berlin)).entries[0]).to.include({ reason: 'asked', note: null, createdBy: null });
        await harness.direct.storage.database.write('do_not_call').delete();
      });
    });
  });
});
