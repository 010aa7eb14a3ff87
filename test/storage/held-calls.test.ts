import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { type CallKeyPair, postpone } from '../../core/storage/dialing/queue-changes.ts';
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
    const addCalls = (key: string, count: number, more: Partial<CallRow> = {}) => {
      const ids = Array.from({ length: count }, (_, n) => `${key}-${n}`);
      return insertCalls(direct, tenants, ids, { api_key_id: key, name: 'Ada', ...more });
    };

    /** Changes the calling hours of an account or campaign, as the admin command does. */
    const changeHours = (scope: 'account' | 'campaign' = 'account') => {
      const { account, partner } = tenants;
      const owner = { accountId: account.id, partnerId: partner.id };
      return setHours(direct.ports, operator, { kind: scope, ...tenants[scope], owner }, []);
    };
    const makeHeldDue = () => direct.ports.stores.protection.makeHeldDue(clock.now(), new AbortController().signal);
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

    it('that calling hours hold are due when a core starts, if the hours were changed while none was running', async () => {
      const due = instant(clock.now() + day);
      await addCalls('held', 1, { due_at: due, held_until: due });
      await changeHours();
      const core = await startCoreHere(database, { clock, environment: { DIALER: 'off' } });
      await until(async () => (await waits())['held-0']?.[0] === 0);
      await core.close();
    });

    it('that the previous calling hours are just holding are due, too, once they have been placed', async () => {
      const { background } = direct.storage.database.lanes;
      const { awaitWriters } = background;
      background.awaitWriters = async () => {
        const due = instant(clock.now() + day);
        await addCalls('held', 1, { due_at: due, held_until: due });
        return awaitWriters();
      };
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
          await trx('protection_rules').update({ hours_changed: 'again' });
        });
        expect(await making).to.equal(3);
        expect((await waits())['held-1']).to.deep.equal([0, null]);
        expect(await read('protection_rules').pluck('hours_changed')).to.deep.equal(['again']);
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
        const asked: { sql: string; bindings: readonly Value[] }[] = [];
        await write.transaction(async (trx) => {
          trx.on('query', (query) => asked.push(query));
          expect(await postpone(trx, keys, due)).to.equal(500);
        });
        const [{ sql, bindings } = { sql: '', bindings: [] }] = asked.filter((query) => query.sql.startsWith('update'));
        const { rows } = await write.raw(`EXPLAIN ${sql.replace(/\$\d+/g, '?')}`, [...bindings]);
        expect(JSON.stringify(rows)).to.contain('calls_pkey').and.not.to.contain('calls_due');
      });
    }
  });
});
