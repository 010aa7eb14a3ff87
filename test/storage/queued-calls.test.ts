import { mock } from 'node:test';
import { expect } from 'chai';
import { revokeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { eraseOldContacts } from '../../core/domain/calls/contacts.ts';
import { dialingLimits, endOverdueCalls } from '../../core/domain/calls/dialing.ts';
import { clockSkew } from '../../core/domain/deadlines.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import { addNumbers } from '../../core/domain/protection/do-not-call.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import {
  type CallKeyPair,
  cancelQueued,
  countQueued,
  endOverdueBatch,
  holdCalls,
  lapseBatch,
  markAllDue,
  soon,
} from '../../core/storage/queue/queue.ts';
import { fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { onEachDatabase, readPlans } from '../support/databases.ts';
import { databaseWithTenants, insertCalls, insertKeys, openDirect, restoredTenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;

describe('queued calls', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const { direct, tenants } = restoredTenants(kind, clock);
    beforeEach(() => clock.set('2026-11-21T09:00:00.000Z'));
    afterEach(() => mock.reset());

    const addKey = (id: string) => insertKeys(direct, tenants, [id]);
    const addCalls = (key: string, count: number, more: Partial<CallRow> = {}) => {
      const ids = Array.from({ length: count }, (_, n) => `${key}-${n}`);
      return insertCalls(direct, tenants, ids, { api_key_id: key, name: 'Ada', ...more });
    };
    const states = async (): Promise<Record<string, number>> => {
      const rows: string[] = await direct.storage.database.read('calls').pluck('state');
      return Object.fromEntries(Object.entries(Object.groupBy(rows, (state) => state)).map(([state, of]) => [state, of?.length ?? 0]));
    };
    const unfinished = (): Promise<string[]> =>
      direct.storage.database.read('revoked_api_keys').whereNotNull('cancelling_since').pluck('id');
    const viewer = () => ({ ...tenants.users.account, tenancy: null });
    const revoke = (id: string, cancelling: true | 'soon' = true) =>
      revokeApiKey(direct.ports, { viewer: viewer(), actor: operator.actor }, id, cancelling);

    it('of a revoked key are cancelled in batches, so that others can write in between', async () => {
      await addKey('goes');
      await addKey('stays');
      await addCalls('goes', 95);
      await addCalls('stays', 5);
      const order: string[] = [];
      const { database: db } = direct.storage;
      const cancelling = cancelQueued(db, { ids: ['goes'] }, clock.now(), { size: 10 }).then((count) => order.push(`cancelled ${count}`));
      for (let n = 0; n < 3; n++)
        await db
          .write('api_keys')
          .where({ id: 'stays' })
          .update({ name: `written ${n}` });
      order.push('written');
      await cancelling;
      expect(order).to.deep.equal(['written', 'cancelled 95']);
      expect(await states()).to.deep.equal({ cancelled: 95, queued: 5 });
    });

    it('of a revoked key are cancelled wherever they are in the queue, however many are due at the same instant', async () => {
      await addCalls('goes', 25);
      await addCalls('stays', 25);
      await addCalls('goes-later', 25, { api_key_id: 'goes', due_at: instant(clock.now() + day), not_before: instant(clock.now() + day) });
      await addCalls('goes-elsewhere', 1, { api_key_id: 'goes', account_id: '!' });
      await addCalls('between-tries', 1, { api_key_id: 'goes', state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('dialing', 1, { api_key_id: 'goes', state: 'dialing', handoff: 'taken', provider: 'webhook' });
      expect(await cancelQueued(direct.storage.database, { ids: ['goes'] }, clock.now(), { size: 10 })).to.equal(52);
      expect(await states()).to.deep.equal({ cancelled: 52, queued: 25, dialing: 1 });
    });

    it('of a revoked key are all cancelled before the request returns', async () => {
      await addKey('one');
      await addCalls('one', 2_500);
      await addCalls('two', 10);
      await revoke('one');
      expect([await states(), await unfinished()]).to.deep.equal([{ cancelled: 2_500, queued: 10 }, []]);
    });

    it('of a key revoked by a process that then died are cancelled by the next core that starts', async () => {
      await addKey('goes');
      await addCalls('goes', 30);
      const { storage, ports } = direct;
      // The process dies after the key was revoked.
      mock.method(storage.database.lanes.console, 'awaitWriters', () => Promise.reject(new Error('killed')));
      const failed = await revoke('goes').catch((error: Error) => error.message);
      await addCalls('goes-late', 1, { api_key_id: 'goes' });
      expect(failed).to.match(/^The key was revoked.*, but some queued calls couldn't be cancelled yet/);
      expect(await ports.stores.apiKeys.find({ kind: 'all' }, 'goes')).to.equal(null);
      expect(await unfinished()).to.deep.equal(['goes']);
      const core = await startCoreHere(direct.database, { clock });
      await until(async () => (await unfinished()).length === 0);
      expect(await states()).to.deep.equal({ cancelled: 31 });
      await core.close();
    });

    it("of a revoked key that are being handed off are cancelled if the provider doesn't accept them", async () => {
      await addKey('goes');
      await addCalls('goes', 3);
      const { dialing, apiKeys } = direct.ports.stores;
      const now = clock.now();
      const [refused, taken, late] = await dialing.claim(3, 'webhook', now, instant(now + 30_000));
      if (!refused || !taken || !late) throw new Error('No call was claimed.');
      await revoke('goes');
      expect([await states(), await unfinished()]).to.deep.equal([{ dialing: 3 }, ['goes']]);
      await dialing.settle(refused, { event: 'not-taken', to: 'retry', at: now, dueAt: now, detail: 'busy' });
      await dialing.settle(taken, { event: 'taken', to: 'taken', dialedAt: now, dueAt: now });
      expect(await states()).to.deep.equal({ dialing: 2, cancelled: 1 });
      const tidy = () => apiKeys.cancelCallsOfMarked(clock.now(), new AbortController().signal);
      // A dialer may get the provider's response when its lease is over, and no other has claimed the call.
      clock.advance({ seconds: 40 });
      await tidy();
      await dialing.settle(late, { event: 'not-taken', to: 'retry', at: now, dueAt: now, detail: 'busy' });
      expect(await states()).to.deep.equal({ dialing: 1, cancelled: 2 });
      await tidy();
      expect(await unfinished()).to.deep.equal([]);
    });

    it('to a listed number are looked for again if a statement that may have placed one took too long', async () => {
      const owner = { accountId: tenants.account.id, timeZone: 'UTC' };
      await addNumbers(direct.ports, operator, { ...owner, phones: ['+493012345678'], reason: 'asked' });
      const { background } = direct.storage.database.lanes;
      const writers = mock.method(background, 'awaitWriters', async () => false);
      const block = () => direct.ports.stores.doNotCall.blockDoNotCall(clock.now());
      expect(await block().catch(({ code }) => code)).to.equal('unavailable');
      await addCalls('late', 1);
      writers.mock.restore();
      expect([await block(), await states()]).to.deep.equal([1, { blocked: 1 }]);
    });

    it('of a key revoked without cancelling stay queued', async () => {
      await addKey('goes');
      await addCalls('goes', 3);
      await revokeApiKey(direct.ports, { viewer: viewer(), actor: operator.actor }, 'goes', false);
      await direct.ports.stores.apiKeys.cancelCallsOfMarked(clock.now(), new AbortController().signal);
      expect(await states()).to.deep.equal({ queued: 3 });
    });

    it('of a revoked key are left to housekeeping if other writes take too long, and the response says so', async () => {
      await addKey('goes');
      await addCalls('goes', 1);
      mock.method(direct.storage.database.lanes.console, 'awaitWriters', async () => false);
      const problem: unknown = await revoke('goes').catch((error: unknown) => error);
      expect(problem).to.include({ code: 'unavailable', retryAfter: 60 });
      expect(problem).to.have.nested.property('cause.message', "A statement that writes calls didn't finish in time.");
      const [left] = await direct.storage.database.read('revoked_api_keys');
      expect(left).to.deep.equal({
        ...{ id: 'goes', name: 'goes', creator_id: tenants.users.account.id, creator_name: tenants.users.account.name },
        ...{ creator_partner_id: tenants.partner.id, account_id: tenants.account.id, partner_id: tenants.partner.id },
        ...{ revoked_at: clock.now(), cancelling_since: clock.now() },
      });
    });

    if (kind === 'postgres') {
      it("of a revoked key are cancelled even if one of them is locked, and the locked call is cancelled once it's released", async () => {
        await addCalls('goes', 3);
        const { database: db } = direct.storage;
        let cancelling: ReturnType<typeof cancelQueued> | undefined;
        await db.write.transaction(async (trx) => {
          await trx('calls').where({ contact_id: 'goes-1' }).forUpdate().first();
          cancelling = cancelQueued(db, { ids: ['goes'] }, clock.now());
          await until(async () => (await states())['cancelled'] === 2);
        });
        expect([await cancelling, await states()]).to.deep.equal([3, { cancelled: 3 }]);
      });
    }

    it('of a revoked key are counted when housekeeping cancels them, including calls placed in the meantime', async () => {
      await addKey('goes');
      const { console, background } = direct.storage.database.lanes;
      const { awaitWriters } = background;
      mock.method(console, 'awaitWriters', async () => false);
      await revoke('goes').catch(() => undefined);
      await addCalls('goes', 2);
      mock.method(background, 'awaitWriters', async () => {
        await addCalls('goes-late', 1, { api_key_id: 'goes' });
        return awaitWriters();
      });
      expect(await direct.ports.stores.apiKeys.cancelCallsOfMarked(clock.now(), new AbortController().signal)).to.equal(3);
      expect([await states(), await unfinished()]).to.deep.equal([{ cancelled: 3 }, []]);
    });

    if (kind === 'sqlite') {
      it("are found in the queue's index instead of among all calls, even after an ANALYZE", async () => {
        const { database, tenants } = await databaseWithTenants(kind);
        await using before = await openDirect(database, clock);
        await insertCalls(before, tenants, ['one', 'two', 'three']);
        await before.storage.database.write.raw('ANALYZE');
        // Connections read the results of ANALYZE when they open.
        await using analyzed = await openDirect(database, clock);
        const { database: db } = analyzed.storage;
        const plans = await readPlans(kind, db.read, async () => {
          await countQueued(db, ['none', 'neither']);
          await cancelQueued(db, { ids: ['none', 'neither'] }, clock.now());
        });
        expect(plans).to.have.length(3);
        for (const plan of plans) expect(plan).to.contain('INDEX calls_due');
      });
    }

    it("of a revoked key, that couldn't all be cancelled soon, are cancelled by claims", async () => {
      await addKey('goes');
      await addCalls('goes', 1_100);
      await addCalls('between-tries', 1, { api_key_id: 'goes', state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('stays', 1);
      soon.ms = 0;
      await revoke('goes', 'soon').finally(() => {
        soon.ms = 700;
      });
      expect((await states())['queued']).to.be.above(100);
      const now = clock.now();
      const claimed = await direct.ports.stores.dialing.claim(5, 'webhook', now, plus(now, 30_000));
      expect(claimed.map(({ contactId }) => contactId)).to.deep.equal(['stays-0']);
      expect(await states()).to.deep.equal({ cancelled: 1_101, dialing: 1 });
      expect(await unfinished()).to.deep.equal(['goes']);
      await direct.ports.stores.apiKeys.cancelCallsOfMarked(now);
      expect(await unfinished()).to.deep.equal([]);
    });

    it('of a deleted user are cancelled by claims, also those of keys that have yet to be revoked', async () => {
      await addKey('goes');
      const newer = Array.from({ length: 1_000 }, (_, n) => `newer-${n}`);
      await insertKeys(direct, tenants, newer, { created_at: instant(2) });
      await addCalls('goes', 1_100);
      await addCalls('stays', 1);
      soon.ms = 0;
      await deleteUser(direct.ports, operator, tenants.users.account, 'soon').finally(() => {
        soon.ms = 700;
      });
      expect(await direct.storage.database.read('api_keys').pluck('id')).to.deep.equal(['goes']);
      const now = clock.now();
      const claimed = await direct.ports.stores.dialing.claim(5, 'webhook', now, plus(now, 30_000));
      expect(claimed.map(({ contactId }) => contactId)).to.deep.equal(['stays-0']);
    });

    it("are counted by key before they're dialed", async () => {
      await addCalls('two', 1);
      await addCalls('two-between-tries', 1, { api_key_id: 'two', state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('one', 1);
      await addCalls('dialing', 1, { state: 'dialing', handoff: 'taken', provider: 'webhook' });
      const counted = await countQueued(direct.storage.database, ['two', 'one', 'dialing', 'none']);
      expect(Object.fromEntries(counted)).to.deep.equal({ two: 2, one: 1 });
    });

    it('stop being cancelled when a signal aborts', async () => {
      await addCalls('goes', 2);
      const stop = AbortSignal.abort(new Error('Stop.'));
      const cancelling = cancelQueued(direct.storage.database, { ids: ['goes'] }, clock.now(), { signal: stop });
      expect(await cancelling.catch((error) => error.message)).to.equal('Stop.');
      expect(await states()).to.deep.equal({ queued: 2 });
    });

    it("held by calling hours aren't checked again each hour, unless the clock was ahead when they were held", async () => {
      const now = clock.now();
      const until = (at: number, more: object = {}) => ({ due_at: instant(at), held_until: instant(at), ...more });
      await addCalls('tomorrow', 1, until(now + day));
      await addCalls('in-a-month', 1, until(now + 40 * day, { not_before: instant(now + 10 * day) }));
      await addCalls('too-long', 1, until(now + 40 * day));
      await addCalls('from-the-future', 1, until(now + day, { placed_at: instant(now + day / 2) }));
      const { read, write } = direct.storage.database;
      const dueNow = () => read('calls').where({ due_at: now }).orderBy('request_id').pluck('request_id');
      await write('clock').update({ newest_at: instant(now) });
      expect(await direct.ports.stores.dialing.recoverFromClockStep(now, false)).to.equal(2);
      expect(await dueNow()).to.deep.equal(['from-the-future-0', 'too-long-0']);
      await write('clock').update({ newest_at: instant(now + day) });
      expect(await direct.ports.stores.dialing.recoverFromClockStep(now, false)).to.equal(2);
    });

    it('lapse after their notAfter, and end at their notAfter even if a core notices later', async () => {
      const notAfter = clock.now() + 1_000;
      await addCalls('past', 2, { not_after: instant(notAfter) });
      await addCalls('past-between-tries', 1, { not_after: instant(notAfter), state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('later', 1, { not_after: instant(notAfter + day) });
      clock.advance({ hours: 1 });
      expect(await direct.ports.stores.dialing.lapse(clock.now())).to.equal(3);
      expect(await states()).to.deep.equal({ lapsed: 3, queued: 1 });
      const ends: (number | null)[] = await direct.storage.database.read('calls').where({ state: 'lapsed' }).pluck('ended_at');
      expect(new Set(ends)).to.deep.equal(new Set([notAfter]));
    });

    it('that a fast clock postponed are due again after the clock is set back', async () => {
      const now = clock.now();
      const ahead = now + 400 * day;
      await addCalls('ahead', 2, { placed_at: instant(ahead), due_at: instant(ahead) });
      await addCalls('ahead-until', 1, { placed_at: instant(ahead), due_at: instant(ahead), not_before: instant(now + day) });
      await addCalls('held', 1, { due_at: instant(now + day), held_until: instant(now + day) });
      const refused = { state: 'dialing', handoff: 'retry', provider: 'webhook', due_at: instant(ahead) } as const;
      await addCalls('refused', 1, { ...refused, not_before: instant(now + day) });
      await addCalls('claimed', 1, { state: 'dialing', handoff: 'open', provider: 'webhook', due_at: instant(now + day) });
      await addCalls('taken', 1, { state: 'dialing', handoff: 'taken', provider: 'webhook', due_at: instant(ahead) });
      await addCalls('as-asked', 1, { due_at: instant(now + day), not_before: instant(now + day) });
      await addCalls('under-way', 1, { state: 'dialing', handoff: 'taken', provider: 'webhook', due_at: instant(now + day / 8) });
      // This is the lease of a core whose clock is as far ahead as allowed.
      const leased = clockSkew.plus(dialingLimits.lease).toMillis();
      await addCalls('leased', 1, { state: 'dialing', handoff: 'open', provider: 'webhook', due_at: instant(now + leased) });
      await addCalls('leased-longer', 1, { state: 'dialing', handoff: 'open', provider: 'webhook', due_at: instant(now + leased + 1) });
      await direct.ports.stores.dialing.recoverFromClockStep(now, true);
      const rows: { request_id: string; due_at: number }[] = await direct.storage.database.read('calls').select('request_id', 'due_at');
      const wait = Object.fromEntries(rows.map(({ request_id, due_at }) => [request_id.replace(/-\d+$/, ''), due_at - now]));
      expect(wait).to.deep.equal({
        // A held call is due immediately, because a dialer that claims it computes its calling hours again.
        ...{ held: 0, refused: day },
        ...{ ahead: 0, 'ahead-until': day, claimed: 0, taken: 0, 'as-asked': day, 'under-way': day / 8 },
        ...{ leased, 'leased-longer': 0 },
      });
    });

    it('are retried for another hour after the clock is set back, unless the provider may have them', async () => {
      const latest = clock.now() + clockSkew.toMillis();
      const dueAt = instant(latest + 2);
      const tried = { state: 'dialing', provider: 'webhook', first_attempt_at: instant(latest + 1) } as const;
      await addCalls('refused', 1, { ...tried, handoff: 'retry', due_at: instant(clock.now() + day) });
      await addCalls('in-doubt', 1, { ...tried, handoff: 'doubt', due_at: dueAt });
      await addCalls('in-doubt-until', 1, { ...tried, handoff: 'doubt', due_at: dueAt, not_after: dueAt });
      await addCalls('in-doubt-now', 1, { ...tried, handoff: 'doubt', due_at: dueAt, first_attempt_at: instant(latest) });
      await direct.ports.stores.dialing.recoverFromClockStep(clock.now(), true);
      const rows = await direct.storage.database.read('calls').orderBy('request_id').select('request_id', 'due_at', 'first_attempt_at');
      expect(rows.map(({ request_id, due_at, first_attempt_at }) => [request_id, due_at, first_attempt_at])).to.deep.equal([
        ['in-doubt-0', clock.now(), latest + 1],
        ['in-doubt-now-0', dueAt, latest],
        ['in-doubt-until-0', dueAt, latest + 1],
        ['refused-0', clock.now(), null],
      ]);
    });

    it('wait as long as the provider or calling hours require if the clock was right, but at most an hour without a notAfter', async () => {
      const due = instant(clock.now() + day);
      const retried = { state: 'dialing', handoff: 'retry', provider: 'webhook', due_at: due } as const;
      await addCalls('asked-to-wait', 1, { ...retried, not_after: due });
      await addCalls('retried-and-held', 1, { ...retried, held_until: due });
      await addCalls('held', 1, { due_at: due, held_until: due });
      // A core whose clock was fast may have made it wait without noticing.
      await addCalls('refused', 1, retried);
      expect(await direct.ports.stores.dialing.recoverFromClockStep(clock.now(), false)).to.equal(1);
      expect(await direct.storage.database.read('calls').where({ due_at: clock.now() }).pluck('request_id')).to.deep.equal(['refused-0']);
    });

    it('that a fast clock postponed become due in batches, even if they all have the same placement time and due time', async () => {
      const now = clock.now();
      const ahead = { placed_at: instant(now + day), due_at: instant(now + day) };
      await addCalls('one', 12, ahead);
      await addCalls('other', 3, { ...ahead, due_at: instant(now - 1) });
      const options = { size: 5, judgesHeldAgain: false };
      expect(await markAllDue(direct.storage.database, now, options)).to.equal(12);
      expect(await markAllDue(direct.storage.database, now, options)).to.equal(0);
    });

    it('without a notAfter lapse thirty days after they were due, and not before', async () => {
      const due = clock.now();
      await addCalls('endless', 2);
      await addCalls('later', 1, { due_at: instant(due + day), not_before: instant(due + day) });
      await addCalls('long', 1, { not_after: instant(due + 60 * day) });
      await addCalls('dialing', 1, { state: 'dialing', handoff: 'taken', provider: 'webhook' });
      await addCalls('dialing-until', 1, { state: 'dialing', handoff: 'taken', provider: 'webhook', not_after: instant(due + 1) });
      const { dialing } = direct.ports.stores;
      clock.advance({ days: 30 });
      expect(await endOverdueCalls(dialing, clock)).to.equal(0);
      clock.advance({ milliseconds: 1 });
      expect(await endOverdueCalls(dialing, clock)).to.equal(4);
      expect(await states()).to.deep.equal({ lapsed: 2, queued: 2, unknown: 2 });
      const ends: (number | null)[] = await direct.storage.database.read('calls').where({ state: 'lapsed' }).pluck('ended_at');
      expect(ends).to.deep.equal([due + 30 * day, due + 30 * day]);
    });

    it('that are overdue are changed in batches, so that others can write in between', async () => {
      const { database } = direct.storage;
      const { write } = database;
      const now = clock.now();
      for (const [change, call] of [
        [(limit: number) => lapseBatch(database, now, limit), { not_after: instant(now - 1) }],
        [(limit: number) => endOverdueBatch(write, now, limit), { due_at: instant(1) }],
      ] as const) {
        await write('calls').delete();
        await addCalls('one', 2, call);
        await addCalls('between-tries', 1, { ...call, state: 'dialing', handoff: 'retry', provider: 'webhook' });
        expect([await change(2), await change(2), await change(2)]).to.deep.equal([2, 1, 0]);
      }
    });

    it("that have lapsed aren't handed off, even if they aren't marked as lapsed yet", async () => {
      const due = clock.now();
      await addCalls('endless', 1);
      await addCalls('many', 600, { not_after: instant(due + 1) });
      const between = { not_after: instant(due + 1), state: 'dialing', handoff: 'retry', provider: 'webhook' } as const;
      await addCalls('many-between-tries', 600, between);
      clock.advance({ days: 31 });
      await addCalls('now', 1);
      const claimed = await direct.ports.stores.dialing.claim(1_000, 'webhook', clock.now(), instant(clock.now() + 1_000));
      expect(claimed.map(({ contactId }) => contactId)).to.deep.equal(['now-0']);
    });

    it("that were never dialed lapse and are erased when their retention is over, together with the provider's texts", async () => {
      // A core's clock must not be ahead of PostgreSQL's own clock, so this is in the past.
      clock.set('2024-01-01T09:00:00.000Z');
      await addCalls('endless', 1, { detail: 'Ada has moved to +493087654321.', variables: '[]', time_zone: 'Europe/Berlin' });
      await addCalls('past', 1, { not_after: instant(clock.now() + 1) });
      clock.advance({ days: 91 });
      const core = await startCoreHere(direct.database, { clock, environment: { RETENTION_DAYS: '60' } });
      const phones = (): Promise<unknown[]> => direct.storage.database.read('calls').whereNotNull('phone').pluck('phone');
      await until(async () => (await phones()).length === 0);
      await core.close();
      const erased: object[] = await direct.storage.database.read('calls');
      for (const call of erased) {
        expect(call).to.include({ state: 'lapsed', phone: null, name: null, variables: null, time_zone: null, detail: null });
      }
    });

    it("aren't erased before the end of their retention", async () => {
      const { retention } = direct.ports.stores;
      expect(await retention.countErasable(clock.now())).to.deep.equal({ erasable: 0, oldestEndedAt: null });
      await addCalls('past', 1, { not_after: clock.now() });
      const endedAt = clock.now();
      clock.advance({ days: 60 });
      await endOverdueCalls(direct.ports.stores.dialing, clock);
      expect(await retention.countErasable(endedAt)).to.deep.equal({ erasable: 0, oldestEndedAt: endedAt });
      await addCalls('later', 1, { state: 'busy', due_at: null, ended_at: clock.now() });
      expect(await retention.countErasable(plus(endedAt, 1))).to.deep.equal({ erasable: 1, oldestEndedAt: endedAt });
      expect(await eraseOldContacts(direct.ports, operator.actor, 60)).to.equal(0);
      clock.advance({ milliseconds: 1 });
      expect(await eraseOldContacts(direct.ports, operator.actor, 60)).to.equal(1);
    });

    it('that have ended stay counted for as long as charts show them, and so does the use of their keys', async () => {
      const { write } = direct.storage.database;
      const quarters = [plus(clock.now(), -1), clock.now()];
      await write('api_key_usage').insert(quarters.map((quarter_at) => ({ api_key_id: 'key', quarter_at, placed: 1, cancelled: 0 })));
      const counts = quarters.map((quarter_at) => ({ campaign_id: 'g', quarter_at, state: 'busy' as const, calls: 1 }));
      await write('call_counts').insert(counts);
      expect(await direct.ports.stores.retention.forgetCounts(clock.now())).to.equal(2);
      for (const table of ['api_key_usage', 'call_counts'] as const)
        expect(await write(table).pluck('quarter_at'), table).to.deep.equal([clock.now()]);
    });

    /** Changes the calling hours of an account or campaign, as the admin command does. */
    const changeHours = (scope: 'account' | 'campaign' = 'account') => {
      return setHours(direct.ports, operator, { scope, id: tenants[scope].id }, []);
    };
    const makeHeldDue = () => direct.ports.stores.rules.makeHeldDue(clock.now(), new AbortController().signal);
    const waits = async () => {
      const rows = await direct.storage.database.read('calls').orderBy('request_id').select('request_id', 'due_at', 'held_until');
      return Object.fromEntries(rows.map(({ request_id, due_at, held_until }) => [request_id, [(due_at ?? 0) - clock.now(), held_until]]));
    };

    it('that calling hours hold are due when the hours change, but not before their notBefore, and no other calls are', async () => {
      const due = instant(clock.now() + day);
      const held = { due_at: due, held_until: due };
      await addCalls('held', 1, held);
      await addCalls('held-retry', 1, { ...held, state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('later', 1, { ...held, not_before: instant(clock.now() + day / 2) });
      await addCalls('free', 1, { due_at: due, not_before: due });
      await addCalls('retry', 1, { due_at: due, state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('taken', 1, { due_at: due, state: 'dialing', handoff: 'taken', provider: 'webhook' });
      await addCalls('elsewhere', 1, { ...held, account_id: 'other' });
      await addCalls('ended', 1, { ...held, due_at: null, state: 'cancelled', ended_at: clock.now() });
      await changeHours();
      expect([await makeHeldDue(), await makeHeldDue()]).to.deep.equal([3, 0]);
      expect(await waits()).to.deep.equal({
        ...{ 'held-0': [0, null], 'held-retry-0': [0, null], 'later-0': [day / 2, null] },
        ...{ 'free-0': [day, null], 'retry-0': [day, null], 'taken-0': [day, null] },
        ...{ 'elsewhere-0': [day, due], 'ended-0': [-clock.now(), due] },
      });
    });

    it("that calling hours hold stay held if only another campaign's hours change", async () => {
      const due = instant(clock.now() + day);
      await addCalls('held', 700, { due_at: due, held_until: due });
      await addCalls('other', 1, { due_at: due, held_until: due, campaign_id: 'other' });
      await changeHours('campaign');
      expect(await makeHeldDue()).to.equal(700);
      expect((await waits())['other-0']).to.deep.equal([day, due]);
    });

    it('that the previous calling hours are just holding are due, too, once they have been placed', async () => {
      const { background } = direct.storage.database.lanes;
      const { awaitWriters } = background;
      mock.method(background, 'awaitWriters', async () => {
        const due = instant(clock.now() + day);
        await addCalls('held', 1, { due_at: due, held_until: due });
        return awaitWriters();
      });
      await changeHours();
      expect(await makeHeldDue()).to.equal(1);
    });

    if (kind === 'postgres') {
      it('that calling hours hold are due even if they were locked, and changes of hours in the meantime are noticed', async () => {
        const { write, read } = direct.storage.database;
        const due = instant(clock.now() + day);
        await addCalls('held', 3, { due_at: due, held_until: due });
        await changeHours();
        let making: Promise<number> | undefined;
        await write.transaction(async (trx) => {
          await trx('calls').where({ request_id: 'held-1' }).forUpdate().first();
          making = makeHeldDue();
          await until(async () => (await waits())['held-2']?.[0] === 0);
          await trx('protection_rules').update({ changed: 'again' });
        });
        expect(await making).to.equal(3);
        expect((await waits())['held-1']).to.deep.equal([0, null]);
        expect(await read('protection_rules').pluck('changed')).to.deep.equal(['again']);
      });
    }

    if (kind === 'postgres') {
      it('that calling hours hold again are found by their keys, even if the database expects few due calls', async () => {
        const { write } = direct.storage.database;
        const due = instant(clock.now() + day);
        await addCalls('held', 2_000, { due_at: due, held_until: due });
        await write.raw('ANALYZE calls');
        await write('calls').update({ due_at: clock.now() });
        const keys = Array.from({ length: 500 }, (_, n): CallKeyPair => [tenants.campaign.id, `held-${n}`]);
        const plan: unknown = await write.transaction(async (trx) => {
          expect(await holdCalls(direct.storage.database, trx, keys, due, null)).to.equal(500);
          const { rows } = await trx.raw(`SELECT name FROM pg_prepared_statements WHERE statement LIKE '%held_until = %, held_for = %'`);
          return (await trx.raw(`EXPLAIN EXECUTE "${rows[0].name}" ('[[["c", "k"]], 0]')`)).rows;
        });
        expect(JSON.stringify(plan)).to.contain('calls_pkey').and.not.to.contain('calls_due');
      });
    }
  });
});
