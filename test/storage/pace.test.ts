import { mock } from 'node:test';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { resumeDialing, stopDialing } from '../../core/domain/calls/stops.ts';
import { createAccount, createCampaign } from '../../core/domain/directory/directory.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Viewer } from '../../core/domain/model.ts';
import type { ClaimedCall, DialingStore } from '../../core/domain/ports.ts';
import type { Problem } from '../../core/domain/problem.ts';
import { checkNumber, setContactLimits, setHours, setPace } from '../../core/domain/protection/rules.ts';
import { dialingStore } from '../../core/storage/dialing/dialing.ts';
import { keepPace, lockScopes, paceClock } from '../../core/storage/dialing/pace.ts';
import { required } from '../../core/storage/engine/database.ts';
import { cancelFound, soon } from '../../core/storage/queue/queue.ts';
import { fakeClock } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { insertCalls, restoredTenants, somePhone } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const noFilter = { states: [], apiKey: null, search: '', placed: { from: null, before: null } };

describe('a claim', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock(new Date(now).toISOString());
    const { direct, tenants } = restoredTenants(kind, clock);
    let store: DialingStore;
    let behind = 0;

    beforeEach(() => {
      clock.set(new Date(now).toISOString());
      behind = 0;
      mock.method(performance, 'now', () => clock.now() - behind);
      store = dialingStore(direct.storage.database, clock, () => undefined);
    });
    afterEach(() => mock.reset());

    const names = (count: number, prefix = 'c') => Array.from({ length: count }, (_, n) => `${prefix}${String(n).padStart(5, '0')}`);
    const add = (ids: readonly string[], more: Parameters<typeof insertCalls>[3] = {}) =>
      insertCalls(direct, tenants, ids, { due_at: now, ...more });
    const live = { state: 'dialing', attempt: 1, provider: 'webhook', first_attempt_at: instant(now - hour) } as const;
    const claim = (at: number, limit = 10, pace: Parameters<DialingStore['claim']>[4] = null) => {
      clock.set(new Date(at).toISOString());
      return store.claim(limit, 'webhook', instant(at), instant(at + 30_000), pace);
    };
    const claimOne = async (at: number) => required((await claim(at, 1))[0] ?? null, 'a claimed call');
    /** Claims, and lets the provider take the calls. @returns their IDs */
    const take = async (at: number) => {
      const claimed = await claim(at);
      for (const each of claimed)
        await store.settle(each, { event: 'taken', to: 'taken', dialedAt: instant(at), dueAt: instant(at + 90 * day) });
      return claimed.map(({ contactId }) => contactId);
    };
    const end = (call: ClaimedCall, at: number) =>
      store.recordOutcome(call.contactId, { state: 'completed', detail: null, endedAt: instant(at), durationSeconds: 1 }, instant(at));
    const call = (id: string) => direct.storage.database.read('calls').where({ contact_id: id }).first();
    const campaign = (id = tenants.campaign.id) => ({ scope: 'campaign', id }) as const;
    const account = () => ({ scope: 'account', id: tenants.account.id }) as const;
    const partner = () => ({ scope: 'partner', id: tenants.partner.id }) as const;
    const newCampaign = async (name: string, accountId = tenants.account.id) => ({
      ...(await createCampaign(direct.ports, operator, name, accountId)),
      accountId,
    });
    /** Claims at regular times. @returns the claimed calls */
    const claimEvery = async (ms: number, from: number, until: number, pace: Parameters<DialingStore['claim']>[4] = null) => {
      const claimed: ClaimedCall[] = [];
      for (let at = from; at < until; at += ms) claimed.push(...(await claim(at, 10, pace)));
      return claimed;
    };
    /** Claims each time that a dialer would, and returns when the calls left. */
    const leaveUntil = async (until: number, pace: Parameters<DialingStore['claim']>[4] = null) => {
      const left: number[] = [];
      for (let at: number = now; at < until; ) {
        for (const { leaves } of await claim(at, 10, pace)) left.push((leaves?.at ?? 0) - now);
        at += Math.min(1_000, (await store.nextInPace()) ?? 1_000);
      }
      return left;
    };

    for (const [scope, set] of [
      ['the server', null],
      ['an account', () => setPace(direct.ports, operator, account(), { perSecond: 2, liveCalls: null })],
    ] as const)
      it(`keeps the pace of ${scope}`, async () => {
        await add(names(30));
        await set?.();
        const left = await leaveUntil(now + 5_000, set ? null : { perSecond: 2, liveCalls: null });
        expect(left.length).to.be.within(9, 10);
        for (const [n, at] of left.slice(1).entries()) expect(at - (left[n] ?? 0), JSON.stringify(left)).to.be.at.least(500);
      });

    for (const [scope, set] of [
      ['the server', null],
      ['an account', () => setPace(direct.ports, operator, account(), { perSecond: 1, liveCalls: null })],
      ["an account's live calls", () => setPace(direct.ports, operator, account(), { perSecond: null, liveCalls: 1 })],
    ] as const)
      it(`says why a call lapses that waits for the pace of ${scope}, and counts it`, async () => {
        const counted: [string, number][] = [];
        store = dialingStore(direct.storage.database, clock, (...each) => counted.push(each));
        await set?.();
        const serverPace = set ? null : { perSecond: 1, liveCalls: null };
        await add(names(5), { not_after: instant(now + 700) });
        await leaveUntil(now + 2_500, serverPace);
        const ended = direct.storage.database.read('calls').where({ state: 'lapsed' });
        const { length } = await ended;
        expect(length).to.be.within(3, 4);
        expect(await ended.pluck('detail')).to.deep.equal(
          Array(length).fill('The pace was too slow for the call to leave before the time window ended.'),
        );
        expect(counted.map(([reason]) => reason))
          .to.include('pace')
          .and.to.not.include('stop');
        expect(counted.reduce((sum, [, calls]) => sum + calls, 0)).to.equal(length);
        // No dialer has run since.
        const later = now + hour;
        await add(['later'], { due_at: instant(later), not_after: instant(later + 700) });
        await store.lapse(instant(later + minute));
        expect(await call('later')).to.include({ state: 'lapsed', detail: null });
      });

    it('keeps a new pace from the last call on', async () => {
      await add(names(9));
      const pace = (perSecond: number) => setPace(direct.ports, operator, account(), { perSecond, liveCalls: null });
      await pace(0.1);
      expect(await claim(now, 1)).to.have.length(1);
      await pace(2);
      expect(await claim(now + 200, 1)).to.deep.equal([]);
      expect(await claim(now + 1_000, 1)).to.have.length(1);
      await pace(0.1);
      expect(await claim(now + 9_000, 1)).to.deep.equal([]);
    });

    it('never lets more calls be live than the server, an account or a campaign may have', async () => {
      await add(names(30));
      await setPace(direct.ports, operator, account(), { perSecond: null, liveCalls: 5 });
      await setPace(direct.ports, operator, campaign(), { perSecond: null, liveCalls: 3 });
      const first = await claim(now);
      expect(first).to.have.length(3);
      expect(await claim(now + 2_000)).to.deep.equal([]);
      for (const each of first.slice(0, 2)) await end(each, now + 2_000);
      expect(await claim(now + 4_000)).to.have.length(2);
      await setPace(direct.ports, operator, campaign(), { perSecond: null, liveCalls: null });
      await direct.ports.stores.rules.makeHeldDue(instant(now + 5_000), new AbortController().signal);
      expect(await claim(now + 5_000)).to.have.length(2);
      expect(await claim(now + 7_000, 10, { perSecond: null, liveCalls: 5 })).to.deep.equal([]);
    });

    it('lets the next call leave as soon as one has ended, even if calls leave late', async () => {
      await add(names(2));
      await setPace(direct.ports, operator, account(), { perSecond: 1, liveCalls: 1 });
      const [first] = await claim(now);
      const later = now + 5_000;
      clock.set(new Date(later).toISOString());
      const claimLate = () => store.claim(9, 'webhook', instant(later), instant(later + 30_000), null, 200);
      expect(await claimLate()).to.deep.equal([]);
      if (first) await end(first, later);
      expect(await claimLate()).to.have.length(1);
    });

    for (const [what, set, pace] of [
      ['the server has fewer live calls', null, { perSecond: null, liveCalls: 1 }],
      ['a campaign has fewer live calls', campaign, { perSecond: null, liveCalls: 1 }],
      ['the pace of the server allows them', null, { perSecond: 0.5, liveCalls: null }],
      ['the pace of an account allows them', account, { perSecond: 0.5, liveCalls: null }],
    ] as const)
      it(`takes back first the live calls that have no outcome or whose core died, even if many older ones wait until ${what}`, async () => {
        if (set) await setPace(direct.ports, operator, set(), pace);
        await add(['overdue'], { ...live, handoff: 'taken', dialed_at: instant(now - hour) });
        await add(['lost'], { ...live, handoff: 'open' });
        await add(names(50), { due_at: instant(now - hour) });
        const calls = await claimEvery(500, now, now + 9_000, set ? null : pace);
        const claimed = calls.map(({ contactId, handoff }) => `${contactId} ${handoff}`);
        expect(claimed.slice(0, 4)).to.include.members(['overdue taken', 'lost doubt']);
        if (pace.liveCalls) expect(claimed).to.have.length(2);
      });

    it("passes over a live call that waits for its campaign's pace, even if only one call may be claimed", async () => {
      await setPace(direct.ports, operator, account(), { perSecond: 100, liveCalls: null });
      await setPace(direct.ports, operator, campaign(), { perSecond: 0.1, liveCalls: null });
      await add(['paced']);
      expect(await claim(now, 1)).to.have.length(1);
      await add(['lost'], { ...live, handoff: 'open' });
      const { id } = await newCampaign('Other');
      await add(['other'], { campaign_id: id });
      expect((await claim(now + 1_000, 1)).map(({ contactId }) => contactId)).to.deep.equal(['other']);
    });

    it("passes over a campaign's waiting calls, so that those of another campaign of the account leave", async () => {
      const other = await newCampaign('Other');
      await add(names(700));
      await insertCalls(direct, { ...tenants, campaign: other }, ['other'], { due_at: instant(now + 1) });
      await setPace(direct.ports, operator, campaign(), { perSecond: 0.1, liveCalls: null });
      const [first, second] = await claim(now + 10, 2);
      expect([first?.contactId, second?.contactId]).to.deep.equal(['c00000', 'other']);
      const held = await direct.storage.database.read('calls').where({ held_for: 'pace' });
      expect(held).to.have.length(699);
      expect(await claim(now + 9_000)).to.deep.equal([]);
      expect((await claim(now + 10_200)).map(({ contactId }) => contactId)).to.deep.equal(['c00001']);
    });

    it('lets accounts take turns, even if only one call may leave at a time', async () => {
      const second = await createAccount(direct.ports, operator, 'Second', tenants.partner.id);
      const ofSecond = { ...tenants, account: { ...tenants.account, id: second.id }, campaign: await newCampaign('Second', second.id) };
      await add(names(20));
      await insertCalls(direct, ofSecond, names(20, 'd'), { due_at: now });
      const claimed = await claimEvery(1_200, now, now + 12_000, { perSecond: 1, liveCalls: null });
      const left = claimed.map(({ contactId }) => contactId.charAt(0));
      expect(left.filter((name) => name === 'c').length, left.join(' ')).to.be.within(4, 6);
      expect(left.length).to.be.within(9, 10);
    });

    it('goes on at once when the calls that wait for the pace become due again', async () => {
      // More than one claim reads.
      await add(names(1_500));
      await setPace(direct.ports, operator, campaign(), { perSecond: 1, liveCalls: null });
      await claim(now);
      await setHours(direct.ports, operator, account(), []);
      await direct.ports.stores.rules.makeHeldDue(instant(now + 2_000), new AbortController().signal);
      expect((await claimEvery(500, now + 2_000, now + 12_000)).length).to.be.within(7, 10);
    });

    it('goes on at once after the calls that were to leave next were cancelled', async () => {
      await add(names(700));
      await setPace(direct.ports, operator, campaign(), { perSecond: 1, liveCalls: null });
      await claim(now);
      const { write } = direct.storage.database;
      const next = write('calls').where({ held_for: 'pace' }).orderBy('due_at').limit(300).select('contact_id');
      await write('calls')
        .whereIn('contact_id', await next.pluck('contact_id'))
        .update({ state: 'cancelled', due_at: null });
      expect((await claimEvery(500, now + 1_500, now + 11_500)).length).to.be.within(8, 10);
    });

    it('keeps one pace on cores whose clocks differ', async () => {
      await add(names(30), { due_at: instant(now - hour) });
      await setPace(direct.ports, operator, account(), { perSecond: 1, liveCalls: null });
      const left: number[] = [];
      for (let at: number = now; at < now + 10_000; at += 250) {
        clock.set(new Date(at).toISOString());
        const core = instant(at + ([0, hour, -4 * minute][(at / 250) % 3] ?? 0));
        for (const { leaves } of await store.claim(10, 'webhook', core, instant(core + 2 * hour))) left.push(leaves?.at ?? 0);
      }
      expect(left.length).to.be.within(9, 10);
      for (const [n, at] of left.slice(1).entries()) expect(at - (left[n] ?? 0), JSON.stringify(left)).to.be.at.least(1_000);
    });

    it("waits for a pace's whole interval after its clock has jumped ahead, or may have before the core's start", async () => {
      await add(names(3), { due_at: instant(now - hour) });
      await setPace(direct.ports, operator, account(), { perSecond: 1, liveCalls: null });
      const { write } = direct.storage.database;
      await write.transaction(async (trx) => {
        const time = paceClock(direct.storage.database, { now: clock.now });
        const read = async () => (await time.read(trx)).hasJumped;
        const jumps = [await read(), await read()];
        behind = 2_000;
        expect([...jumps, await read(), await read()]).to.deep.equal([true, false, true, false]);
      });
      const row = { scope_id: 'a', next_at: instant(now - minute), spread_until: instant(0) };
      const pace = { scopeId: 'a', accountId: 'a', campaignId: null, perSecond: 1, liveCalls: null };
      const keep = (hasJumped: boolean) =>
        keepPace(
          [{ paces: [pace], isLive: false }],
          1,
          new Map([['a', row]]),
          { now, at: 0, hasJumped, lead: 20, lateness: 0 },
          async () => 0,
        );
      expect([(await keep(false)).open.length, (await keep(true)).over[0]?.inMs]).to.deep.equal([1, 1_050]);
    });

    it('leaves more time after a late call, even if another one has just had to wait because too many were live', async () => {
      const pace = { scopeId: 'a', accountId: 'a', campaignId: null, perSecond: 1, liveCalls: 1 };
      const { write } = direct.storage.database;
      await write.transaction(async (trx) => {
        const rows = await lockScopes(trx, direct.storage.database, ['a']);
        const calls = [false, true].map((isLive) => ({ paces: [pace], isLive }));
        const at = { now, at: 0, hasJumped: false, lead: 20, lateness: 200 };
        await (await keepPace(calls, 9, rows, at, async () => 1)).save(trx);
      });
      // The live call leaves when the waiting one is looked at again. Then, a second, a twentieth of it, and how late a call may leave.
      const [row] = await direct.storage.database.read('dialing_paces').where({ scope_id: 'a' });
      expect(Number(row?.next_at) - now).to.equal(250 + 1_050 + 200);
    });

    it('forgets a moment that a clock recorded which was ahead', async () => {
      await add(names(3));
      await setPace(direct.ports, operator, account(), { perSecond: 1, liveCalls: null });
      const server = { perSecond: 1, liveCalls: null };
      expect(await claim(now + hour, 1, server)).to.have.length(1);
      expect([...(await claim(now, 1, server)), ...(await claim(now + 2_000, 1, server))]).to.have.length(1);
    });

    it("takes other campaigns' calls from behind those of a stopped campaign that a provider may have", async () => {
      const other = await newCampaign('Other');
      await add(names(12));
      const lost = await claim(now, 12);
      expect(lost).to.have.length(12);
      for (const each of lost) await store.settle(each, { event: 'answer-lost', to: 'doubt', at: now, dueAt: now, detail: 'Lost.' });
      await insertCalls(direct, { ...tenants, campaign: other }, ['other'], { due_at: instant(now + 1) });
      const { stop } = await stopDialing(direct.ports, operator, campaign());
      expect((await claim(now + 2)).map(({ contactId }) => contactId)).to.deep.equal(['other']);
      await resumeDialing(direct.ports, operator, stop.id);
      await direct.ports.stores.rules.makeHeldDue(instant(now + 3), new AbortController().signal);
      expect((await claim(now + 4, 20)).map(({ handoff }) => handoff)).to.deep.equal(Array.from({ length: 12 }, () => 'doubt'));
    });

    it('gives two dialers of one database no more than the pace together', async () => {
      await add(names(40));
      await setPace(direct.ports, operator, account(), { perSecond: 5, liveCalls: 7 });
      const results: ClaimedCall[] = [];
      for (let at: number = now; at < now + 1_000; at += 100)
        for (const claimed of await Promise.all([claim(at), claim(at)])) results.push(...claimed);
      expect(results.length).to.be.within(5, 6);
      for (let at: number = now + 1_000; at < now + 4_000; at += 100)
        for (const claimed of await Promise.all([claim(at), claim(at)])) results.push(...claimed);
      expect(results).to.have.length(7);
    });

    it('lets two dialers of one database call a number no more often than its contact limit allows', async () => {
      await setContactLimits(direct.ports, operator, account(), { calls: 2, days: 1, minutesBetween: 0 });
      // Then, neither of the next two claims waits for a connection, or for the other to store the account's row.
      await add(['first'], { phone: somePhone() });
      await Promise.all([claim(now), claim(now)]);
      const phones = Array.from({ length: 5 }, somePhone);
      for (const [n, id] of names(40).entries()) await add([id], { phone: phones[n % 5] ?? '' });
      const claimed = (await Promise.all([claim(now), claim(now)])).flat();
      const called = Map.groupBy(claimed, ({ phone }) => phone);
      expect(phones.map((phone) => called.get(phone)?.length)).to.deep.equal(phones.map(() => 2));
    });

    it('holds a call over a contact limit until the first moment that the limit allows, over all campaigns and keys', async () => {
      const other = await newCampaign('Other');
      await setContactLimits(direct.ports, operator, account(), { calls: 2, days: 1, minutesBetween: 30 });
      const phone = '+493012345678';
      await add(['a', 'b'], { phone });
      const ofSibling = { ...tenants, account: tenants.siblingAccount, campaign: tenants.siblingCampaign };
      const taken = { ...live, handoff: 'taken', dialed_at: instant(now - minute), due_at: instant(now + 90 * day) } as const;
      await insertCalls(direct, ofSibling, ["another account's"], { ...taken, phone });
      await insertCalls(direct, { ...tenants, campaign: other }, ['c'], { due_at: now, phone });
      await insertCalls(direct, { ...tenants, campaign: other }, ['free'], { due_at: now, phone: '+493012345679' });
      expect(await take(now)).to.have.members(['a', 'free']);
      const stan: Viewer = { ...tenants.users.staff, tenancy: { kind: 'account', ...tenants.account, partnerName: tenants.partner.name } };
      const checked = await checkNumber(direct.ports, stan, { phone, campaignId: other.id });
      expect([checked.reasons, checked.opensAt]).to.deep.equal([['contact-limit'], clock.now() + 30 * minute]);
      expect(await take(now + 10_000)).to.deep.equal([]);
      expect(await call('b')).to.include({ held_until: now + 30 * minute, held_for: 'contact-limit', state: 'queued' });
      const [second = '', ...more] = await take(now + 30 * minute);
      expect([['b', 'c'].includes(second), more]).to.deep.equal([true, []]);
      expect(await take(now + hour)).to.deep.equal([]);
      const last = second === 'b' ? 'c' : 'b';
      expect(await call(last)).to.include({ held_until: now + day, held_for: 'contact-limit' });
      expect(await take(now + day)).to.deep.equal([last]);
    });

    it('shows when the numbers of a whole page were last called with one statement, whatever limits its campaigns have', async () => {
      const campaigns = [await newCampaign('One'), await newCampaign('Two'), await newCampaign('Three')];
      for (const [n, one] of campaigns.entries()) {
        await setContactLimits(direct.ports, operator, campaign(one.id), { calls: 1, days: n + 1, minutesBetween: 0 });
        await insertCalls(direct, { ...tenants, campaign: one }, [`${n}`, `${n} again`], { due_at: now, phone: `+49301234567${n}` });
      }
      await take(now);
      const { callList } = direct.ports.stores;
      const { calls } = await callList.list({ kind: 'all' }, noFilter, null, { kind: 'all' }, 10);
      const statements: object[] = [];
      direct.storage.database.lanes.lists.read.on('query', (query) => statements.push(query));
      const shown = await callList.withLastContacts(calls, true, instant(now + 1));
      expect(shown.map(({ heldFor, lastCalledAt }) => [heldFor, lastCalledAt]).sort()).to.deep.equal([
        ...Array(3).fill([null, undefined]),
        ...Array(3).fill(['contact-limit', now]),
      ]);
      expect(statements, 'the rules, and the calls').to.have.length(2);
    });

    it("counts the calls of all the partner's accounts for a partner's contact limit", async () => {
      const second = await createAccount(direct.ports, operator, 'Second', tenants.partner.id);
      const campaign2 = await newCampaign('Second', second.id);
      await setContactLimits(direct.ports, operator, partner(), { calls: 1, days: 2, minutesBetween: 0 });
      await add(['a'], { phone: '+493012345678' });
      const ofSecond = { ...tenants, account: { ...tenants.account, id: second.id }, campaign: campaign2 };
      await insertCalls(direct, ofSecond, ['b'], { due_at: now, phone: '+493012345678' });
      const claims = await Promise.all([claim(now), claim(now)]);
      expect(claims.flat()).to.have.length(1);
      await setContactLimits(direct.ports, operator, campaign(campaign2.id), { calls: 5, days: 1, minutesBetween: 0 });
      await direct.ports.stores.rules.makeHeldDue(instant(now + 1), new AbortController().signal);
      const more = await claim(now + 2);
      expect([...claims.flat(), ...more].map(({ contactId }) => contactId)).to.include('b');
    });

    for (const [how, settlement] of [
      ['refuses', { event: 'rejected', to: 'failed', detail: null, endedAt: instant(now), durationSeconds: null }],
      ["can't take", { event: 'not-taken', to: 'retry', at: instant(now), dueAt: instant(now + hour) }],
    ] as const)
      it(`lets another call to a number leave soon after the provider ${how} the first one`, async () => {
        await setContactLimits(direct.ports, operator, account(), { calls: 1, days: 30, minutesBetween: 0 });
        const phone = '+493012345678';
        await add(['a', 'b'], { phone });
        const [first, ...others] = await claim(now);
        if (!first || others.length > 0) return expect.fail('one call should have been claimed');
        await add(['c'], { phone, not_after: instant(now + hour) });
        await add(['short'], { phone, not_after: instant(now + 5_000) });
        expect(await claim(now + 1)).to.deep.equal([]);
        await store.settle(first, settlement);
        expect(await take(now + 2)).to.deep.equal(['short']);
        await setContactLimits(direct.ports, operator, account(), { calls: 2, days: 30, minutesBetween: 0 });
        const [second = '', ...more] = await take(now + 11_000);
        expect([['a', 'b', 'c'].includes(second), more]).to.deep.equal([true, []]);
      });

    it("doesn't count a call that had to wait in the same claim", async () => {
      await setContactLimits(direct.ports, operator, account(), { calls: 1, days: 1, minutesBetween: 0 });
      await setPace(direct.ports, operator, account(), { perSecond: null, liveCalls: 1 });
      await add(['live'], { phone: '+493012345679' });
      expect(await take(now)).to.deep.equal(['live']);
      await add(['a', 'b'], { phone: '+493012345678', not_after: instant(now + hour) });
      expect(await take(now + 1)).to.deep.equal([]);
      expect([await call('a'), await call('b')].map((each) => each?.state)).to.deep.equal(['queued', 'queued']);
    });

    it('keeps a call whose contact limit allows it only after its time until then, so that it can be cancelled or the limit be lifted', async () => {
      await setContactLimits(direct.ports, operator, account(), { calls: 1, days: 30, minutesBetween: 0 });
      const phone = '+493012345678';
      await add(['a'], { phone });
      expect(await take(now)).to.deep.equal(['a']);
      const until = instant(now + hour);
      await add(['cancelled', 'lifted', 'late'], { phone, not_after: until });
      await add(['month'], { phone, placed_at: instant(now - day) });
      expect(await take(now + minute)).to.deep.equal([]);
      for (const id of ['cancelled', 'lifted', 'late'])
        expect(await call(id)).to.include({ state: 'queued', held_until: until + 1, held_for: 'contact-limit' });
      expect(await call('month')).to.include({ state: 'queued', held_until: now + 29 * day, held_for: 'contact-limit' });
      expect(await cancelFound(direct.storage.database, [[tenants.campaign.id, 'cancelled']], { at: now, locked: 'wait' })).to.equal(1);
      await setContactLimits(direct.ports, operator, account(), { calls: 2, days: 30, minutesBetween: 0 });
      await direct.ports.stores.rules.makeHeldDue(instant(now + 2 * minute), new AbortController().signal);
      const [left = '', ...more] = await take(now + 3 * minute);
      expect([['lifted', 'late', 'month'].includes(left), more]).to.deep.equal([true, []]);
    });

    it("lapses a call at its notAfter if its contact limit doesn't allow it before, and keeps within calling hours", async () => {
      const detail = 'The number has had as many calls as its contact limits allow.';
      await setContactLimits(direct.ports, operator, account(), { calls: 1, days: 1, minutesBetween: 0 });
      const phone = '+493012345678';
      await add(['a'], { phone });
      await take(now);
      const until = instant(now + day - 1);
      // `by hours`: calling hours are closed from the moment that the limit allows it until its end.
      await add(['late'], { phone, not_after: until });
      await add(['by hours'], { phone, not_after: instant(now + day + 1) });
      await add(['month'], { phone, placed_at: instant(now - 30 * day + 2 * hour) });
      await add(['open'], { phone });
      const from = new Date(now + day + hour).toISOString().slice(11, 16);
      await setHours(direct.ports, operator, account(), [
        { prefix: '', date: new Date(now + day).toISOString().slice(0, 10), from, to: '24:00' },
        { prefix: '', date: new Date(now).toISOString().slice(0, 10), from: '00:00', to: '24:00' },
      ]);
      await direct.storage.database.write('calls').whereNot({ contact_id: 'a' }).update({ time_zone: 'UTC' });
      await claim(now + minute);
      const held = async (id: string) => [(await call(id))?.state, (await call(id))?.held_until];
      expect(await Promise.all(['late', 'by hours', 'month'].map(held))).to.deep.equal([
        ['queued', until + 1],
        ['queued', now + day + 2],
        ['queued', now + 2 * hour],
      ]);
      const open = await call('open');
      expect(open).to.include({ held_for: 'contact-limit' });
      expect(open?.held_until).to.be.within(now + day + hour - minute, now + day + hour);
      await claim(now + 2 * hour);
      expect(await call('month')).to.include({ state: 'lapsed', detail });
      const stopped: unknown[] = [];
      const counting = dialingStore(direct.storage.database, clock, (...each) => stopped.push(each));
      await counting.claim(10, 'webhook', instant(until + 1), instant(until + 30_000));
      expect(await call('late')).to.include({ state: 'lapsed', detail, ended_at: until });
      expect(await counting.lapse(instant(now + day + 2))).to.equal(1);
      expect(await call('by hours')).to.include({ state: 'lapsed', detail, ended_at: now + day + 1 });
      expect(stopped).to.deep.equal([
        ['contact-limit', 1],
        ['contact-limit', 1],
      ]);
    });

    for (const scope of ['server', 'partner', 'account', 'campaign'] as const)
      it(`takes no call of a stopped ${scope}, only others, and takes its calls again once it's resumed`, async () => {
        await add(names(30));
        await insertCalls(direct, { ...tenants, campaign: tenants.otherCampaign, account: tenants.otherAccount }, ['other']);
        const id = scope === 'server' ? undefined : tenants[scope].id;
        const { stop, isNew, queuedCalls } = await stopDialing(direct.ports, operator, { scope, id, reason: 'Wrong recording' });
        expect({ isNew, queuedCalls }).to.deep.equal({ isNew: true, queuedCalls: scope === 'server' ? 31 : 30 });
        expect((await claim(now + 1)).map(({ contactId }) => contactId)).to.deep.equal(scope === 'server' ? [] : ['other']);
        const again = await stopDialing(direct.ports, operator, { scope, id });
        expect([again.isNew, again.stop]).to.deep.equal([false, stop]);
        await resumeDialing(direct.ports, operator, stop.id);
        await direct.ports.stores.rules.makeHeldDue(instant(now + 2), new AbortController().signal);
        expect(await claim(now + 3, 100)).to.have.length(queuedCalls);
      });

    for (const scope of ['server', 'partner', 'account', 'campaign'] as const)
      it(`says that dialing was stopped in the details of a call that lapses while its ${scope} is stopped, and counts it`, async () => {
        const detail = 'Dialing was stopped until the time window ended.';
        const counted: [string, number][] = [];
        store = dialingStore(direct.storage.database, clock, (...each) => counted.push(each));
        await add(['before'], { not_after: instant(now - 1) });
        await add(['during', 'until resumed'], { not_after: instant(now + 5) });
        await add(['held'], { placed_at: instant(now - 29 * day) });
        const { stop } = await stopDialing(direct.ports, operator, { scope, id: scope === 'server' ? undefined : tenants[scope].id });
        await direct.storage.database
          .write('calls')
          .where({ contact_id: 'until resumed' })
          .update({ not_after: instant(now + 15) });
        await store.lapse(instant(now + 10));
        expect(counted).to.deep.equal([['stop', 1]]);
        clock.set(new Date(now + 20).toISOString());
        await resumeDialing(direct.ports, operator, stop.id);
        const ended = async (id: string) => [(await call(id))?.state, (await call(id))?.detail];
        expect(await Promise.all(['before', 'during', 'until resumed'].map(ended))).to.deep.equal([
          ['lapsed', null],
          ['lapsed', detail],
          ['lapsed', detail],
        ]);
        // A call without `notAfter` isn't dialed a month later, no matter how long dialing was stopped. Housekeeping ends it.
        await stopDialing(direct.ports, operator, { scope, id: scope === 'server' ? undefined : tenants[scope].id });
        for (const at of [hour, 12 * hour, day + hour]) await claim(now + at);
        await add(['taken'], { ...live, handoff: 'taken' });
        await store.endForgotten(instant(now + 31 * day));
        expect(await ended('held')).to.deep.equal(['lapsed', detail]);
        expect(counted).to.deep.equal([
          ['stop', 1],
          ['stop', 1],
        ]);
      });

    it("takes other campaigns' calls from behind those of a stopped campaign", async () => {
      const other = await newCampaign('Other');
      await add(names(700));
      await insertCalls(direct, { ...tenants, campaign: other }, ['other'], { due_at: instant(now + 1) });
      await stopDialing(direct.ports, operator, campaign());
      expect((await claim(now + 2)).map(({ contactId }) => contactId)).to.deep.equal(['other']);
    });

    it("doesn't wait for a call in doubt that only waits for its next attempt", async () => {
      await add(['a']);
      const lost = await claimOne(now);
      await store.settle(lost, { event: 'answer-lost', to: 'doubt', at: now, dueAt: instant(now + 20_000), detail: 'Lost.' });
      const stopped = await stopDialing(direct.ports, operator, account());
      expect([stopped.isNew, stopped.withProvider]).to.deep.equal([true, 1]);
    });

    it('cancels the queued calls of a stop, but none of another account, and counts what the provider has', async () => {
      await add(names(4));
      // Placed at a core whose clock is ahead.
      await add(['ahead'], { placed_at: instant(now + 4 * minute) });
      const taken = await claim(now, 2);
      await Promise.all(
        taken.map((each) => store.settle(each, { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + hour) })),
      );
      await insertCalls(direct, { ...tenants, campaign: tenants.siblingCampaign, account: tenants.siblingAccount }, ['sibling']);
      const scope = { scope: 'account', id: tenants.account.id } as const;
      await stopDialing(direct.ports, operator, { ...scope, reason: 'Lunch' });
      const stopped = await stopDialing(direct.ports, operator, { ...scope, cancelQueuedCalls: true });
      const events = direct.storage.database.read('audit_events').where({ action: 'dialing.stopped' });
      expect(await events.pluck('detail')).to.have.members(['Lunch', 'cancelled the queued calls']);
      expect({ queuedCalls: stopped.queuedCalls, withProvider: stopped.withProvider }).to.deep.equal({ queuedCalls: 0, withProvider: 2 });
      expect(await direct.storage.database.read('calls').where({ state: 'cancelled' })).to.have.length(3);
      expect(await call('sibling')).to.include({ state: 'queued' });
    });

    it('counts a repeated hand-off for contact limits from its latest attempt, also if the outcome comes first', async () => {
      await setContactLimits(direct.ports, operator, account(), { calls: 5, days: 1, minutesBetween: 1 });
      const phone = '+493012345678';
      await add(['a'], { phone });
      const again = instant(now + 75_000);
      const first = await claimOne(now);
      await store.settle(first, { event: 'not-taken', to: 'retry', at: now, dueAt: again, detail: 'Busy.' });
      expect(await claim(again)).to.have.length(1);
      await add(['b'], { phone });
      expect(await claim(again + 8_000)).to.deep.equal([]);
      await end(first, again + 9_000);
      expect(await call('a')).to.include({ state: 'completed', dialed_at: again });
      expect(await take(again + minute - 1)).to.deep.equal([]);
      expect(await take(again + 8_000 + minute)).to.deep.equal(['b']);
    });

    it('counts a call for contact limits whose outcome comes while something holds it between two tries', async () => {
      await setContactLimits(direct.ports, operator, account(), { calls: 1, days: 1, minutesBetween: 0 });
      const phone = '+493012345678';
      await add(['a'], { phone });
      const first = await claimOne(now);
      await store.settle(first, { event: 'not-taken', to: 'retry', at: now, dueAt: now, detail: 'Bad gateway.' });
      const { stop } = await stopDialing(direct.ports, operator, campaign());
      await claim(now + 1);
      expect(await call('a')).to.include({ held_for: 'stop' });
      await end(first, now + minute);
      expect(await call('a')).to.include({ state: 'completed', dialed_at: now + minute - 1_000 });
      await resumeDialing(direct.ports, operator, stop.id);
      await add(['b'], { phone });
      expect(await take(now + 2 * minute)).to.deep.equal([]);
    });

    it('is waited for by a stop, even if the clock of the core that made it is behind or ahead', async () => {
      for (const off of [-minute, hour]) {
        await add([`off ${off}`], { due_at: instant(now - hour) });
        const open = await claimOne(now + off);
        clock.set(new Date(now).toISOString());
        let rests = 0;
        const { stop } = await stopDialing(direct.ports, operator, { ...account(), reason: 'Lunch' }, async () => {
          if (rests++ === 0) await store.settle(open, { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + hour) });
        });
        expect(rests, String(off)).to.be.above(0);
        await resumeDialing(direct.ports, operator, stop.id);
      }
    });

    it('keeps a call that a provider has when the clock is set back, so that it still counts as live', async () => {
      await add(['a'], { due_at: instant(now - hour) });
      const ahead = await claimOne(now + hour);
      const dueAt = instant(now + hour + 4 * hour);
      await store.settle(ahead, { event: 'taken', to: 'taken', dialedAt: instant(now + hour), dueAt });
      clock.set(new Date(now).toISOString());
      await store.recoverFromClockStep(now, true, new AbortController().signal);
      expect(await call('a')).to.include({ state: 'dialing', due_at: now + 4 * hour });
    });

    it('takes only calls that wait for their outcome from a stopped account', async () => {
      await add(names(2));
      const calls = await claim(now, 2);
      for (const each of calls) await store.settle(each, { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + minute) });
      await add(['queued'], { due_at: instant(now - minute) });
      await stopDialing(direct.ports, operator, partner());
      expect(await claim(now + minute - 1)).to.deep.equal([]);
      expect((await claim(now + minute)).map(({ handoff }) => handoff)).to.deep.equal(['taken', 'taken']);
      expect(await call('queued')).to.include({ state: 'queued', held_until: null });
    });

    it('holds a call between two tries, and lets it be tried for an hour again after that', async () => {
      const tried = {
        state: 'dialing',
        handoff: 'retry',
        attempt: 1,
        provider: 'webhook',
        first_attempt_at: instant(now - 50 * minute),
      } as const;
      await add(['retried'], tried);
      await stopDialing(direct.ports, operator, campaign());
      expect(await claim(now)).to.deep.equal([]);
      expect(await call('retried')).to.include({ handoff: 'retry', held_for: 'stop', first_attempt_at: null });
    });

    it("doesn't let a user end a stop that someone of a higher type has taken over in between", async () => {
      const { account } = tenants.users;
      const caller = { viewer: { ...account, tenancy: null }, actor: { who: account, address: 'local' } };
      const scope = { scope: 'account', id: tenants.account.id } as const;
      const { stop } = await stopDialing(direct.ports, caller, scope);
      const { stops } = direct.ports.stores;
      // Between the check whether the user may resume it, and the change.
      const takenOver = {
        ...stops,
        resume: async (...resumed: Parameters<typeof stops.resume>) => {
          await stopDialing(direct.ports, operator, scope);
          return stops.resume(...resumed);
        },
      };
      const ports = { ...direct.ports, stores: { ...direct.ports.stores, stops: takenOver } };
      const refused = await resumeDialing(ports, caller, stop.id).catch(({ message }: Problem) => message);
      expect(refused).to.contain('service staff');
      expect(await stops.list({ kind: 'all' })).to.have.length(1);
    });

    it('stops it again if the stop that was there is ended before the response', async () => {
      const first = await stopDialing(direct.ports, operator, account());
      await add(['leaving'], { state: 'dialing', handoff: 'open', attempt: 1, provider: 'webhook', due_at: instant(now + 30_000) });
      const second = await stopDialing(direct.ports, operator, account(), async () => {
        await resumeDialing(direct.ports, operator, first.stop.id);
        await direct.storage.database.write('calls').update({ handoff: 'taken' });
      });
      expect((await direct.ports.stores.stops.list({ kind: 'all' })).map(({ id }) => id)).to.deep.equal([second.stop.id]);
    });

    it('lets a user resume dialing only once the calls placed before a stop are cancelled, and says so right away', async () => {
      await add(names(500));
      soon.ms = 0;
      const scope = { scope: 'account', id: tenants.account.id, cancelQueuedCalls: 'soon' } as const;
      const { account } = tenants.users;
      const caller = { viewer: { ...account, tenancy: null }, actor: { who: account, address: 'local' } };
      try {
        const { stop } = await stopDialing(direct.ports, caller, scope);
        const resumed = await resumeDialing(direct.ports, caller, stop.id).catch(({ message }: Problem) => message);
        expect(resumed).to.match(/still being cancelled.*Resume again/);
        await add(['later'], { placed_at: instant(now + 1_000) });
        await direct.ports.stores.stops.cancelCallsOfStopped();
        await resumeDialing(direct.ports, caller, stop.id);
      } finally {
        soon.ms = 700;
      }
      expect(await direct.ports.stores.stops.list({ kind: 'all' })).to.deep.equal([]);
      expect(await direct.storage.database.read('calls').where({ state: 'cancelled' })).to.have.length(500);
      expect(await call('later')).to.include({ state: 'queued' });
    });
  });
});
