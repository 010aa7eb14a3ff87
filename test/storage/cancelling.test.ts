import { expect } from 'chai';
import { revokeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import { cancelQueued, countQueued } from '../../core/storage/calls/queued-calls.ts';
import type { Value } from '../../core/storage/engine/database.ts';
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

    const addKey = (id: string) =>
      direct.storage.database.write('api_keys').insert({
        ...{ id, digest: id, name: id, creator_id: tenants.users.account.id, creator_partner_id: tenants.partner.id },
        ...{ account_id: tenants.account.id, partner_id: tenants.partner.id, created_at: instant(1) },
      });
    const addCalls = (key: string, count: number, more: Partial<CallRow> = {}) => {
      const ids = Array.from({ length: count }, (_, n) => `${key}-${n}`);
      return insertCalls(direct, tenants, ids, { api_key_id: key, name: 'Ada', ...more });
    };
    const states = async (): Promise<Record<string, number>> => {
      const rows: string[] = await direct.storage.database.read('calls').pluck('state');
      return Object.fromEntries(Object.entries(Object.groupBy(rows, (state) => state)).map(([state, of]) => [state, of?.length ?? 0]));
    };
    const unfinished = (): Promise<string[]> =>
      direct.storage.database.read('retired_api_keys').whereNotNull('cancelling_since').pluck('id');
    const viewer = () => ({ ...tenants.users.account, tenancy: null });
    const revoke = (id: string) => revokeApiKey(direct.ports, { viewer: viewer(), actor: operator }, id, true);

    it('of a revoked key are cancelled in batches, so that others can write in between', async () => {
      await addKey('goes');
      await addKey('stays');
      await addCalls('goes', 95);
      await addCalls('stays', 5);
      const order: string[] = [];
      const { database: db } = direct.storage;
      const cancelling = cancelQueued(db, { ids: ['goes'] }, clock.now(), undefined, 10).then((count) => order.push(`cancelled ${count}`));
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
      expect(await cancelQueued(direct.storage.database, { ids: ['goes'] }, clock.now(), undefined, 10)).to.equal(52);
      expect(await states()).to.deep.equal({ cancelled: 52, queued: 25, dialing: 1 });
    });

    it('of a revoked key or deleted user are all cancelled before the request returns', async () => {
      await addKey('one');
      await addKey('two');
      await addCalls('one', 2_500);
      await addCalls('two', 10);
      await revoke('one');
      expect([await states(), await unfinished()]).to.deep.equal([{ cancelled: 2_500, queued: 10 }, []]);
      await deleteUser(direct.ports, operator, tenants.users.account, true);
      expect([await states(), await unfinished()]).to.deep.equal([{ cancelled: 2_510 }, []]);
    });

    it('of a key revoked by a process that then died are cancelled by the next core that starts', async () => {
      await addKey('goes');
      await addCalls('goes', 30);
      const { storage, ports } = direct;
      // The process dies after the key was revoked.
      storage.database.awaitWriters = () => Promise.reject(new Error('killed'));
      const failed = await revoke('goes').catch((error: Error) => error.message);
      await addCalls('goes-late', 1, { api_key_id: 'goes' });
      expect(failed).to.match(/^The key was revoked.*, but some queued calls couldn't be cancelled yet/);
      expect(await ports.stores.apiKeys.find({ kind: 'all' }, 'goes')).to.equal(null);
      expect(await unfinished()).to.deep.equal(['goes']);
      const core = await startCoreHere(database, { clock });
      await until(async () => (await unfinished()).length === 0);
      expect(await states()).to.deep.equal({ cancelled: 31 });
      await core.close();
    });

    it('are the only calls of a revoked key that are cancelled: calls being dialed or already ended stay unchanged', async () => {
      await addKey('goes');
      const others: Partial<CallRow>[] = [
        ...(['open', 'doubt', 'taken'] as const).map((handoff) => ({ state: 'dialing' as const, handoff })),
        ...(['completed', 'no_answer', 'busy', 'failed', 'unknown', 'lapsed'] as const).map((state) => ({
          state,
          due_at: null,
          ended_at: instant(1),
        })),
      ];
      for (const [n, other] of others.entries())
        await addCalls('goes', 1, { contact_id: `other-${n}`, request_id: `other-${n}`, ...other });
      const before: CallRow[] = await direct.storage.database.read('calls').orderBy('contact_id');
      await addCalls('goes', 2);
      await revoke('goes');
      await direct.ports.stores.apiKeys.finishCancelling(clock.now(), new AbortController().signal);
      expect(await direct.storage.database.read('calls').whereLike('contact_id', 'other-%').orderBy('contact_id')).to.deep.equal(before);
      expect(await states()).to.include({ cancelled: 2 });
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
      clock.advance({ seconds: 30 });
      await apiKeys.finishCancelling(clock.now(), new AbortController().signal);
      expect([await states(), await unfinished()]).to.deep.equal([{ dialing: 2, cancelled: 1 }, []]);
    });

    it('of a key revoked without cancelling stay queued', async () => {
      await addKey('goes');
      await addCalls('goes', 3);
      await revokeApiKey(direct.ports, { viewer: viewer(), actor: operator }, 'goes', false);
      await direct.ports.stores.apiKeys.finishCancelling(clock.now(), new AbortController().signal);
      expect(await states()).to.deep.equal({ queued: 3 });
    });

    it('of a revoked key are left to housekeeping if other writes take too long, and the response says so', async () => {
      await addKey('goes');
      await addCalls('goes', 1);
      direct.storage.database.awaitWriters = async () => false;
      const problem: unknown = await revoke('goes').catch((error: unknown) => error);
      expect(problem).to.include({ code: 'unavailable', retryAfter: 60 });
      expect(problem).to.have.nested.property('cause.message', "A statement that writes calls didn't finish in time.");
      const [left] = await direct.storage.database.read('retired_api_keys');
      expect(left).to.deep.equal({
        ...{ id: 'goes', name: 'goes', creator_id: tenants.users.account.id, creator_name: tenants.users.account.name },
        ...{ creator_partner_id: tenants.partner.id, account_id: tenants.account.id, partner_id: tenants.partner.id },
        ...{ retired_at: clock.now(), cancelling_since: clock.now() },
      });
    });

    if (kind === 'postgres') {
      it("of a revoked key are cancelled even if one of them is locked, and the locked call is cancelled once it's released", async () => {
        await addCalls('goes', 3);
        const { database: db } = direct.storage;
        let cancelling: Promise<number> | undefined;
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
      const { database: db } = direct.storage;
      const { awaitWriters } = db;
      db.awaitWriters = async () => false;
      await revoke('goes').catch(() => undefined);
      await addCalls('goes', 2);
      db.lanes.background.awaitWriters = async () => {
        await addCalls('goes-late', 1, { api_key_id: 'goes' });
        return awaitWriters();
      };
      expect(await direct.ports.stores.apiKeys.finishCancelling(clock.now(), new AbortController().signal)).to.equal(3);
      expect([await states(), await unfinished()]).to.deep.equal([{ cancelled: 3 }, []]);
    });

    if (kind === 'sqlite') {
      it("are found in the queue's index instead of among all calls, even after an ANALYZE", async () => {
        await addCalls('one', 50);
        await direct.storage.database.write.raw('ANALYZE');
        // Connections read the results of ANALYZE when they open.
        const analyzed = await openDirect(database, clock);
        const { database: db } = analyzed.storage;
        const asked: [sql: string, bindings: readonly Value[] | undefined][] = [];
        const query: typeof db.query = (sql, bindings, on) => {
          asked.push([sql, bindings]);
          return db.query(sql, bindings, on);
        };
        await countQueued({ ...db, query }, ['none', 'neither']);
        await cancelQueued({ ...db, query }, { ids: ['none', 'neither'] }, clock.now());
        const plans: string[] = [];
        for (const [sql, bindings] of asked) plans.push(JSON.stringify(await db.query(`EXPLAIN QUERY PLAN ${sql}`, bindings)));
        await analyzed.close();
        expect(plans).to.have.length(2);
        for (const plan of plans) expect(plan).to.contain('INDEX calls_due');
      });
    }

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
      const cancelling = cancelQueued(direct.storage.database, { ids: ['goes'] }, clock.now(), stop);
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
  });
});
