import { expect } from 'chai';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import type { DialingStore, Provider } from '../../core/domain/ports/dialing.ts';
import { retentionStore } from '../../core/storage/calls/retention.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { insertCalls } from '../support/stored-calls.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const lease = 30_000;

describe("recording a call's outcome", () => {
  onEachDatabase((kind) => {
    let direct: DirectAccess;
    let tenants: Tenants;
    let store: DialingStore;

    before(async () => {
      direct = await openDirect(await freshDatabase(kind), fakeClock(new Date(now).toISOString()));
      tenants = await createTenants(direct.ports);
      store = direct.ports.stores.dialing;
    });
    beforeEach(() => direct.storage.database.write('calls').delete());
    after(() => direct.close());

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

    it('accepts one outcome of a call that was handed off, and sets its dialing time to the first attempt', async () => {
      const outcome = { state: 'completed', detail: 'Talked.', endedAt: instant(now + 9), durationSeconds: 42 } as const;
      await addCall('c');
      const report = (contactId: string) => store.reportOutcome(contactId, outcome, instant(now + 10));
      expect([await report('c'), await report('none')]).to.deep.equal([null, null]);
      await claimOne();
      await addCall('other');
      await claimOne();
      const other = await call('other');
      expect([await report('c'), await report('none')]).to.deep.equal(['recorded', null]);
      const ended = await call('c');
      expect(await call('other')).to.deep.equal(other);
      expect(ended).to.include({ state: 'completed', handoff: 'taken', due_at: null, detail: 'Talked.', dialed_at: now });
      expect(ended).to.include({ ended_at: instant(now + 9), duration_seconds: 42, told_late_at: null });
      expect(await store.reportOutcome('c', { ...outcome, state: 'busy' }, now)).to.equal('not-needed');
      expect(await call('c')).to.deep.equal(ended);
    });

    it('stores an end time before the hand-off as reported, but starts the retention period when the call was dialed', async () => {
      const { database } = direct.storage;
      const retention = retentionStore(database);
      const outcome = { state: 'completed', detail: null, endedAt: instant(now / 1_000), durationSeconds: null } as const;
      await addCall('c', { placed_at: instant(now - 9), not_before: now, phone: '+493012345679' });
      await claimOne();
      expect(await store.reportOutcome('c', outcome, instant(now + 10))).to.equal('recorded');
      expect(await call('c')).to.include({ ended_at: now / 1_000, dialed_at: now });
      expect(await retention.countErasable(now)).to.deep.equal({ erasable: 0, oldestEndedAt: now });
      expect(await retention.erase(now)).to.equal(0);
      const optOut = {
        id: 'entry',
        buildEvent: () =>
          auditEvent(direct.ports, operator, 'do-not-call.added', { kind: 'do-not-call', id: 'entry', name: '1 number' }, null),
      };
      expect(await store.reportOutcome('c', outcome, now, optOut)).to.equal('not-needed');
      const statements: { sql: string; bindings: (string | number)[] }[] = [];
      database.write.on('query', (query) => statements.push(query));
      expect(await retention.erase(instant(now + 1))).to.equal(1);
      const update = statements.find(({ sql }) => sql.includes('update'));
      const plan = await database.write.raw(
        `EXPLAIN ${kind === 'sqlite' ? 'QUERY PLAN ' : ''}${update?.sql.replaceAll(/\$\d+/g, '?')}`,
        update?.bindings ?? [],
      );
      expect(JSON.stringify(plan)).to.match(
        kind === 'sqlite' ? /USING INDEX calls_to_erase \(<expr><\?\)/ : /calls_to_erase .+Index Cond: \(GREATEST/,
      );
    });

    const late = { detail: 'Talked.', endedAt: instant(now + 9), durationSeconds: 42 };

    it('replaces the state unknown with the first outcome, however late, and accepts only one of two concurrent outcomes', async () => {
      await addCall('c');
      const fenced = await claimOne();
      const claimed = await claimOne({ at: instant(now + lease) });
      const unknown = { detail: 'The answer was lost.', endedAt: instant(now + lease), durationSeconds: null };
      await store.settle(claimed, { event: 'must-not-repeat', to: 'unknown', ...unknown });
      const states = ['completed', 'busy'] as const;
      const results = await Promise.all(states.map((state) => store.reportOutcome('c', { state, ...late }, instant(now + lease + 5))));
      expect(results.toSorted()).to.deep.equal(['not-needed', 'recorded']);
      const ended = await call('c');
      expect(ended).to.include({ state: states[results.indexOf('recorded')], detail: 'Talked.', duration_seconds: 42, due_at: null });
      expect(ended).to.include({ ended_at: instant(now + 9), dialed_at: now, told_late_at: instant(now + lease + 5) });
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
      for (const n of rows.keys()) expect(await store.reportOutcome(`c${n}`, { state: 'busy', ...late }, now)).to.equal('not-needed');
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
