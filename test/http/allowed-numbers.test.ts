import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { weekdays } from '#contract/protection/calling-hours.ts';
import { numbersSchema } from '#contract/protection/protection.ts';
import { onEachDatabase } from '../support/databases.ts';
import { daily } from '../support/hours-rules.ts';
import { ask, readCode } from '../support/http.ts';
import { berlin, callingRules } from '../support/tenancy-suite.ts';
import { signIn } from '../support/tenants.ts';

describe('rules for calling', () => {
  onEachDatabase((kind) => {
    const its = callingRules(kind);
    const { formatUrl, setHours, setNumbers, place, check, claim, listed } = its;

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
        expect((await setNumbers({ countries: ['DE', 'AT', 'DE'], kinds: null })).status).to.equal(200);
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
        const body = { phones: [berlin], reason: 'complaint' };
        await ask('POST', `${its.harness.core.url}/console/do-not-call`, { cookie: its.cookie, body });
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
