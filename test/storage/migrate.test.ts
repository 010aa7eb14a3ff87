import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { type OpenedDatabase, parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { isMigrated, migrate } from '../../core/storage/migrate.ts';
import { openDatabase } from '../../core/storage/storage.ts';
import { emptyDatabase, freshDatabase, onEachDatabase, toUnreleased, unreleasedDatabase } from '../support/databases.ts';
import { openDirect } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe("a database's schema", () => {
  onEachDatabase((kind) => {
    const opened: OpenedDatabase[] = [];
    const open = async (url: string | Promise<string> = emptyDatabase(kind)) => {
      const database = openDatabase(parseDatabaseUrl(await url), 'make');
      opened.push(database);
      return database;
    };
    afterEach(async () => {
      for (const database of opened.splice(0)) await database.close();
    });

    for (const [what, prepare] of [
      ['created', async () => emptyDatabase(kind)],
      ['migrated', unreleasedDatabase],
    ] as const) {
      it(`is ${what} once, even by many processes at the same time`, async () => {
        const url = await prepare(kind);
        const databases = await Promise.all(Array.from({ length: 4 }, () => open(url)));
        const migrated = await Promise.all(databases.map((database) => migrate(database)));
        expect(migrated.filter((applied) => applied.length > 0)).to.deep.equal([['001-schema']]);
        expect((await Promise.all(databases.map((database) => migrate(database)))).flat()).to.deep.equal([]);
      });
    }

    if (kind === 'postgres')
      it('is found once another process, for which this one has waited, has created it', async () => {
        const url = await emptyDatabase(kind);
        const [waiting, other] = [await open(url), await open(url)];
        let migrated: Promise<string[]> | undefined;
        await other.write.transaction(async (trx) => {
          await other.lockMigrations(trx);
          // Only this table, because the server tells another connection at once of changes to as many as there are.
          await trx.raw('CREATE TABLE schema_migrations (name text PRIMARY KEY)');
          await trx.raw("INSERT INTO schema_migrations VALUES ('001-schema')");
          migrated = migrate(waiting);
          const asks = "state = 'idle in transaction' AND query LIKE '%pg_try_advisory_xact_lock%' AND datname = current_database()";
          await until(async () => (await other.query(`SELECT FROM pg_stat_activity WHERE ${asks}`)).length > 0);
        });
        expect(await migrated).to.deep.equal([]);
      });

    it('is refused if a newer release has migrated it, or it is older than the last one before the first release', async () => {
      const database = await open(freshDatabase(kind));
      const refused = () =>
        migrate(database).then(
          () => 'accepted',
          ({ code, message }) => `${code}: ${message}`,
        );
      await database.write('schema_migrations').insert({ name: '999-future' });
      expect(await refused()).to.equal(
        'conflict: The database was migrated by a newer version of Callkey (migrations: 999-future). Use that version or a later one.',
      );
      await database.write('schema_migrations').delete();
      await database.write('schema_migrations').insert(['001-core', '002-fewer-indexes'].map((name) => ({ name })));
      expect(await refused()).to.equal(
        'conflict: The database is from before the first release. Migrate it with the commit ebd8e993, then with this version.',
      );
    });

    it("doesn't match a core's if its calls were divided into shards after the core had started", async () => {
      await using direct = await openDirect(await freshDatabase(kind));
      expect(await direct.storage.isReady()).to.equal(true);
      await direct.storage.database.write('schema_migrations').insert({ name: 'shards-4' });
      expect(await direct.storage.isReady()).to.equal(false);
    });

    describe('of the last commit before the first release', () => {
      const revoked = { name: 'A key', creator_id: 'user', creator_name: 'Ada', partner_id: 'partner', revoked_at: instant(1) };
      let database: OpenedDatabase;
      beforeEach(async () => {
        database = await open(freshDatabase(kind));
        await database.write('revoked_api_keys').insert({ id: 'key', ...revoked });
        await toUnreleased(database);
      });
      const ids = (table: string) => database.read.from(table).pluck('id');

      it('becomes the same as a new one, and keeps its rows', async () => {
        expect(await isMigrated(database)).to.equal(false);
        expect(await migrate(database)).to.deep.equal(['001-schema']);
        expect(await describeSchema(database)).to.deep.equal(await describeSchema(await open(freshDatabase(kind))));
        expect(await isMigrated(database)).to.equal(true);
        expect(await database.read('revoked_api_keys').first('revoked_at')).to.deep.equal({ revoked_at: 1 });
      });

      it('is unchanged if its migration is interrupted, and can then be migrated', async () => {
        const before = await describeSchema(database);
        const cutOff = database.write.transaction(async (trx) => {
          await migrate({ ...database, write: trx });
          throw new Error('cut off');
        });
        expect(await cutOff.catch((error: Error) => error.message)).to.equal('cut off');
        expect(await describeSchema(database)).to.deep.equal(before);
        expect(await ids('retired_api_keys')).to.deep.equal(['key']);
        expect(await migrate(database)).to.deep.equal(['001-schema']);
        expect(await ids('revoked_api_keys')).to.deep.equal(['key']);
      });
    });
  });
});

/** Returns each column, index, trigger and check, in no particular order. */
async function describeSchema({ kind, query }: OpenedDatabase): Promise<string[]> {
  const rows = await query<{ what: string }>(kind === 'sqlite' ? ofSqlite : ofPostgres);
  return rows.map(({ what }) => what.replaceAll(/["`]|\s+/g, ' ').replaceAll(/ +/g, ' ')).toSorted();
}

const ofSqlite = `SELECT t.name || '.' || c.name || ' ' || c.type || c."notnull" || coalesce(c.dflt_value, '') || c.pk AS what
    FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
  UNION ALL SELECT sql FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL
  UNION ALL SELECT t.name || l.strict || l.wr FROM sqlite_master t JOIN pragma_table_list(t.name) l WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`;
const ofPostgres = `SELECT concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, attcollation, attnotnull, pg_get_expr(adbin, adrelid)) AS what
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
  UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND contype <> 'n'`;
