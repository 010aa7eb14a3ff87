import { expect } from 'chai';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { clockSkew } from '../../core/domain/deadlines.ts';
import { createAccount, createCampaign } from '../../core/domain/directory/directory.ts';
import { instant } from '../../core/domain/instant.ts';
import type { DialingStore, Provider } from '../../core/domain/ports.ts';
import { retentionStore } from '../../core/storage/calls/retention.ts';
import { dialingStore } from '../../core/storage/dialing/dialing.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { fakeClock } from '../support/clock.ts';
import { onEachDatabase, readPlans } from '../support/databases.ts';
import { skip } from '../support/suites.ts';
import { insertCalls, tenantsOnce } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const lease = 30_000;

describe('the dialing store', () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsOnce(kind, fakeClock(new Date(now).toISOString()));
    let store: DialingStore;
    beforeEach(async () => {
      store = direct.ports.stores.dialing;
      await direct.storage.database.write('calls').delete();
    });

    const addCall = (contactId: string, more: Partial<CallRow> = {}) => insertCalls(direct, tenants, [contactId], more);
    const call = (contactId: string) => direct.storage.database.read('calls').where({ contact_id: contactId }).first();
    const claim = async (limit: number, { provider = 'webhook', at = now }: { provider?: Provider['name']; at?: number } = {}) =>
      store.claim(limit, provider, instant(at), instant(at + lease));
    const claimOne = async (options?: Parameters<typeof claim>[1]) => {
      const [claimed] = await claim(1, options);
      if (!claimed) throw new Error('No call was claimed.');
      return claimed;
    };
    const taken = { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + 1) } as const;

    it("doesn't settle a claim that another claim has replaced", async () => {
      await addCall('c');
      const older = await claimOne();
      await claimOne({ at: instant(now + lease) });
      const between = await call('c');
      const ended = { event: 'outcome', to: 'failed', endedAt: now, durationSeconds: null, detail: null } as const;
      expect([await store.settle(older, taken), await store.settle(older, ended)]).to.deep.equal([false, false]);
      expect(await call('c')).to.deep.equal(between);
    });

    it('settles only the claimed call', async () => {
      await addCall('c');
      const claimed = await claimOne();
      await addCall('other');
      await claimOne();
      const other = await call('other');
      expect(await store.settle(claimed, taken)).to.equal(true);
      expect(await call('c')).to.include({ handoff: 'taken', due_at: instant(now + 1) });
      expect(await call('other')).to.deep.equal(other);
    });

    it('leaves a claimed call to its dialer until the lease expires', async () => {
      await addCall('c');
      await claimOne();
      expect(await claim(1, { at: instant(now + lease - 1) })).to.deep.equal([]);
      expect(await claim(1, { at: instant(now + lease) })).to.have.length(1);
    });

    it('keeps an unsettled call in doubt, and remembers which provider may have it', async () => {
      await addCall('c');
      await claimOne({ provider: 'simulated' });
      expect(await claimOne({ provider: 'webhook', at: instant(now + lease) })).to.include({
        handoff: 'doubt',
        provider: 'simulated',
        attempt: 2,
      });
    });

    it("gives a call to another provider if the previous provider didn't accept it", async () => {
      await addCall('c');
      await store.settle(await claimOne({ provider: 'simulated' }), { event: 'not-taken', to: 'retry', at: now, dueAt: now });
      expect(await claimOne({ provider: 'webhook' })).to.include({ handoff: 'open', provider: 'webhook' });
    });

    it("claims an account's oldest due call first", async () => {
      for (const [contactId, age] of Object.entries({ younger: 1, oldest: 9, older: 5 }))
        await addCall(contactId, { due_at: instant(now - age) });
      const claimed: string[] = [];
      for (let turn = 0; turn < 3; turn++) claimed.push((await claimOne()).contactId);
      expect(claimed).to.deep.equal(['oldest', 'older', 'younger']);
    });

    it('serves accounts in turn across several claims', async () => {
      const accounts = new Set<string>();
      for (let n = 0; n < 5; n++) {
        const { id } = await createAccount(direct.ports, operator, `Account ${n}`, tenants.partner.id);
        const campaign = await createCampaign(direct.ports, operator, 'Calls', id);
        accounts.add(id);
        for (let one = 0; one < 3; one++)
          await addCall(`${id}-${one}`, { account_id: id, campaign_id: campaign.id, due_at: instant(now - 10 + n) });
      }
      const served: string[] = [];
      for (let turn = 0; turn < 5; turn++) served.push(...(await claim(1)).map(({ contactId }) => contactId.slice(0, -2)));
      expect(new Set(served)).to.deep.equal(accounts);
    });

    it("lets a key's call wait for only a few claims behind another key's long queue", async () => {
      const flood = Array.from({ length: 25_000 }, (_, n) => `flood-${String(n).padStart(5, '0')}`);
      await insertCalls(direct, tenants, flood, { api_key_id: 'flood' });
      for (const n of [1, 2, 3]) await addCall(`zz-quiet-${n}`, { api_key_id: 'quiet', placed_at: instant(now + n) });
      const served: string[] = [];
      for (let turn = 0; turn < 12; turn++) served.push(...(await claim(2)).map(({ contactId }) => contactId));
      expect(served.filter((id) => id.startsWith('zz-quiet'))).to.deep.equal(['zz-quiet-1', 'zz-quiet-2', 'zz-quiet-3']);
      // The other 21 calls are the flood's, so no claim got too few calls.
      expect(served).to.have.length(24);
    });

    it('lets the keys of an account take turns, whatever the size of a claim', async () => {
      for (const key of ['a', 'b', 'c'])
        for (let n = 0; n < 4; n++)
          await addCall(`${key}-${n}`, { api_key_id: key, due_at: instant(now - 100 * (4 - key.charCodeAt(0) + 96) + n) });
      const served: string[] = [];
      for (let turn = 0; turn < 8; turn++) served.push(...(await claim(1)).map(({ contactId }) => contactId));
      expect(new Set(served.map((id) => id[0]))).to.deep.equal(new Set(['a', 'b', 'c']));
      served.push(...(await claim(100)).map(({ contactId }) => contactId));
      expect(served.toSorted()).to.deep.equal(['a', 'b', 'c'].flatMap((key) => [0, 1, 2, 3].map((n) => `${key}-${n}`)));
    });

    for (const handoff of ['open', 'doubt', 'taken'] as const)
      it(`claims a call with the hand-off ${handoff} even after notAfter, since only a dialer can end it`, async () => {
        await addCall('c', { state: 'dialing', handoff, provider: 'webhook', not_after: instant(now - 1) });
        expect(await claimOne()).to.include({ contactId: 'c' });
      });

    it('claims a call with everything that a hand-off needs', async () => {
      const more = {
        name: 'Ada',
        time_zone: 'UTC',
        variables: '[["a","1"]]',
        not_before: instant(1),
        not_after: instant(now + 9),
        request_id: 'r',
      };
      await addCall('c', { ...more, placed_at: instant(2) });
      const { claimedAt, ...claimed } = await claimOne();
      expect(claimedAt).to.be.a('number');
      expect(claimed).to.deep.equal({
        ...{ contactId: 'c', requestId: 'r', campaignId: tenants.campaign.id, phone: '+493012345678', name: 'Ada', timeZone: 'UTC' },
        ...{
          variables: { a: '1' },
          placedAt: instant(2),
          notBefore: instant(1),
          notAfter: instant(now + 9),
          firstAttemptAt: now,
          provider: 'webhook',
        },
        ...{ attempt: 1, handoff: 'open', leaseUntil: instant(now + lease), leaves: null, stopped: null },
        campaign: {
          ...{ id: tenants.campaign.id, name: tenants.campaign.name, settings: {} },
          account: { id: tenants.account.id, name: tenants.account.name },
          partner: { id: tenants.partner.id, name: tenants.partner.name },
        },
      });
      await addCall('bare');
      expect(await claimOne()).to.deep.include({ contactId: 'bare', variables: {}, name: null });
    });

    it('claims up to its limit of calls, one per account in turn', async () => {
      const accounts = [tenants.account, tenants.siblingAccount, tenants.otherAccount].map(({ id }) => id).toSorted();
      for (const [n, id] of accounts.entries())
        for (let call = 0; call < 3; call++) await addCall(`${n}-${call}`, { account_id: id, due_at: instant(now - 9 + call) });
      // Either account may be first after the previous claims.
      const claimed = (await claim(4)).map(({ contactId }) => contactId);
      expect(claimed).to.have.length(4);
      expect(claimed.filter((id) => id.endsWith('-0'))).to.have.members(['0-0', '1-0', '2-0']);
      expect(claimed.filter((id) => id.endsWith('-1'))).to.have.length(1);
      expect(await claim(100)).to.have.length(5);
    });

    it('returns the calls that it has claimed, even if it then fails to claim more', async () => {
      await addCall('open', { due_at: instant(now - 3) });
      const premium = { phone: '+4990012345678' };
      await addCall('blocked', { due_at: instant(now - 2), ...premium });
      await addCall('blocked-later', { due_at: instant(now - 1), ...premium });
      let blocked = 0;
      const failing = dialingStore(direct.storage.database, fakeClock(), () => {
        if (++blocked > 1) throw new Error('The connection was lost.');
      });
      const claimTwo = () => failing.claim(2, 'webhook', now, instant(now + lease));
      expect((await claimTwo()).map(({ contactId }) => contactId)).to.deep.equal(['open']);
      expect([(await call('blocked'))?.state, (await call('blocked-later'))?.state]).to.deep.equal(['blocked', 'queued']);
      expect(await claimTwo().catch((error) => error.message)).to.equal('The connection was lost.');
    });

    it("doesn't claim calls whose time is over, and marks them as lapsed", async () => {
      await addCall('late', { not_after: instant(now - 1) });
      await addCall('retry', { state: 'dialing', handoff: 'retry', not_after: instant(now - 1) });
      await addCall('future', { due_at: instant(now + 1) });
      await addCall('last', { not_after: now });
      await addCall('last-retry', { state: 'dialing', handoff: 'retry', not_after: now });
      expect((await claim(5)).map(({ contactId }) => contactId)).to.have.members(['last', 'last-retry']);
      const states = await Promise.all(['late', 'retry', 'future'].map(async (id) => (await call(id))?.state));
      expect(states).to.deep.equal(['lapsed', 'lapsed', 'queued']);
    });

    it('stores all fields of a settlement', async () => {
      await addCall('c');
      await store.settle(await claimOne(), { event: 'not-taken', to: 'retry', at: now, dueAt: instant(now + 1) });
      expect(await call('c')).to.include({ state: 'dialing', handoff: 'retry', due_at: instant(now + 1) });
      await store.settle(await claimOne({ at: instant(now + 1) }), { ...taken, dialedAt: instant(now + 2), dueAt: instant(now + 3) });
      expect(await call('c')).to.include({ handoff: 'taken', dialed_at: instant(now + 2), due_at: instant(now + 3) });
      const end = { detail: 'Busy.', endedAt: instant(now + 4), durationSeconds: 5 };
      await store.settle(await claimOne({ at: instant(now + 3) }), { event: 'outcome', to: 'busy', ...end });
      expect(await call('c')).to.include({ state: 'busy', due_at: null, detail: 'Busy.', ended_at: instant(now + 4), duration_seconds: 5 });
    });

    it('forgets trouble that a core recorded while its clock was ahead', async () => {
      const skew = clockSkew.toMillis();
      const trouble = { since: now, reason: 'HTTP 503' };
      await store.noteTrouble('killed', trouble, instant(now + skew + 1));
      await store.recoverFromClockStep(now, true);
      expect(await store.findTrouble(now)).to.equal(null);
      await store.noteTrouble('running', trouble, instant(now + skew));
      await store.recoverFromClockStep(now, true);
      expect(await store.findTrouble(now)).to.deep.equal(trouble);
    });

    it('reports how many calls are waiting for a dialer, and since when', async () => {
      const queue = async () => {
        const { waiting, oldestDueAt } = await store.queue(now);
        return { ...Object.fromEntries(waiting), oldestDueAt };
      };
      expect(await queue()).to.deep.equal({ oldestDueAt: null });
      await addCall('queued', { due_at: now });
      await addCall('later', { due_at: instant(now + 1) });
      for (const handoff of ['open', 'retry', 'doubt', 'taken'] as const)
        await addCall(handoff, { state: 'dialing', handoff, due_at: instant(now - (handoff === 'doubt' ? 5 : 1)) });
      await addCall('ended', { state: 'busy', due_at: null });
      expect(await queue()).to.deep.equal({ dialer: 3, oldestDueAt: now - 5 });
      const heldUntil = instant(now + 9);
      for (let held = 0; held < 3; held++)
        await addCall(`held-${held}`, { due_at: heldUntil, held_until: heldUntil, held_for: held === 0 ? 'contact-limit' : null });
      expect(await queue()).to.deep.equal({ dialer: 3, 'contact-limit': 1, 'calling-hours': 2, oldestDueAt: now - 5 });
      const pace = { scope_id: tenants.account.id, next_at: instant(now - 1_000), spread_until: instant(0) };
      await direct.storage.database.write('dialing_paces').insert(pace);
      expect(await queue()).to.deep.equal({ pace: 3, 'contact-limit': 1, 'calling-hours': 2, oldestDueAt: null });
    });

    it('counts due calls in the index of the queue alone, because there may be millions', async function () {
      if (kind === 'postgres') skip(this, 'its planner chooses by the number of rows');
      const { database } = direct.storage;
      const [plan] = await readPlans(kind, database.read, () => dialingStore(database, direct.ports.clock).queue(now));
      expect(plan).to.contain('SCAN calls USING COVERING INDEX calls_due').and.to.contain('SEARCH c USING INDEX calls_due');
    });

    describe("recording a call's outcome", () => {
      it('accepts one outcome of a call that was handed off, and sets its dialing time to when it was handed off', async () => {
        const outcome = { state: 'completed', detail: 'Talked.', endedAt: instant(now + 9), durationSeconds: 42 } as const;
        await addCall('c');
        const report = (contactId: string) => store.recordOutcome(contactId, outcome, instant(now + 10));
        expect([await report('c'), await report('none')]).to.deep.equal([null, null]);
        await claimOne();
        await addCall('other');
        await claimOne();
        const other = await call('other');
        expect([await report('c'), await report('none')]).to.deep.equal(['recorded', null]);
        const ended = await call('c');
        expect(await call('other')).to.deep.equal(other);
        expect(ended).to.include({ state: 'completed', handoff: 'taken', due_at: null, detail: 'Talked.', dialed_at: now });
        expect(ended).to.include({ ended_at: instant(now + 9), duration_seconds: 42, late_outcome_at: null });
        expect(await store.recordOutcome('c', { ...outcome, state: 'busy' }, now)).to.equal('not-needed');
        expect(await call('c')).to.deep.equal(ended);
      });

      it('stores an end time before the hand-off as reported, but starts the retention period when the call was dialed', async () => {
        const { database } = direct.storage;
        const retention = retentionStore(database);
        const outcome = { state: 'completed', detail: null, endedAt: instant(now / 1_000), durationSeconds: null } as const;
        await addCall('c', { placed_at: instant(now - 9), not_before: now, phone: '+493012345679' });
        await claimOne();
        expect(await store.recordOutcome('c', outcome, instant(now + 10))).to.equal('recorded');
        expect(await call('c')).to.include({ ended_at: now / 1_000, dialed_at: now });
        expect(await retention.countErasable(now)).to.deep.equal({ erasable: 0, oldestEndedAt: now });
        expect(await retention.erase(now)).to.equal(0);
        const toOptOut = () =>
          auditEvent(direct.ports, operator.actor, 'do-not-call.added', { kind: 'do-not-call', id: 'entry', name: '1 number' }, null);
        expect(await store.recordOutcome('c', outcome, now, toOptOut)).to.equal('not-needed');
        const plans = await readPlans(kind, database.write, async () => expect(await retention.erase(instant(now + 1))).to.equal(1));
        const fromIndex = kind === 'sqlite' ? /USING INDEX calls_to_erase \(<expr><\?\)/ : /calls_to_erase .+Index Cond: \(GREATEST/;
        expect(plans.join()).to.match(fromIndex);
      });

      const late = { detail: 'Talked.', endedAt: instant(now + 9), durationSeconds: 42 };

      it('replaces the state unknown with the first outcome, however late, and accepts only one of two concurrent outcomes', async () => {
        await addCall('c');
        const fenced = await claimOne();
        const claimed = await claimOne({ at: instant(now + lease) });
        const unknown = { detail: 'The answer was lost.', endedAt: instant(now + lease), durationSeconds: null };
        await store.settle(claimed, { event: 'must-not-repeat', to: 'unknown', ...unknown });
        const states = ['completed', 'busy'] as const;
        const results = await Promise.all(states.map((state) => store.recordOutcome('c', { state, ...late }, instant(now + lease + 5))));
        expect(results.toSorted()).to.deep.equal(['not-needed', 'recorded']);
        const ended = await call('c');
        expect(ended).to.include({ state: states[results.indexOf('recorded')], detail: 'Talked.', duration_seconds: 42, due_at: null });
        expect(ended).to.include({ ended_at: instant(now + 9), dialed_at: now, late_outcome_at: instant(now + lease + 5) });
        // The retention period restarts.
        expect(await retentionStore(direct.storage.database).countErasable(now)).to.include({ oldestEndedAt: now + lease + 5 });
        for (const dialer of [fenced, claimed]) {
          expect(await store.settle(dialer, taken)).to.equal(false);
          expect(await store.settle(dialer, { event: 'must-not-repeat', to: 'unknown', ...unknown })).to.equal(false);
        }
        expect(await call('c')).to.deep.equal(ended);
      });

      it('ignores an outcome for a call that was erased or has ended in another state', async () => {
        const rows: Partial<CallRow>[] = [
          { state: 'unknown', handoff: 'doubt', phone: null },
          { state: 'cancelled', handoff: 'retry' },
          { state: 'failed', handoff: 'open' },
        ];
        for (const [n, row] of rows.entries()) await addCall(`c${n}`, { ...row, due_at: null, ended_at: now });
        const all = () => direct.storage.database.read('calls').orderBy('contact_id');
        const before = await all();
        for (const n of rows.keys()) expect(await store.recordOutcome(`c${n}`, { state: 'busy', ...late }, now)).to.equal('not-needed');
        expect(await all()).to.deep.equal(before);
      });

      it("keeps the call's data if the outcome is recorded while old calls are erased, and the erasure doesn't wait", async () => {
        await addCall('c', { state: 'unknown', handoff: 'taken', due_at: null, ended_at: instant(1) });
        const { write } = direct.storage.database;
        // On SQLite, the erasure has to wait for the file.
        const erasing = await write.transaction(async (trx) => {
          await trx('calls').where({ contact_id: 'c' }).update({ state: 'busy', ended_at: now });
          const erased = direct.ports.stores.retention.erase(now);
          if (kind === 'postgres') await erased;
          return { erased };
        });
        expect(await erasing.erased).to.equal(0);
        expect(await call('c')).to.include({ state: 'busy', phone: '+493012345678' });
      });
    });
  });
});
