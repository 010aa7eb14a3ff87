import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type pg from 'pg';
import { revokeApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { cancelCall, placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Viewer } from '../../core/domain/model.ts';
import { createKeyUse } from '../../core/storage/keys/key-use.ts';
import { fakeClock } from '../support/clock.ts';
import { connected } from '../support/core.ts';
import { freshDatabase, itOnPostgres, onEachDatabase } from '../support/databases.ts';
import { startFront } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { databaseWithTenants, insertCalls, insertKeys, openDirect, tenantsForEach, tenantsOnce, toCaller } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('storage', () => {
  itOnPostgres('repeats a change that ended in a deadlock', async () => {
    await using direct = await openDirect(await freshDatabase('postgres'));
    const { write } = direct.storage.database;
    const bothLocked = Promise.withResolvers<void>();
    let locked = 0;
    const lock = (first: string, second: string) =>
      write.transaction(async (trx) => {
        await trx(first).forUpdate();
        if (++locked === 2) bothLocked.resolve();
        await bothLocked.promise;
        await trx(second).forUpdate();
      });
    await Promise.all([lock('clock', 'audit_chain'), lock('audit_chain', 'clock')]);
    // If the repeated change locks its first row before the other one has woken up, there's another deadlock.
    expect(locked).to.be.at.least(3);
  });

  itOnPostgres('understands errors of a server in another language', async () => {
    const url = new URL(await freshDatabase('postgres'));
    const inSwedish = (bytes: Buffer) => Buffer.from(bytes.toString('latin1').replaceAll('SERROR\0V', 'SFEL\0x\0V'), 'latin1');
    const front = await startFront(url.href, inSwedish);
    await using direct = await openDirect(front.toThrough(url.href));
    const { query } = direct.storage.database;
    const session = async () => (await query<{ pid: number }>('SELECT pg_backend_pid() AS pid'))[0]?.pid;
    const before = await session();
    const error: unknown = await query('SELECT 1/0').catch((reason: unknown) => reason);
    expect(error).to.include({ code: '22012', severity: 'ERROR' });
    expect(await session()).to.equal(before);
    await front.close();
  });

  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsOnce(kind);
    it('rolls back a change together with its audit event', async () => {
      const { read, write } = direct.storage.database;
      const count = async () => Number((await read('audit_events').count({ n: '*' }).first<{ n: number | string }>()).n);
      const before = await count();
      const event = {
        id: direct.ports.randomness.id(),
        at: direct.ports.clock.now(),
        actor: null,
        action: 'partner.added',
        owningScope: null,
        address: 'local',
      } as const;
      const subject = { kind: 'partner', id: tenants.partner.id, name: 'again' } as const;
      const refused = await direct.ports.stores.directory
        .create('partner', tenants.partner, null, { ...event, subject })
        .catch(() => 'refused');
      expect([refused, await count()]).to.deep.equal(['refused', before]);
      await write.raw('SELECT 1');
    });
  });

  describe('a key revoked on PostgreSQL while it places a call', () => {
    const { direct, tenants } = tenantsForEach('postgres');
    let stuck: pg.Client;
    beforeEach(async () => {
      stuck = await connected(direct.database);
    });
    afterEach(() => stuck.end());

    /**
     * Places a call whose batch waits for another transaction, which has inserted a call with the same request ID. Calls `leave` while the
     * batch waits, and then rolls that transaction back.
     */
    async function placeWhile(leave: (viewer: Viewer, keyId: string) => Promise<unknown>): Promise<{ placed: boolean; states: string[] }> {
      const { ports, storage } = direct;
      const { users, campaign } = tenants;
      const viewer = { ...users.account, tenancy: null };
      const { id, keyValue } = await createKeyOn({ direct }, users.account, 'K');
      const isThere = async (condition: string) =>
        (
          await storage.database
            .read('pg_stat_activity')
            .whereRaw(`datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`)
        ).length > 0;
      // PostgreSQL lets the batch wait for two seconds, in which `leave` shouldn't have to open a connection.
      const { id: other } = await createKeyOn({ direct }, users.account, 'L');
      await Promise.all([isThere('true'), revokeApiKey(ports, { viewer, actor: { who: viewer, address: 'local' } }, other, true)]);
      const input = { requestId: 'one', contact: { phone: '+493012345678' } };
      const columns = 'campaign_id, account_id, contact_id, api_key_id, state, placed_at, request_id';
      await stuck.query('BEGIN');
      await stuck.query(`INSERT INTO calls (${columns}) VALUES ($1, '', '', '', '', 0, 'one')`, [campaign.id]);
      const placing = placeCall(ports, toCaller(toDigest(keyValue)), campaign.id, input);
      await until(() => isThere(`wait_event = 'transactionid'`));
      let hasLeft = false;
      const leaving = leave(viewer, id).then(() => {
        hasLeft = true;
      });
      await until(async () => hasLeft || (await isThere(`query LIKE '%virtualtransaction%'`)));
      await stuck.query('ROLLBACK');
      const { requestId } = await placing;
      await leaving;
      const states: string[] = await storage.database.read('calls').pluck('state');
      return { placed: requestId === 'one', states };
    }

    itOnPostgres('also has that call cancelled if its queued calls are cancelled', async () => {
      const revoked = await placeWhile((viewer, id) =>
        revokeApiKey(direct.ports, { viewer, actor: { who: viewer, address: 'local' } }, id, true),
      );
      expect(revoked).to.deep.equal({ placed: true, states: ['cancelled'] });
    });

    itOnPostgres('also has that call cancelled if its creator is deleted and queued calls are cancelled', async () => {
      const { ports } = direct;
      const deleted = await placeWhile((viewer) => deleteUser(ports, operator, viewer, true));
      expect(deleted).to.deep.equal({ placed: true, states: ['cancelled'] });
    });

    itOnPostgres("leaves that call queued if the revocation doesn't ask to cancel queued calls", async () => {
      const revoked = await placeWhile((viewer, id) =>
        revokeApiKey(direct.ports, { viewer, actor: { who: viewer, address: 'local' } }, id, false),
      );
      expect(revoked).to.deep.equal({ placed: true, states: ['queued'] });
    });
  });

  describe('a locked call', () => {
    const { direct, tenants } = tenantsForEach('postgres');
    const whileLocked = async <Result>(doing: () => Promise<Result>) => {
      const holder = await connected(direct.database);
      await holder.query(`BEGIN; SELECT 1 FROM calls WHERE request_id = 'locked' FOR UPDATE`);
      return doing().finally(() => holder.end());
    };

    itOnPostgres("doesn't hold up a claim of the other due calls", async () => {
      await insertCalls(direct, tenants, ['a', 'locked', 'z'], { placed_at: instant(1) });
      const now = direct.ports.clock.now();
      const claimed = await whileLocked(() => direct.ports.stores.dialing.claim(10, 'simulated', now, instant(now + 30_000)));
      expect(claimed.map(({ contactId }) => contactId).toSorted()).to.deep.equal(['a', 'z']);
    });

    itOnPostgres("doesn't prevent cancelling the other calls of a batch", async () => {
      const { keyValue } = await createKeyOn({ direct }, tenants.users.account, 'K');
      const ids = ['a', 'locked', 'z'];
      await insertCalls(direct, tenants, ids);
      const cancel = (requestId: string) => cancelCall(direct.ports, toCaller(toDigest(keyValue)), tenants.campaign.id, { requestId });
      const settled = await whileLocked(() => Promise.allSettled(ids.map(cancel)));
      expect(settled.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    });
  });

  itOnPostgres('writes the use of keys on two cores in the same order, so that no use is lost', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const clock = fakeClock();
    const errors: unknown[] = [];
    const direct = await openDirect(database, clock);
    const ids = Array.from({ length: 200 }, (_, n) => `key-${n}`);
    await insertKeys(direct, tenants, ids);
    const digests = ids.map(toDigest);
    for (let round = 1; round <= 20; round++) {
      const cores = [digests, digests.toReversed()].map((order) => {
        const use = createKeyUse(direct.storage.database, clock, (error) => errors.push(error));
        for (const digest of order) use.note({ digest, at: instant(clock.now() + round), address: '192.0.2.1' }, 'placed');
        return use;
      });
      await Promise.all(cores.map((core) => core.close()));
    }
    const counted: number[] = await direct.storage.database.read('api_key_usage').pluck('placed');
    await direct.close();
    expect(errors).to.deep.equal([]);
    expect(counted).to.deep.equal(digests.map(() => 40));
  });

  itOnPostgres('never scans a whole table for a batch, even if the statement was prepared while the table was small', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const readThrough = async () => {
      // A connection's statistics are available once it's closed.
      const later = await openDirect(database);
      const tables = later.storage.database.read('pg_stat_user_tables').whereIn('relname', ['calls', 'api_keys', 'campaigns']);
      const counts: (number | string)[] = await tables.pluck('seq_scan');
      await later.close();
      return counts.reduce<number>((sum, count) => sum + Number(count), 0);
    };
    const before = await readThrough();
    const { ports, close } = await openDirect(database);
    const request = { ...toCaller('d'.repeat(64)), campaignId: tenants.campaign.id, at: ports.clock.now() };
    const none = { name: null, timeZone: null, variables: null, notBefore: null, notAfter: null };
    for (let n = 0; n < 20; n++) {
      const contactId = ports.randomness.id();
      await ports.stores.calls.place(request, { ...none, contactId, requestId: contactId, phone: '+493012345678' });
      await ports.stores.calls.cancel(request, { requestId: contactId });
      await ports.stores.calls.findActive(request);
    }
    await close();
    expect(await readThrough()).to.equal(before);
  });

  it('runs a prepared SQLite statement with all(), and never with get(), if it returns rows', () => {
    const folder = new URL('../../core/storage/', import.meta.url);
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const using = sources.filter((name) => /statement\.(get|each)\(/.test(readFileSync(new URL(name, folder), 'utf8')));
    expect(sources).to.include('engine/sqlite/sqlite.ts');
    expect(using).to.deep.equal([]);
  });
});
