import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { endOverdueCalls, eraseOldContacts } from '../../core/domain/calls/retention.ts';
import { clockSkew } from '../../core/domain/deadlines.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import { endOverdueBatch, lapseBatch, markAllDue } from '../../core/storage/dialing/queue-changes.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { insertCalls } from '../support/stored-calls.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;

describe('queued calls', () => {
  onEachDatabase((kind) => {
    let database: string;
    let clock: ReturnType<typeof fakeClock>;
    let direct: DirectAccess;
    let tenants: Tenants;
    beforeEach(async () => {
      clock = fakeClock();
      database = await freshDatabase(kind);
      direct = await openDirect(database, clock);
      tenants = await createTenants(direct.ports);
    });
    afterEach(() => direct.close());
    const addCalls = (key: string, count: number, more: Partial<CallRow> = {}) => {
      const ids = Array.from({ length: count }, (_, n) => `${key}-${n}`);
      return insertCalls(direct, tenants, ids, { api_key_id: key, name: 'Ada', ...more });
    };
    const states = async (): Promise<Record<string, number>> => {
      const rows: string[] = await direct.storage.database.read('calls').pluck('state');
      return Object.fromEntries(Object.entries(Object.groupBy(rows, (state) => state)).map(([state, of]) => [state, of?.length ?? 0]));
    };

    it('lapse after their notAfter even if the dialer is off, and end at their notAfter even if a core notices later', async () => {
      const notAfter = clock.now() + 1_000;
      await addCalls('past', 2, { not_after: instant(notAfter) });
      await addCalls('past-between-tries', 1, { not_after: instant(notAfter), state: 'dialing', handoff: 'retry', provider: 'webhook' });
      await addCalls('later', 1, { not_after: instant(notAfter + day) });
      clock.advance({ hours: 1 });
      const core = await startCoreHere(database, { clock, environment: { DIALER: 'off' } });
      await until(async () => (await states())['lapsed'] === 3);
      await core.close();
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

    it('wait as long as the provider or calling hours require if the clock was right', async () => {
      const due = instant(clock.now() + day);
      const retried = { state: 'dialing', handoff: 'retry', provider: 'webhook', due_at: due } as const;
      await addCalls('asked-to-wait', 1, { ...retried, not_after: due });
      await addCalls('retried-and-held', 1, { ...retried, held_until: due });
      await addCalls('held', 1, { due_at: due, held_until: due });
      expect(await direct.ports.stores.dialing.recoverFromClockStep(clock.now(), false)).to.equal(0);
    });

    it('without a notAfter are retried within an hour, even if no core has noticed that its clock was fast', async () => {
      const due = instant(clock.now() + day);
      await addCalls('refused', 1, { state: 'dialing', handoff: 'retry', provider: 'webhook', due_at: due });
      expect(await direct.ports.stores.dialing.recoverFromClockStep(clock.now(), false)).to.equal(1);
      expect(await direct.storage.database.read('calls').pluck('due_at')).to.deep.equal([clock.now()]);
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
      const { write } = direct.storage.database;
      const now = clock.now();
      for (const [change, call] of [
        [lapseBatch, { not_after: instant(now - 1) }],
        [endOverdueBatch, { due_at: instant(1) }],
      ] as const) {
        await write('calls').delete();
        await addCalls('one', 2, call);
        await addCalls('between-tries', 1, { ...call, state: 'dialing', handoff: 'retry', provider: 'webhook' });
        expect([await change(write, now, 2), await change(write, now, 2), await change(write, now, 2)]).to.deep.equal([2, 1, 0]);
      }
    });

    it('that a provider temporarily refused lapse if no dialer retries them for thirty days', async () => {
      const due = clock.now();
      await addCalls('refused', 2, { state: 'dialing', handoff: 'retry', provider: 'webhook' });
      clock.advance({ days: 30, milliseconds: 1 });
      expect(await endOverdueCalls(direct.ports.stores.dialing, clock)).to.equal(2);
      const ended: object[] = await direct.storage.database.read('calls').select('state', 'ended_at');
      expect(ended).to.deep.equal([1, 2].map(() => ({ state: 'lapsed', ended_at: instant(due + 30 * day) })));
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
      const core = await startCoreHere(database, { clock, environment: { RETENTION_DAYS: '60' } });
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
      expect(await eraseOldContacts(direct.ports, operator, 60)).to.equal(0);
      clock.advance({ milliseconds: 1 });
      expect(await eraseOldContacts(direct.ports, operator, 60)).to.equal(1);
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
  });
});
