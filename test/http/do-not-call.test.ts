import { expect } from 'chai';
import { callsSchema } from '#contract/console/calls.ts';
import { completeLine, csvRow } from '#contract/files/csv.ts';
import { doNotCallHead } from '#contract/files/table.ts';
import { addedNumbersSchema, doNotCallSchema } from '#contract/protection/protection.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, createLimitedKey, placeCall, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('a do-not-call list', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const harness = openOnce(() => openCore({ kind, clock }));
    let key: string;
    let cookie: string;

    before(async () => {
      cookie = await signIn(harness.core.url, 'pat@example.com');
      key = (await createKey(harness.core.url, cookie)).keyValue;
    });
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      cookie = await signIn(harness.core.url, 'pat@example.com');
      await harness.direct.storage.database.write('calls').delete();
    });

    const place = (phone: string, more: object = {}, campaign = harness.tenants.campaign.id, as = key) =>
      placeCall(harness.core.url, campaign, as, { contact: { phone }, ...more });
    const add = (phones: string[], more: object = {}, as = cookie) =>
      ask('POST', `${harness.core.url}/console/do-not-call`, { cookie: as, body: { phones, reason: 'asked', ...more } });
    const list = async (query = '', as = cookie) =>
      doNotCallSchema.parse((await ask('GET', `${harness.core.url}/console/do-not-call${query}`, { cookie: as })).json);
    const claim = () => harness.direct.ports.stores.dialing.claim(100, 'webhook', clock.now(), plus(clock.now(), 30_000));
    const readState = async (phone: string) => {
      const { json } = await ask('GET', `${harness.core.url}/console/calls?search=${encodeURIComponent(phone)}`, { cookie });
      return callsSchema.parse(json).calls.map(({ state, detail }) => ({ state, detail }));
    };
    const blocked = { state: 'blocked', detail: 'The number is on a do-not-call list.' };

    it('refuses a call to its numbers in all accounts of a partner, or in one account', async () => {
      const [ofPartner, ofAccount] = [somePhone(), somePhone()];
      const { account, siblingCampaign } = harness.tenants;
      expect((await add([ofPartner])).json).to.deep.equal({ added: 1, known: 0, beingDialed: 0 });
      expect((await add([ofAccount], { accountId: account.id })).status).to.equal(201);
      const limited = await createLimitedKey(harness.core.url, cookie);
      for (const phone of [ofPartner, ofAccount])
        for (const as of [key, limited]) {
          const answer = await place(phone, {}, undefined, as);
          expect([answer.status, readCode(answer)]).to.deep.equal([403, 'do-not-call']);
        }
      expect((await place(ofPartner, {}, siblingCampaign.id)).status).to.equal(403);
      expect((await place(ofAccount, {}, siblingCampaign.id)).status).to.equal(202);
      expect(await readState(ofPartner)).to.deep.equal([]);
      expect((await claim()).map(({ campaignId }) => campaignId)).to.deep.equal([siblingCampaign.id]);
    });

    it("isn't revealed to a refused key", async () => {
      const phone = somePhone();
      await add([phone]);
      const answer = await place(phone, {}, harness.tenants.otherCampaign.id);
      expect(readCode(answer)).to.equal('campaign-refused');
      const bad = await placeCall(harness.core.url, harness.tenants.campaign.id, `${key.slice(0, -1)}!`, { contact: { phone } });
      expect(bad.status).to.equal(401);
    });

    it('blocks queued calls as soon as their number is added, without a dialer', async () => {
      const phone = somePhone();
      await place(phone);
      await add([phone]);
      // Housekeeping would do it within a minute.
      expect(await until(async () => (await readState(phone))[0]?.state === 'blocked', 20_000)).to.equal(true);
    });

    it('blocks a queued call when a dialer claims it', async () => {
      const [listed, listedUntil, other] = [somePhone(), somePhone(), somePhone()];
      for (const phone of [listed, listedUntil, other]) await place(phone);
      await add([listed]);
      await add([listedUntil], { until: '2026-12-31', timeZone: 'UTC' });
      expect((await claim()).map(({ phone }) => phone)).to.deep.equal([other]);
      for (const phone of [listed, listedUntil]) expect(await readState(phone)).to.deep.equal([blocked]);
    });

    it('reports how many calls it can no longer stop, and prevents another hand-off of a call in doubt', async () => {
      const phone = somePhone();
      await place(phone);
      await claim();
      expect(addedNumbersSchema.parse((await add([phone])).json)).to.deep.equal({ added: 1, known: 0, beingDialed: 1 });
      const otherPartners = await add([phone], {}, await signIn(harness.core.url, 'oda@example.com'));
      expect(otherPartners.json).to.deep.equal({ added: 1, known: 0, beingDialed: 0 });
      clock.advance({ minutes: 1 });
      const [again] = await claim();
      expect(again).to.include({ phone, handoff: 'doubt', stopped: 'The number is on a do-not-call list.' });
    });

    it("blocks a call if its number was added during the hand-off and the provider doesn't accept the call", async () => {
      const phone = somePhone();
      await place(phone);
      const [claimed] = await claim();
      if (!claimed) throw new Error('No call was claimed.');
      await add([phone]);
      const { dialing, doNotCall } = harness.direct.ports.stores;
      await doNotCall.blockDoNotCall(clock.now());
      await dialing.settle(claimed, { event: 'not-taken', to: 'retry', at: clock.now(), dueAt: plus(clock.now(), 3_600_000) });
      expect(await readState(phone)).to.deep.equal([blocked]);
    });

    it("keeps the earlier creation date and the later end of a number that's added again", async () => {
      const phone = somePhone();
      await add([phone], { until: '2026-12-31', timeZone: 'Europe/Berlin' });
      clock.advance({ days: 1 });
      expect((await add([phone, phone], { reason: 'complaint' })).json).to.include({ added: 0, known: 1, beingDialed: 0 });
      const [entry] = (await list(`?search=${encodeURIComponent(phone)}`)).entries;
      expect(entry).to.include({ phone, reason: 'asked', createdAt: '2026-11-21T09:00:00.000Z', endsAt: null });
    });

    it("names the numbers that it already had, as they were sent, and says how many of the others aren't valid today", async () => {
      const [known, other] = [somePhone(), somePhone()];
      await add([known], { until: '2026-12-31' });
      const [spaced, local] = [`${known.slice(0, 6)} ${known.slice(6)}`, `0${known.slice(3)}`];
      const old = '+52 1 55 1234 5678';
      expect((await add([spaced, other, local, other, old], { country: 'DE' })).json).to.deep.equal({
        ...{ added: 2, known: 1, knownPhones: [spaced, local], beingDialed: 0, notValid: 1 },
      });
    });

    it('adds no audit event if it changes nothing', async () => {
      const phone = somePhone();
      const countEvents = () => harness.direct.storage.database.read('audit_events').where({ action: 'do-not-call.added' }).count();
      await add([phone], { until: '2026-12-31' });
      const [before, again, after] = [await countEvents(), await add([phone], { until: '2026-12-30' }), await countEvents()];
      expect([again.status, again.json, after]).to.deep.equal([
        ...[201, { added: 0, known: 1, knownPhones: [phone], beingDialed: 0 }, before],
      ]);
      await add([phone]);
      expect(await countEvents(), 'a later end').not.to.deep.equal(before);
    });

    it('allows a number again after its entry ends', async () => {
      const phone = somePhone();
      await add([phone], { until: '2026-11-21', timeZone: 'Europe/Berlin' });
      clock.set('2026-11-21T22:59:59.999Z');
      expect((await place(phone)).status).to.equal(403);
      clock.set('2026-11-21T23:00:00.000Z');
      expect((await place(phone)).status).to.equal(202);
      expect((await add([phone])).json).to.deep.equal({ added: 1, known: 0, beingDialed: 0 });
    });

    it('allows a number again once an administrator has removed it, with a reason', async () => {
      const phone = somePhone();
      await add([phone]);
      const [entry] = (await list(`?search=${encodeURIComponent(phone)}`)).entries;
      const url = `${harness.core.url}/console/do-not-call/${entry?.id}`;
      expect((await ask('DELETE', url, { cookie, body: {} })).status).to.equal(422);
      expect((await ask('DELETE', url, { cookie, body: { reason: 'Asked to be called again' } })).status).to.equal(204);
      expect((await ask('DELETE', url, { cookie, body: { reason: 'Again' } })).status).to.equal(404);
      expect((await place(phone)).status).to.equal(202);
      const activity = await ask('GET', `${harness.core.url}/console/activity?action=do-not-call.lifted`, { cookie });
      expect(activity.text).to.contain('Asked to be called again').and.not.contain(phone);
    });

    it('stays unchanged if one of several new numbers is invalid, and the error says which one', async () => {
      const phone = somePhone();
      const answer = await add([phone, '12'], { country: 'DE' });
      expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
      expect(answer.text).to.contain('phones.1');
      expect((await add([phone], { country: 'UK' })).json).to.have.nested.property('errors[0].path', 'country');
      expect((await list(`?search=${encodeURIComponent(phone)}`)).entries).to.deep.equal([]);
    });

    it('is shown in pages with its total, newest first, and can be searched by the start of a number', async () => {
      const numbers = Array.from({ length: 60 }, somePhone);
      await add(numbers, { accountId: harness.tenants.siblingAccount.id });
      const sue = await signIn(harness.core.url, 'sue@example.com');
      const found: string[] = [];
      for (const query of ['', '&search=%2B4930']) {
        found.length = 0;
        for (let cursor: string | null = ''; cursor !== null; ) {
          const page: Awaited<ReturnType<typeof list>> = await list(`?${cursor === '' ? '' : `cursor=${cursor}`}${query}`, sue);
          expect(page).to.include({ total: 60, totalIsMore: false });
          found.push(...page.entries.map(({ phone }) => phone));
          cursor = page.nextCursor;
        }
        expect(found).to.have.members(numbers);
      }
      expect(found).to.deep.equal(numbers.toSorted());
      const tenth = encodeURIComponent(numbers[9] ?? '');
      expect(await list(`?search=${tenth}`, sue)).to.include({ total: 1, totalIsMore: false });
      for (const search of ['%2B33', 'Paris']) expect(await list(`?search=${search}`, sue)).to.include({ total: 0, totalIsMore: false });
    });

    it('is exported as a file, also only the numbers that a search finds', async () => {
      const note = '=Said, "never;-again"';
      await add(['+33123456789'], { reason: 'complaint', note, until: '2099-01-31', timeZone: 'Europe/Berlin' });
      await add([somePhone()]);
      const ends = '2099-01-31T22:59:59.999Z';
      const row = ['+33123456789', 'Northwind Voice', 'Complained', note, 'console', 'Pat Partner', '2026-11-21T09:00:00.000Z', ends];
      for (const search of ['+33', '0033', '+33 (0)1']) {
        const query = `?search=${encodeURIComponent(search)}`;
        expect((await list(query)).entries.map(({ phone }) => phone)).to.deep.equal(['+33123456789']);
        const { text } = await ask('GET', `${harness.core.url}/console/do-not-call.csv${query}`, { cookie });
        expect(text).to.equal(csvRow(doNotCallHead) + csvRow(row) + completeLine(1));
      }
      expect((await list('?search=Paris')).entries).to.deep.equal([]);
    });
  });
});
