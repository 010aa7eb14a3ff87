import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parseDatabaseUrl } from '../../core/storage/database.ts';
import { migrate } from '../../core/storage/migrations/index.ts';
import { openDatabase } from '../../core/storage/open.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { createWorld, openBeside } from '../support/world.ts';

const locate = (url: string) => {
  const location = parseDatabaseUrl(url);
  if (!location) throw new Error(`${url} names no database.`);
  return location;
};

describe('storage', () => {
  onEachDatabase((kind) => {
    it('is migrated once by many at once, and not again', async () => {
      const location = locate(await freshDatabase(kind));
      const databases = Array.from({ length: 4 }, () => openDatabase(location, 'make'));
      const applied = await Promise.all(databases.map(migrate));
      const again = await Promise.all(databases.map(migrate));
      for (const database of databases) await database.close();
      expect(applied.filter((names) => names.length > 0)).to.have.length(1);
      expect(again.flat()).to.deep.equal([]);
    });

    it('is left as it was by a migration that is cut off', async () => {
      const location = locate(await freshDatabase(kind));
      const database = openDatabase(location, 'make');
      const cutOff = database.write
        .transaction(async (trx) => {
          await trx.raw('CREATE TABLE half_done (id text)');
          throw new Error('cut off');
        })
        .catch((error: Error) => error.message);
      expect(await cutOff).to.equal('cut off');
      expect(await database.read.schema.hasTable('half_done')).to.equal(false);
      expect(await migrate(database)).to.have.length.above(0);
      await database.close();
    });

    it('refuses a database that a newer program has migrated', async () => {
      const database = openDatabase(locate(await freshDatabase(kind)), 'make');
      await migrate(database);
      await database.write('schema_migrations').insert({ name: '999-future', batch: 2, migration_time: new Date() });
      const refused = await migrate(database).catch((error: Error) => error.message);
      await database.close();
      expect(refused).to.match(/newer/);
    });

    it('rolls a change back together with its audit event', async () => {
      const clock = fakeClock();
      const beside = await openBeside(await freshDatabase(kind), clock);
      const world = await createWorld(beside.ports);
      const { read, write } = beside.storage.database;
      const count = async () => Number((await read('audit_events').count({ n: '*' }).first<{ n: number | string }>()).n);
      const before = await count();
      const event = {
        id: beside.ports.randomness.id(),
        at: clock.now(),
        actor: null,
        action: 'partner.added',
        home: null,
        address: 'local',
      } as const;
      const subject = { kind: 'partner', id: world.partner.id, name: 'again' } as const;
      const refused = await beside.ports.stores.tenancies.addPartner(world.partner, { ...event, subject }).catch(() => 'refused');
      expect([refused, await count()]).to.deep.equal(['refused', before]);
      await write.raw('SELECT 1');
      await beside.close();
    });

    it('does not let a last use bring a revoked key back', async () => {
      const clock = fakeClock();
      const database = await freshDatabase(kind);
      const beside = await openBeside(database, clock);
      const world = await createWorld(beside.ports);
      const { apiKeys, calls } = beside.ports.stores;
      const { account } = world.users;
      const home = { accountId: world.account.id, partnerId: world.partner.id };
      const event = { id: 'e1', at: clock.now(), actor: null, action: 'api-key.created', home, address: 'local' } as const;
      const subject = { kind: 'api-key', id: 'k1', name: 'K' } as const;
      const key = {
        id: 'k1',
        name: 'K',
        creator: account,
        home,
        createdAt: clock.now(),
        lastUsedAt: null,
        expiresAt: null,
        expiryTimeZone: null,
      };
      await apiKeys.create(key, 'd'.repeat(64), { ...event, subject });
      await calls.authorize({ digest: 'd'.repeat(64), campaignId: world.campaign.id, at: clock.millis() });
      await apiKeys.revoke('k1', { cancelQueuedCalls: false, at: clock.now() }, { ...event, id: 'e2', action: 'api-key.revoked', subject });
      await beside.close();
      const after = await openBeside(database, clock);
      const rows: unknown[] = await after.storage.database.read('api_keys');
      await after.close();
      expect(rows).to.deep.equal([]);
    });
  });

  it('never reads a whole PostgreSQL table for a batch, not even where the statement was prepared while the table was small', async () => {
    const database = await freshDatabase('postgres');
    const readThrough = async () => {
      // What a connection has counted is known once it is closed.
      const later = await openBeside(database);
      const tables = later.storage.database.read('pg_stat_user_tables').whereIn('relname', ['calls', 'api_keys', 'campaigns']);
      const counts: (number | string)[] = await tables.pluck('seq_scan');
      await later.close();
      return counts.reduce<number>((sum, count) => sum + Number(count), 0);
    };
    const first = await openBeside(database);
    const world = await createWorld(first.ports);
    await first.close();
    const before = await readThrough();

    const { ports, close } = await openBeside(database);
    const request = { digest: 'd'.repeat(64), campaignId: world.campaign.id, at: ports.clock.millis() };
    const none = { name: null, timeZone: null, variables: null, notBefore: null, notAfter: null };
    for (let n = 0; n < 20; n++) {
      const contactId = ports.randomness.id();
      await ports.stores.calls.place(request, { ...none, contactId, requestId: contactId, phone: '+493012345678' });
      await ports.stores.calls.cancel(request, { requestId: contactId });
      await ports.stores.calls.stands(request);
    }
    await close();
    expect(await readThrough()).to.equal(before);
  });

  it('asks prepared SQLite statements with all, never with get', () => {
    const folder = new URL('../../core/storage/', import.meta.url);
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const using = sources.filter((name) => /statement\.(get|each|run)\(/.test(readFileSync(new URL(name, folder), 'utf8')));
    expect(sources).to.include('sqlite.ts');
    expect(using).to.deep.equal([]);
  });
});
