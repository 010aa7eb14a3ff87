import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { CsvReader } from '#contract/files/csv.ts';
import { weekdays } from '#contract/protection/calling-hours.ts';
import { callingHoursSchema, numbersSchema } from '#contract/protection/protection.ts';
import { readQueue } from '../../core/domain/calls/dialing.ts';
import { plus } from '../../core/domain/instant.ts';
import { numbers, onEachDatabase } from '../support/databases.ts';
import { daily } from '../support/hours-rules.ts';
import { ask, readCode } from '../support/http.ts';
import { berlin, callingRules } from '../support/tenancy-suite.ts';
import { createLimitedKey, placeCall, signIn } from '../support/tenants.ts';

describe('rules for calling', () => {
  onEachDatabase((kind) => {
    const its = callingRules(kind);
    const { clock, formatUrl, setHours, setNumbers, place, cancel, check, claim, listed } = its;
    /** Returns the request ID of each exported call, and until when the file says that calling hours hold it. */
    const exported = async () => {
      const { text } = await ask('GET', `${its.harness.core.url}/console/calls.csv`, { cookie: its.cookie });
      const [head = [], ...rows] = new CsvReader('calls.csv', ',').push(text).map(({ cells }) => cells);
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
        expect((await ask('GET', `${its.harness.core.managementUrl}/metrics`)).text).to.contain('\ncallkey_calls_held 1\n');
        await setHours([]);
        expect((await place({ requestId: 'held' })).json).to.deep.equal(held.json);
        expect((await place({ requestId: 'free' })).json).not.to.have.property('heldUntil');
      });

      it("of the partner are applied to its held calls as soon as they change, so that these don't lapse while the hours are open", async () => {
        await setHours([daily('20:03', '20:20')], 'partner');
        const { json } = await place({ notAfter: '2026-11-21T19:06:00Z' });
        expect(json).to.include({ heldUntil: '2026-11-21T19:03:00.000Z' });
        await setHours([daily('19:55', '20:03')], 'partner');
        expect(await listed()).to.have.nested.property('[0].heldUntil', null);
        expect(await claim()).to.have.length(1);
      });

      it('hold a call again, until the right time, if it may still not be dialed when they change', async () => {
        await setHours([daily('09:00', '20:00')]);
        await place();
        await setHours([daily('10:00', '20:00')]);
        expect(await claim()).to.deep.equal([]);
        expect((await listed())[0]).to.include({ state: 'queued', heldUntil: '2026-11-22T09:00:00.000Z' });
      });

      it("apply in a time zone in any spelling, and responses show the database's", async () => {
        await setHours([daily('09:00', '20:00')]);
        const contact = { phone: '+18005550199', timeZone: 'asia/KOLKATA' };
        const held = await place({ requestId: 'held', contact });
        expect(held.json).to.include({ heldUntil: '2026-11-22T03:30:00.000Z' });
        for (const timeZone of [contact.timeZone, 'Asia/Kolkata'])
          expect((await place({ requestId: 'held', contact: { ...contact, timeZone } })).json).to.deep.equal(held.json);
        expect((await listed()).map(({ heldZone }) => heldZone)).to.deep.equal(['Asia/Kolkata']);
        const { timeZone } = contact;
        expect(await check(contact.phone, { timeZone })).to.deep.include({
          zones: 1,
          zoneNames: ['Asia/Kolkata'],
          reasons: ['outside-calling-hours'],
        });
      });

      const version = async () =>
        callingHoursSchema.parse((await ask('GET', formatUrl('calling-hours', 'account'), { cookie: its.cookie })).json).version;
      const setFrom = (version: string | undefined, rules: object[]) =>
        ask('PUT', formatUrl('calling-hours', 'account'), { cookie: its.cookie, body: { rules, version } });

      it('are replaced by one of two changes that arrive together and are based on the same ones', async () => {
        const opened = await version();
        const answers = await Promise.all(['10:00', '11:00'].map((from) => setFrom(opened, [daily(from, '20:00')])));
        expect(answers.map(({ status }) => status)).to.have.members([200, 409]);
      });

      it('are replaced if the change names no version, or only the rules of another scope or allowed numbers have changed since', async () => {
        const opened = await version();
        await setHours([daily('09:00', '18:00')], 'partner');
        await its.setNumbers({ countries: ['DE'], kinds: null });
        expect((await setFrom(opened, [daily('10:00', '20:00')])).status).to.equal(200);
        expect((await setHours([daily('11:00', '20:00')])).status).to.equal(200);
      });

      it('appear in exported calls that are waiting for them, and in no others', async () => {
        await setHours([daily('09:00', '20:00')]);
        await place({ requestId: 'held' });
        await place({ requestId: 'cancelled' });
        expect((await cancel('cancelled')).status).to.equal(200);
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
        await setHours([daily('11:00', '12:00')], 'account');
        expect((await place()).json).to.have.property('heldUntil', '2026-11-22T10:00:00.000Z');
        await setHours([daily('13:00', '14:00')], 'campaign');
        expect((await place()).json).to.have.property('heldUntil', '2026-11-22T12:00:00.000Z');
        const shown = callingHoursSchema.parse((await ask('GET', formatUrl('calling-hours', 'campaign'), { cookie: its.cookie })).json);
        expect(shown.rules).to.deep.equal([daily('13:00', '14:00')]);
        expect(shown.inherited).to.deep.equal({
          from: { kind: 'account', id: its.harness.tenants.account.id, name: 'Blue Clinic' },
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
        const { dialing } = its.harness.direct.ports.stores;
        const [call] = await claim();
        if (!call) throw new Error("The call wasn't claimed.");
        const again = { event: 'not-taken', to: 'retry', at: clock.now(), dueAt: plus(clock.now(), 120_000), detail: 'Busy.' } as const;
        await dialing.settle(call, again);
        clock.set('2026-11-21T19:00:00.000Z');
        expect(await claim()).to.deep.equal([]);
        expect(await listed()).to.deep.equal([
          { state: 'dialing', heldUntil: '2026-11-22T08:00:00.000Z', heldZone: 'Europe/Berlin', detail: 'Busy.' },
        ]);
        expect(await exported()).to.deep.equal([[call.requestId, '2026-11-22T08:00:00.000Z']]);
        clock.set('2026-11-22T08:00:00.000Z');
        const [retried] = await claim();
        expect(retried).to.include({ contactId: call.contactId, handoff: 'open', firstAttemptAt: clock.now(), stopped: null });
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
        const row = await its.harness.direct.storage.database.read('calls').first();
        if (!row) throw new Error("The call wasn't stored.");
        const columns = Object.keys(row);
        const copy = { contact_id: "'held-' || i", request_id: "'held-' || i", due_at: 'placed_at' };
        const values = columns.map((column) => Object.entries(copy).find(([name]) => name === column)?.[1] ?? column);
        await its.harness.direct.storage.database.write.raw(
          `INSERT INTO calls (${columns.join()}) SELECT ${values.join()} FROM calls, ${numbers(kind, 1_200)}`,
        );
        await place({ contact: { phone: '+12125550142' } });
        const claimed = await claim();
        expect(claimed.map(({ phone }) => phone)).to.deep.equal(['+12125550142']);
        expect(await readQueue(its.harness.direct.ports)).to.include({ held: 1_201 });
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
        const limited = await createLimitedKey(its.harness.core.url, its.cookie);
        const placeLimited = () =>
          placeCall(its.harness.core.url, its.harness.tenants.campaign.id, limited, { contact: { phone: '+12125550142' } });
        expect((await placeLimited()).status).to.equal(202);
        expect((await setNumbers({ countries: ['DE', 'AT', 'DE'], kinds: null })).status).to.equal(200);
        // The core still remembers the rules before.
        expect((await placeLimited()).status).to.equal(422);
        expect((await place()).status).to.equal(202);
        const answer = await place({}, '+12125550142');
        expect(answer.text).to.contain("Numbers in US can't be called from this account.");
        const shown = numbersSchema.parse((await ask('GET', formatUrl('numbers', 'account'), { cookie: its.cookie })).json);
        expect(shown).to.deep.include({ countries: ['DE', 'AT'], kinds: null, effective: { countries: ['DE', 'AT'], kinds: [] } });
        const unknown = await setNumbers({ countries: ['GB', 'UK'], kinds: null });
        expect([unknown.status, unknown.text.includes('UK: Must be')]).to.deep.equal([422, true]);
      });

      it('are restricted by settings whose changes, like those of calling hours, are recorded in the activity', async () => {
        await setNumbers({ countries: ['DE', 'AT'], kinds: null }, 'partner');
        await setNumbers({ countries: [], kinds: ['premium-rate', 'premium-rate'] });
        await setHours([{ prefix: '+49', days: ['mon', 'tue', 'mon'], from: '09:00', to: '20:00' }]);
        const windows = Array.from({ length: 18 }, (_, n) => ({ prefix: '', from: `0${n}:30`.slice(-5), to: `0${n}:45`.slice(-5) }));
        await setHours(weekdays.flatMap((day, n) => windows.slice(n, n + 12).map((window) => ({ ...window, days: [day] }))));
        await setHours([]);
        const { json } = await ask('GET', `${its.harness.core.url}/console/activity`, { cookie: its.cookie });
        const [none, tooMany, many, ...numbers] = activitySchema.parse(json).events.map(({ detail }) => detail);
        expect([none, tooMany, many]).to.deep.equal([
          ...['no rules of its own', '84 rules', '+49: Monday and Tuesday 09:00–20:00; all other numbers: at any time'],
        ]);
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
        const list = (cookie: string) =>
          ask('POST', `${its.harness.core.url}/console/do-not-call`, { cookie, body: { phones: [berlin], reason: 'complaint' } });
        // The other partner's list doesn't apply.
        expect((await list(await signIn(its.harness.core.url, 'oda@example.com'))).status).to.equal(201);
        expect(await check(berlin)).to.include({ phone: berlin, allowed: true, kind: 'ordinary', country: 'DE', zones: 1 });
        await setHours([daily('09:00', '20:00')]);
        expect(await check('+49 30 200000')).to.deep.include({
          allowed: false,
          reasons: ['outside-calling-hours'],
          opensAt: '2026-11-22T08:00:00.000Z',
          zoneNames: ['Europe/Berlin'],
          rules: [daily('09:00', '20:00')],
          rulesFrom: { kind: 'account', id: its.harness.tenants.account.id, name: 'Blue Clinic' },
        });
        expect(await check('+18005550199')).to.deep.include({ reasons: ['unknown-time-zone'], zones: 0 });
        await list(its.cookie);
        const both = await check(berlin, { timeZone: 'Asia/Tokyo' });
        expect(both.reasons).to.deep.equal(['do-not-call', 'outside-calling-hours']);
        expect(both.entries.map(({ phone, reason }) => [phone, reason])).to.deep.equal([[berlin, 'complaint']]);
      });

      it("on the partner's list are reported to an account user who checks them, but without the partner's note", async () => {
        const body = { phones: [berlin], reason: 'asked', note: 'Threatens to sue', partnerId: its.harness.tenants.partner.id };
        await ask('POST', `${its.harness.core.url}/console/do-not-call`, { cookie: its.cookie, body });
        expect((await check(berlin)).entries[0]).to.include({ note: 'Threatens to sue' });
        const cookie = await signIn(its.harness.core.url, 'ada@example.com');
        expect((await check(berlin, {}, cookie)).entries[0]).to.include({ reason: 'asked', note: null, createdBy: null });
      });
    });
  });
});
