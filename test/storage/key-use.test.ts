import { mock } from 'node:test';
import { expect } from 'chai';
import { createApiKey, revokeApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant, type Millis } from '../../core/domain/instant.ts';
import type { Viewer } from '../../core/domain/model.ts';
import type { BatchRows } from '../../core/storage/engine/database.ts';
import { createKeyUse } from '../../core/storage/keys/key-use.ts';
import { fakeClock } from '../support/clock.ts';
import { onEachDatabase, recordStatements } from '../support/databases.ts';
import { tenantsOnce } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe("a key's use", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const { direct, tenants } = tenantsOnce(kind, clock);
    let viewer: Viewer;
    let key: { id: string; digest: string };
    beforeEach(async () => {
      clock.set('2026-11-21T09:14:59.999Z');
      viewer = { ...tenants.users.account, tenancy: null };
      for (const table of ['api_key_usage', 'api_key_addresses', 'api_keys'] as const) await direct.storage.database.write(table).delete();
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'UTC' } as const;
      const { apiKey, keyValue } = await createApiKey(direct.ports, { viewer, actor: operator.actor }, input);
      key = { id: apiKey.id, digest: toDigest(keyValue) };
    });
    afterEach(() => mock.timers.reset());

    const written = async () => (await direct.ports.stores.apiKeys.usage(key.id, instant(0))).toSorted((a, b) => a.quarterAt - b.quarterAt);
    const sumBy = <Name extends string>(rows: readonly Record<Name, number>[], name: Name) => rows.reduce((sum, row) => sum + row[name], 0);
    const lastUsedAt = async () => (await direct.storage.database.read('api_keys').first())?.last_used_at;
    const by = (digest: string, at: Millis) => ({ digest, at, address: '192.0.2.1' });
    const unexpected = (error: unknown) => {
      throw error;
    };

    it('is counted in the quarter-hour when the request arrived, together with the use on other cores', async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      const other = createKeyUse(direct.storage.database, clock, unexpected);
      use.note(by(key.digest, clock.now()), 'placed');
      clock.advance({ milliseconds: 1 });
      for (const did of ['placed', 'cancelled', 'placed', undefined] as const) use.note(by(key.digest, clock.now()), did);
      for (const did of ['placed', 'cancelled'] as const) other.note(by(key.digest, clock.now()), did);
      other.noteRefused(key.digest, clock.now());
      for (const core of [use, other]) await core.close();
      expect(await written()).to.deep.equal([
        { quarterAt: Date.parse('2026-11-21T09:00:00.000Z'), placed: 1, cancelled: 0, refused: 0 },
        { quarterAt: Date.parse('2026-11-21T09:15:00.000Z'), placed: 3, cancelled: 2, refused: 1 },
      ]);
    });

    for (const failing of ['last_used_at', 'api_key_usage']) {
      it(`is kept while ${failing} can't be written, and is then written once, together with newer use`, async () => {
        const errors: unknown[] = [];
        let isDown = true;
        const { database } = direct.storage;
        const prepare = <Found extends object>(sql: string, mode: 'read' | 'read back' | 'write') => {
          const run = database.prepare<Found>(sql, mode);
          return async (rows: BatchRows) => {
            if (!isDown || !sql.includes(failing)) return run(rows);
            clock.advance({ seconds: 1 });
            use.note(by(key.digest, clock.now()), 'cancelled');
            throw new Error('down');
          };
        };
        const use = createKeyUse({ ...database, prepare }, clock, (error) => errors.push(error));
        for (const did of ['placed', 'cancelled'] as const) use.note(by(key.digest, clock.now()), did);
        await use.close();
        expect([errors.length, await written(), use.lag()]).to.deep.equal([1, [], 1_000]);
        const latest = clock.now();
        isDown = false;
        use.note(by(key.digest, instant(latest - 1_000)), 'placed');
        for (let writing = 0; writing < 2; writing++) {
          await use.close();
          const quarters = await written();
          expect([sumBy(quarters, 'placed'), sumBy(quarters, 'cancelled'), await lastUsedAt()]).to.deep.equal([2, 2, latest]);
        }
      });
    }

    it("that isn't written yet is reported with the age of its oldest entry", async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      expect(use.lag()).to.equal(0);
      use.note(by(key.digest, clock.now()));
      clock.advance({ milliseconds: 5 });
      use.note(by('another', clock.now()));
      use.note(by(key.digest, clock.now()));
      clock.advance({ milliseconds: 2 });
      expect(use.lag()).to.equal(7);
      await use.close();
      expect(use.lag()).to.equal(0);
    });

    it('has the latest time of all requests, whatever their order, but never an earlier time than another core has written', async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      for (const at of [5, 9, 7]) use.note(by(key.digest, instant(at)));
      await use.close();
      expect(await lastUsedAt()).to.equal(9);
      use.note(by(key.digest, instant(8)));
      await use.close();
      expect([await lastUsedAt(), await written()]).to.deep.equal([9, []]);
    });

    it('is written on the writing connection, and without counts if the request placed and cancelled nothing', async () => {
      const { database, ran } = recordStatements(direct.storage.database);
      const use = createKeyUse(database, clock, unexpected);
      use.note(by(key.digest, clock.now()));
      await use.close();
      expect(ran).to.deep.equal(['write UPDATE api_keys', 'write INSERT INTO']);
      use.note(by(key.digest, clock.now()), 'placed');
      await use.close();
      expect(ran.slice(2)).to.deep.equal(['write UPDATE api_keys', 'write INSERT INTO', 'write INSERT INTO']);
    });

    it('includes the address of the latest accepted request, and only counts refused ones', async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      use.noteRefused(key.digest, clock.now());
      await use.close();
      const row = () => direct.storage.database.read('api_keys').first('last_used_at', 'last_used_address');
      expect(await row()).to.deep.equal({ last_used_at: null, last_used_address: null });
      use.note({ ...by(key.digest, clock.now()), address: '192.0.2.9' });
      use.note(by(key.digest, instant(clock.now() - 1)));
      use.noteRefused(key.digest, clock.now());
      await use.close();
      expect(await row()).to.deep.equal({ last_used_at: clock.now(), last_used_address: '192.0.2.9' });
      expect(await written()).to.deep.equal([{ quarterAt: Date.parse('2026-11-21T09:00:00.000Z'), placed: 0, cancelled: 0, refused: 2 }]);
    });

    it('includes the latest ten addresses', async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      for (const n of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 12])
        use.note({ digest: key.digest, at: instant(clock.now() + n), address: `192.0.2.${n}` });
      await use.close();
      const addresses: string[] = await direct.storage.database.read('api_key_addresses').pluck('address');
      expect(addresses).to.have.members([3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((n) => `192.0.2.${n}`));
    });

    it('is no longer written after the core has closed', async () => {
      mock.timers.enable({ apis: ['setInterval'] });
      const { database, ran } = recordStatements(direct.storage.database);
      const use = createKeyUse(database, clock, unexpected);
      await use.close();
      use.note(by(key.digest, clock.now()));
      mock.timers.tick(10_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(ran).to.deep.equal([]);
    });

    it('is written within ten seconds, and then at most every 45 seconds', async () => {
      mock.timers.enable({ apis: ['setInterval'] });
      const { database, ran } = recordStatements(direct.storage.database);
      const use = createKeyUse(database, clock, unexpected);
      const first = clock.now();
      use.note(by(key.digest, first));
      mock.timers.tick(10_000);
      await until(async () => (await lastUsedAt()) === first);
      clock.advance({ seconds: 44 });
      const second = clock.now();
      use.note(by(key.digest, second));
      // The use of another key is written now. Its second statement shows that the first one has ended.
      use.note(by('another', second));
      mock.timers.tick(10_000);
      await until(() => ran.length === 4);
      expect(await lastUsedAt()).to.equal(first);
      clock.advance({ seconds: 1 });
      mock.timers.tick(10_000);
      await until(async () => (await lastUsedAt()) === second);
      await use.close();
    });

    it('is still written after the clock was set back', async () => {
      mock.timers.enable({ apis: ['setInterval'] });
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      for (const count of [1, 2]) {
        use.note(by(key.digest, clock.now()), 'placed');
        mock.timers.tick(10_000);
        await until(async () => (await written()).length === count);
        clock.advance({ hours: -1 });
      }
      await use.close();
    });

    it("is dropped if the key is revoked, and doesn't restore the key", async () => {
      const use = createKeyUse(direct.storage.database, clock, unexpected);
      use.note(by(key.digest, clock.now()), 'placed');
      await revokeApiKey(direct.ports, { viewer, actor: operator.actor }, key.id, false);
      await use.close();
      expect(await written()).to.deep.equal([]);
      expect(await direct.storage.database.read('api_keys')).to.deep.equal([]);
    });
  });
});
