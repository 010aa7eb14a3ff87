import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import pg from 'pg';
import { startPostgres } from '../../scripts/support/postgres.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { adminOn, bareEnvironment, canTrace, mountDisk, runScript, runTraced, spawnScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase, freshDatabase, freshDirectory, onToolDatabases } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { skip } from '../support/suites.ts';
import { createKey, createTenants, databaseWithTenants, openDirect, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('admin backup', () => {
  it('copies a SQLite database that is being written to, and a core can use the copy', async () => {
    const { database, tenants } = await databaseWithTenants('sqlite');
    const core = await startCoreHere(database);
    const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    let placed = 0;
    let isBusy = true;
    const load = (async () => {
      while (isBusy) if ((await placeCall(core.url, tenants.campaign.id, keyValue)).status === 202) placed++;
    })();
    const file = join(freshDirectory(), 'backup.db');
    const { code } = await adminOn(database).admin(['backup', file]);
    isBusy = false;
    await load;
    await core.close();
    expect(code).to.equal(0);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const restored = await startCoreHere(`sqlite:${file}`);
    const answer = await placeCall(restored.url, tenants.campaign.id, keyValue);
    const { ok } = await adminOn(`sqlite:${file}`).json('check');
    await restored.close();
    expect(answer.status).to.equal(202);
    expect(ok).to.equal(true);
    expect(placed).to.be.greaterThan(0);
  });

  it("refuses a database that doesn't exist, and doesn't create it", async () => {
    const database = await emptyDatabase('sqlite');
    const directory = freshDirectory();
    const { code, stderr } = await adminOn(database).admin(['backup', join(directory, 'b.db')]);
    expect(code).to.equal(3);
    expect(stderr).to.include("doesn't exist. Set DATABASE_URL");
    expect(readdirSync(directory)).to.deep.equal([]);
    expect(existsSync(database.slice('sqlite:'.length))).to.equal(false);
  });

  it("copies a database on a read-only disk, with what's only in its write-ahead log (needs root)", async function () {
    const disk = mountDisk(this, 'size=20m');
    const database = await freshDatabase('sqlite');
    const direct = await openDirect(database);
    await createTenants(direct.ports);
    const from = database.slice('sqlite:'.length);
    try {
      for (const suffix of ['', '-wal']) copyFileSync(`${from}${suffix}`, join(disk, `callkey.db${suffix}`));
      execFileSync('mount', ['-o', 'remount,ro', disk]);
      await direct.close();
      const folder = freshDirectory();
      const { backup, recorded } = await adminOn(`sqlite:${disk}/callkey.db`).json('backup', join(folder, 'backup.db'));
      expect([recorded, readdirSync(folder)]).to.deep.equal([false, ['backup.db']]);
      const { partners } = await adminOn(`sqlite:${backup.file}`).json('partner', 'list');
      expect(partners).to.have.length(2);
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it("refuses to keep a copy that couldn't be restored", async () => {
    const database = await freshDatabase('sqlite');
    const direct = await openDirect(database);
    await direct.storage.database.write.raw('PRAGMA ignore_check_constraints = ON');
    await direct.storage.database.write.raw('INSERT INTO clock (one) VALUES (2)');
    await direct.close();
    const folder = freshDirectory();
    const { code, stderr } = await adminOn(database).admin(['backup', join(folder, 'backup.db')]);
    expect([code, readdirSync(folder)]).to.deep.equal([1, []]);
    expect(stderr).to.contain('The copy is damaged: CHECK constraint failed in clock');
  });

  it('never overwrites a file, or a link that leads nowhere', async () => {
    const database = await freshDatabase('sqlite');
    const file = join(freshDirectory(), 'there-already');
    writeFileSync(file, 'precious');
    const link = join(dirname(file), 'link');
    symlinkSync('nowhere', link);
    for (const path of [file, link]) {
      const { code, stderr } = await adminOn(database).admin(['backup', path]);
      expect([code, stderr]).to.deep.equal([4, `error: The file ${path} already exists. Choose another name, or move the file.\n`]);
    }
    expect(statSync(file).size).to.equal(8);
  });

  it('says that an empty path is empty, as restore does', async () => {
    const { admin } = adminOn(await freshDatabase('sqlite'));
    for (const command of ['backup', 'restore']) {
      const { code, stderr } = await admin([command, '']);
      expect([code, stderr]).to.deep.equal([2, 'error: The path of the file is empty. Specify one.\n']);
    }
  });

  onToolDatabases((databases) => {
    if (databases.kind === 'postgres')
      describe('of a PostgreSQL database', () => {
        let database: string;
        const file = () => join(freshDirectory(), 'backup');
        before(async () => {
          database = await databases.freshDatabase();
          await adminOn(database).json('partner', 'add', 'One');
        });

        it('reads and restores the same database as the core whatever variables and defaults there are', async () => {
          const { hostname, port, username, password, pathname } = new URL(database);
          await adminOn(database).json('partner', 'add', '日本');
          const services = join(freshDirectory(), 'services.conf');
          writeFileSync(services, '[other]\ndbname=postgres\n');
          const client = new pg.Client(database);
          await client.connect();
          for (const setting of ['idle_in_transaction_session_timeout = 1', "client_encoding = 'LATIN1'"])
            await client.query(`ALTER DATABASE ${pathname.slice(1)} SET ${setting}`);
          await client.end();
          const env = {
            ...{ DATABASE_URL: `postgres:///${pathname.slice(1)}`, PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password },
            ...{ PGSERVICEFILE: services, PGSERVICE: 'other', PGHOSTADDR: '127.0.0.9', PGCLIENTENCODING: 'LATIN1', PGSSLMODE: 'disable' },
          };
          const target = file();
          for (const args of [
            ['backup', target],
            ['restore', target],
          ]) {
            const { code, stderr } = await runScript('core/admin.ts', args, { env });
            expect([code, stderr]).to.deep.equal([0, '']);
          }
          expect((await adminOn(database).admin(['partner', 'list'])).stdout).to.contain('日本');
        });

        it("says to set sslrootcert if only this process knows the server's certificate authority (needs openssl)", async function () {
          if (!hasOpenssl) skip(this, "openssl isn't installed");
          const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = selfSignedCertificate();
          if (process.getuid?.() === 0) for (const path of [dirname(key), key]) execFileSync('chown', ['postgres', path]);
          const server = await startPostgres(['ssl=on', `ssl_cert_file=${cert}`, `ssl_key_file=${key}`]);
          try {
            const url = Object.assign(new URL(await server.createDatabase()), { hostname: 'localhost', search: '?sslmode=verify-full' });
            const env = { DATABASE_URL: url.href, NODE_EXTRA_CA_CERTS: cert };
            const { code, stderr } = await spawnScript('core/admin.ts', ['backup', file()], { env });
            expect(code, stderr).to.equal(1);
            expect(stderr).to.match(/^error: psql failed: .*certificate.*\. PostgreSQL's programs .* Set sslrootcert in DATABASE_URL/);
          } finally {
            await server.stop();
          }
        });

        for (const command of ['backup', 'restore'])
          it(`is refused by ${command} if PostgreSQL's programs reach another database`, async () => {
            const { backup } = await adminOn(database).json('backup', file());
            const programs = freshDirectory();
            writeFileSync(join(programs, 'psql'), '#!/bin/sh\necho another\n', { mode: 0o755 });
            const { code, stderr } = await runScript('core/admin.ts', [command, command === 'backup' ? file() : backup.file], {
              env: { DATABASE_URL: database, PATH: `${programs}:${process.env['PATH']}` },
            });
            expect([code, stderr]).to.deep.equal([
              4,
              "error: PostgreSQL's programs and the core reach different databases with DATABASE_URL. Check its hosts, and which psql this user runs.\n",
            ]);
          });
      });

    describe('when interrupted', () => {
      let database: string;
      let folder: string;
      beforeEach(async () => {
        database = await databases.freshDatabase();
        folder = freshDirectory();
        await adminOn(database).json('partner', 'add', 'One');
      });

      it('reports success only after the file and its name are synced to disk', async function () {
        if (!canTrace()) skip(this, 'strace is missing, or may not trace');
        const file = join(folder, 'backup');
        const { code, calls } = await runTraced(admin, ['backup', file], { env: { DATABASE_URL: database } });
        const linked = calls.findIndex(({ name, paths }) => /^link/.test(name) && paths.includes(file));
        const [partial = ''] = calls[linked]?.paths.filter((path) => path.includes('.unfinished-')) ?? [];
        const syncs = (path: string) => calls.flatMap(({ name, paths }, n) => (/sync$/.test(name) && paths[0] === path ? [n] : []));
        expect([code, linked >= 0, syncs(partial).some((n) => n < linked), syncs(folder).some((n) => n > linked)]).to.deep.equal([
          ...[0, true, true, true],
        ]);
        expect(readdirSync(folder)).to.deep.equal(['backup']);
      });

      it("doesn't block the next backup, a migration or a core if it's killed, and the next backup names the files left behind", async () => {
        const file = join(folder, 'backup');
        const holder = await holdBack(database);
        const child = spawn(process.execPath, [admin, 'backup', file], {
          env: { ...bareEnvironment, DATABASE_URL: database },
          stdio: 'ignore',
        });
        await until(() => readdirSync(folder).length > 0);
        await holder.underWay();
        child.kill('SIGKILL');
        await once(child, 'exit');
        // Besides the unfinished backup, SQLite's own temporary file may be left.
        const left = readdirSync(folder).map((name) => join(folder, name));
        expect(left).to.not.be.empty;
        await holder.release();
        const { unfinished } = await adminOn(database).json('backup', file);
        expect(existsSync(file)).to.equal(true);
        expect(unfinished).to.have.members(left);
        await adminOn(database).json('migrate');
        const core = await startCoreHere(database);
        const { status } = await ask('GET', `${core.managementUrl}/readyz`);
        await core.close();
        expect(status).to.equal(200);
      });
    });
  });
});

const admin = fileURLToPath(new URL('../../core/admin.ts', import.meta.url));

/** Keeps a backup from finishing: on PostgreSQL with a lock on a table, on SQLite with rows of which each takes a millisecond to check. */
async function holdBack(database: string): Promise<{ underWay(): Promise<unknown>; release(): Promise<void> }> {
  if (database.startsWith('sqlite:')) {
    const direct = await openDirect(database);
    const { write } = direct.storage.database;
    await write.raw('PRAGMA ignore_check_constraints = ON');
    await write.raw('CREATE TABLE slow (n, CHECK (length(hex(zeroblob(500000))) > n))');
    await write.raw(
      'INSERT INTO slow SELECT 0 FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n)',
    );
    return { underWay: async () => undefined, release: () => write.raw('DROP TABLE slow').then(direct.close) };
  }
  // The observer has its own connection, because within the client's transaction, the server's statistics wouldn't change.
  const [client, observer] = [new pg.Client(database), new pg.Client(database)];
  await Promise.all([client.connect(), observer.connect()]);
  await client.query('BEGIN');
  await client.query('LOCK TABLE partners');
  const dumps = async () =>
    (await observer.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_dump'`)).rowCount ??
    0;
  return {
    underWay: () => until(async () => (await dumps()) > 0),
    // The backup's process then ends by itself, because no one reads its output.
    async release() {
      await client.query('COMMIT');
      await until(async () => (await dumps()) === 0);
      await Promise.all([client.end(), observer.end()]);
    },
  };
}
