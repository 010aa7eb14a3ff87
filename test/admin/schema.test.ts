import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type DatabaseLocation, parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { migrate } from '../../core/storage/migrate.ts';
import { openDatabase } from '../../core/storage/storage.ts';
import { refusedPort } from '../../scripts/support/postgres.ts';
import { adminOn, runScript } from '../support/commands.ts';
import { emptyDatabase, freshDatabase, freshDirectory, onEachDatabase, toUnreleased } from '../support/databases.ts';
import { skip } from '../support/suites.ts';

describe('DATABASE_URL', () => {
  for (const [url, filename] of [
    ['sqlite:rel.db', join(process.cwd(), 'rel.db')],
    ['sqlite:./rel.db', join(process.cwd(), 'rel.db')],
    ['sqlite:/abs.db', '/abs.db'],
    ['sqlite:///abs.db', '/abs.db'],
  ] as const)
    it(`names the file ${filename.replace(process.cwd(), '.')} with ${url}`, () => {
      expect(parseDatabaseUrl(url)).to.deep.equal({ kind: 'sqlite', filename });
    });

  for (const url of [
    'sqlite://rel.db',
    'sqlite://host/rel.db',
    'sqlite::memory:',
    'sqlite:',
    'sqlite:/a.db ',
    'sqlite: /a.db',
    'sqlite:"/a.db"',
  ])
    it(`can't be ${url}`, () => expect(() => parseDatabaseUrl(url)).to.throw(/^must be sqlite: followed by a file path/));

  for (const url of ['sqlite:/a.db?mode=rwc', 'sqlite:/a.db#x', 'sqlite:/a%20b.db', 'sqlite:/a.db\r'])
    it(`can't be ${JSON.stringify(url)}, which would create another file`, () =>
      expect(() => parseDatabaseUrl(url)).to.throw(/without \?, #, %/));

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
    let location: DatabaseLocation;
    beforeEach(async () => {
      url = await emptyDatabase(kind);
      location = parseDatabaseUrl(url);
    });
    async function withDatabase(work: (database: ReturnType<typeof openDatabase>) => Promise<unknown>): Promise<void> {
      const database = openDatabase(location, 'make');
      await work(database).finally(() => database.close());
    }
    const migrateToEarlier = () =>
      withDatabase(async (database) => {
        await migrate(database);
        await toUnreleased(database);
      });
    const applied = async () => {
      let names: string[] = [];
      await withDatabase(async ({ read }) => {
        names = await read('schema_migrations').pluck('name');
      });
      return names;
    };

    it('is updated by migrate, which lists the migrations that it applied, or says that there was nothing to do', async () => {
      await migrateToEarlier();
      const { admin, json } = adminOn(url);
      const first = await admin(['migrate']);
      expect([first.code, first.stdout]).to.deep.equal([0, 'Applied 001-schema.\n']);
      expect((await admin(['migrate'])).stdout).to.equal('Nothing to do: the schema is up to date.\n');
      expect(await json('migrate')).to.deep.equal({ migrations: [] });
    });

    it("isn't changed by other commands if it's out of date, and they say which command to run", async () => {
      await migrateToEarlier();
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
      expect(await applied()).to.include('001-core');
      expect((await adminOn(url).admin(['check'])).stdout).to.match(/^FAIL {3}schema: missing 001-schema: .+ migrate/m);
    });

    it("is refused and stays unchanged if it's from a newer release", async () => {
      const { admin, json } = adminOn(url);
      await json('migrate');
      await withDatabase(({ write }) => write('schema_migrations').insert({ name: '999-later' }));
      for (const args of [['partner', 'add', 'One'], ['user', 'list'], ['migrate']]) {
        const { code, stderr } = await admin(args);
        expect([code, stderr]).to.deep.equal([
          4,
          'error: The database was migrated by a newer version of Callkey (migrations: 999-later). Use that version or a later one.\n',
        ]);
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

describe("the error for a database that doesn't work", () => {
  /** @returns the error, which must be one line without a stack trace or password */
  async function readError(url: string, args = ['user', 'list']): Promise<string> {
    const { code, stdout, stderr } = await adminOn(url).admin(args);
    expect([code, stdout, stderr.split('\n').length], stderr).to.deep.equal([5, '', 2]);
    expect(stderr).not.to.match(/hunter2|node:|\.ts:|select /i);
    return stderr;
  }

  it("says that the database doesn't exist", async () => {
    const url = Object.assign(new URL(await freshDatabase('postgres')), { pathname: '/no_such_database' }).href;
    expect(await readError(url)).to.contain('database "no_such_database" does not exist');
  });

  it('says that the password was refused', async () => {
    const url = Object.assign(new URL(await freshDatabase('postgres')), { password: 'hunter2' }).href;
    expect(await readError(url)).to.contain('password authentication failed for user "postgres"');
  });

  it('says that the connection was refused, and names the address', async () => {
    const port = refusedPort;
    expect(await readError(`postgres://callkey:hunter2@127.0.0.1:${port}/callkey`)).to.contain(`connection refused at 127.0.0.1:${port}`);
  });

  it("says that the server didn't respond", async () => {
    // If nothing reads from it, a socket doesn't notice that the other side has hung up.
    const server = createServer((socket) => void socket.resume());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const complaint = await readError(`postgres://callkey:hunter2@127.0.0.1:${port}/callkey`);
    server.close();
    expect(complaint).to.contain('no response');
  });

  it('says that a standby is read-only', async () => {
    const url = new URL(await freshDatabase('postgres'));
    await adminOn(url.href).json('migrate');
    url.searchParams.set('options', '-c default_transaction_read_only=on');
    expect(await readError(url.href, ['partner', 'add', 'One'])).to.contain('read-only');
  });

  it("says that the file isn't a database", async () => {
    const file = join(freshDirectory(), 'notes.txt');
    writeFileSync(file, 'These are my notes. '.repeat(100));
    expect(await readError(`sqlite:${file}`)).to.contain("the file isn't a SQLite database");
  });

  it('says that the path is a folder', async () => {
    expect(await readError(`sqlite:${freshDirectory()}`, ['partner', 'add', 'One'])).to.contain('it is a folder');
  });

  it("says that access isn't permitted", async function () {
    if (process.getuid?.() === 0) skip(this, "permissions don't apply to root");
    const folder = join(freshDirectory(), 'locked');
    mkdirSync(folder);
    chmodSync(folder, 0o000);
    try {
      expect(await readError(`sqlite:${join(folder, 'callkey.db')}`, ['partner', 'add', 'One'])).to.contain('permission denied');
    } finally {
      // Otherwise, the folder can't be removed.
      chmodSync(folder, 0o700);
    }
  });
});
