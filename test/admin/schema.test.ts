import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openDatabase } from '../../core/storage/storage.ts';
import { adminOn, runScript } from '../support/commands.ts';
import { emptyDatabase, freshDirectory, onEachDatabase, unreleasedDatabase } from '../support/databases.ts';

describe('DATABASE_URL', () => {
  it('is refused if it starts with sqlite:// and two slashes, and the error says what to write instead', async () => {
    const { code, stderr } = await adminOn('sqlite://callkey-by-mistake.db').admin(['partner', 'add', 'One']);
    expect(code).to.equal(2);
    expect(existsSync('/callkey-by-mistake.db')).to.equal(false);
    expect(stderr).to.match(/^error: DATABASE_URL: must be sqlite:.+sqlite:\.\/callkey\.db.+\n$/);
  });

  for (const args of [
    ['partner', 'add', 'One'],
    ['import', 'import.json'],
    ['migrate'],
    ['restore', 'import.json'],
    ['user', 'list'],
    ['check'],
    ['backup', 'b.db'],
  ]) {
    it(`must be set for "${args.join(' ')}", which creates nothing without it`, async () => {
      const directory = freshDirectory();
      writeFileSync(join(directory, 'import.json'), '{"partners":[]}');
      const { code, stderr } = await runScript('core/admin.ts', args, { directory, env: { DATABASE_URL: ' \r' } });
      expect([code, readdirSync(directory)], stderr).to.deep.equal([3, ['import.json']]);
      expect(stderr).to.match(
        /^error: The database .+ doesn't exist\. Set DATABASE_URL to the database to use, or start a core first\.\n$/,
      );
    });
  }
});

describe('the schema', () => {
  onEachDatabase((kind) => {
    let url: string;
    beforeEach(async () => {
      url = await emptyDatabase(kind);
    });
    async function withDatabase<Result>(work: (database: ReturnType<typeof openDatabase>) => Promise<Result>): Promise<Result> {
      const database = openDatabase(parseDatabaseUrl(url), 'refuse');
      return work(database).finally(() => database.close());
    }

    it('is updated by migrate, which lists the migrations that it applied, or says that there was nothing to do', async () => {
      url = await unreleasedDatabase(kind);
      const { admin, json } = adminOn(url);
      const first = await admin(['migrate']);
      expect([first.code, first.stdout]).to.deep.equal([0, 'Applied 001-schema.\n']);
      expect((await admin(['migrate'])).stdout).to.equal('Nothing to do: the schema is up to date.\n');
      expect(await json('migrate')).to.deep.equal({ migrations: [] });
    });

    it("isn't changed by other commands if it's out of date, and they say which command to run", async () => {
      url = await unreleasedDatabase(kind);
      const file = join(freshDirectory(), 'import.json');
      writeFileSync(file, '{"partners":[{"externalId":"p","name":"P"}]}');
      for (const args of [
        ['partner', 'add', 'One'],
        ['import', file],
        ['user', 'list'],
        ['key', 'list'],
        ['retention', 'run'],
      ]) {
        const { code, stderr } = await adminOn(url).admin(args);
        expect([code, stderr.split('\n').length], args.join(' ')).to.deep.equal([4, 2]);
        expect(stderr).to.contain('schema is out of date').and.to.contain('npm run admin -- migrate');
      }
      expect(await withDatabase(({ read }) => read('schema_migrations').where({ name: '001-core' }))).to.have.length(1);
      expect((await adminOn(url).admin(['check'])).stdout).to.match(/^FAIL {3}schema: missing 001-schema: .+ migrate/m);
    });

    it("is refused and stays unchanged if it's from a newer release", async () => {
      const { admin, json } = adminOn(url);
      await json('migrate');
      await withDatabase(({ write }) => write('schema_migrations').insert({ name: '999-later' }));
      for (const args of [['user', 'list'], ['migrate']]) {
        const { code, stderr } = await admin(args);
        expect([code, stderr.split('\n').length]).to.deep.equal([4, 2]);
        expect(stderr).to.contain('migrated by a newer version of Callkey');
      }
      expect((await admin(['check'])).stdout).to.contain('FAIL   schema: The database was migrated by a newer version of Callkey');
    });

    it('is created in a new database by commands that write, but not by commands that only read', async () => {
      const { admin, json } = adminOn(url);
      const { code, stderr } = await admin(['user', 'list']);
      if (kind === 'sqlite')
        expect([code, stderr.includes("doesn't exist. Set DATABASE_URL"), existsSync(url.slice(7))]).to.deep.equal([3, true, false]);
      else expect([code, stderr.includes('The database is empty')]).to.deep.equal([4, true]);
      await json('partner', 'add', 'One');
      expect((await json('check')).ok).to.equal(true);
    });
  });
});
