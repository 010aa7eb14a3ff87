import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import sqlite3, { type Database as Connection, type Statement } from 'sqlite3';
import { toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { forgetDoNotCall } from '../../core/domain/calls/contacts.ts';
import { placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { instant } from '../../core/domain/instant.ts';
import { addNumbers } from '../../core/domain/protection/do-not-call.ts';
import { emptyLog, maxTurnWait } from '../../core/storage/engine/sqlite/sqlite.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { skip } from '../support/suites.ts';
import { type DirectAccess, databaseWithTenants, openDirect, somePhone, type Tenants, toCaller } from '../support/tenants.ts';

describe("a SQLite file's writer", () => {
  let database: string;
  let direct: DirectAccess;
  let tenants: Tenants;
  let digest: string;

  beforeEach(async () => {
    ({ database, tenants } = await databaseWithTenants('sqlite'));
    direct = await openDirect(database);
    digest = toDigest((await createKeyOn({ direct }, tenants.users.account, 'K')).keyValue);
  });
  afterEach(() => direct.close());

  const filename = () => database.slice('sqlite:'.length);
  const place = (requestId: string) =>
    placeCall(direct.ports, toCaller(digest), tenants.campaign.id, { requestId, contact: { phone: somePhone() } }).then(
      () => 'placed',
      (error: { code?: string; name: string }) => error.code ?? error.name,
    );

  it('waits at each commit until the disk has the data, and checks foreign keys, on all connections of a core, also of one that has reconnected', async () => {
    const { Database } = sqlite3;
    const connections: Connection[] = [];
    const construct = (target: typeof Database, parameters: ConstructorParameters<typeof Database>) => {
      const connection = new target(...parameters);
      connections.push(connection);
      return connection;
    };
    Object.assign(sqlite3, { Database: new Proxy(Database, { construct }) });
    const core = await startCoreHere(database);
    const ready = async () => (await ask('GET', `${core.managementUrl}/readyz`)).status;
    const read = (connection: Connection, name: string) =>
      new Promise((resolve) => connection.get<object>(`PRAGMA ${name}`, (error, row) => resolve(error?.message ?? row)));
    const expectSafe = async () => {
      const open = connections.filter((connection) => Reflect.get(connection, 'open'));
      expect(open).not.to.deep.equal([]);
      for (const connection of open) {
        const values = await Promise.all(
          ['journal_mode', 'synchronous', 'foreign_keys', 'secure_delete'].map((name) => read(connection, name)),
        );
        // 2 is FULL.
        expect(values).to.deep.equal([{ journal_mode: 'wal' }, { synchronous: 2 }, { foreign_keys: 1 }, { secure_delete: 1 }]);
      }
    };
    try {
      await expectSafe();
      const first = connections.splice(0);
      renameSync(filename(), `${filename()}.moved`);
      expect(await ready()).to.equal(503);
      renameSync(`${filename()}.moved`, filename());
      expect(await ready()).to.equal(200);
      expect(first.some((connection) => Reflect.get(connection, 'open') === false)).to.equal(true);
      await expectSafe();
    } finally {
      Object.assign(sqlite3, { Database });
      await core.close();
    }
  });

  it('waits for a write in progress when the storage closes, such as one of a request whose client has hung up', async () => {
    const other = await openDirect(database);
    const writing = await other.storage.database.write.transaction();
    await writing('partners').update({ name: 'Renamed' });
    const closed = other.close();
    await new Promise(setImmediate);
    await writing.commit();
    await closed;
    expect(await direct.storage.database.read('partners').distinct().pluck('name')).to.deep.equal(['Renamed']);
  });

  /** Returns the calls that another process finds in the database. */
  async function found(): Promise<string[]> {
    const other = await openDirect(database);
    const ids: string[] = await other.storage.database.read('calls').pluck('request_id').orderBy('request_id');
    await other.close();
    return ids;
  }

  /**
   * Leaves a writing statement active on the writer's connection, like one that ended in SQLITE_BUSY.
   *
   * @returns a function that ends it
   */
  async function holdCommitsBack(): Promise<() => Promise<void>> {
    const { client } = direct.storage.database.write;
    const connection: Connection = await client.acquireConnection();
    const statement = await new Promise<Statement>((resolve, reject) => {
      const statement: Statement = connection.prepare(
        `INSERT INTO partners (id, name, created_at) VALUES ('x', 'X', 0), ('y', 'Y', 0) RETURNING id`,
        (error) => (error ? reject(error) : resolve(statement)),
      );
    });
    await new Promise<void>((resolve, reject) => statement.get((error: Error | null) => (error ? reject(error) : resolve())));
    client.releaseConnection(connection);
    return () => new Promise((resolve) => statement.finalize(() => resolve()));
  }

  it("doesn't acknowledge a call that other connections can't see, and continues on a new connection", async () => {
    const end = await holdCommitsBack();
    // Another statement on the same connection holds the commit back. Until that statement ends, the result is unknown.
    expect(await place('held-back')).to.equal('ResultUnknown');
    await end();
    expect(await place('after')).to.equal('placed');
    expect(await found()).to.include('after');
  });

  it("reports that a call wasn't placed if it was lost with its connection", async () => {
    const { client } = direct.storage.database.write;
    const connection: Connection = await client.acquireConnection();
    await new Promise<void>((resolve, reject) => connection.exec('BEGIN', (error) => (error ? reject(error) : resolve())));
    client.releaseConnection(connection);
    expect(await place('in-a-transaction')).to.equal('unavailable');
    expect(await place('after')).to.equal('placed');
    expect(await found()).to.deep.equal(['after']);
  });

  it("isn't ready while it can't commit, is ready again afterwards, and keeps the acknowledged calls", async () => {
    const end = await holdCommitsBack();
    expect(await direct.storage.isReady()).to.equal(false);
    await end();
    expect(await direct.storage.isReady()).to.equal(true);
    expect(await place('later')).to.equal('placed');
    expect(await found()).to.deep.equal(['later']);
  });

  it("waits for a lock only as long as a request's deadline allows, even after the WAL was emptied", async () => {
    await emptyLog(direct.storage.database);
    const rows: { timeout: number }[] = await direct.storage.database.write.raw('PRAGMA busy_timeout');
    expect(rows).to.deep.equal([{ timeout: deadlines.lock }]);
  });

  it('limits the wait for a connection so that there is still time for a statement', () => {
    const { acquireConnectionTimeout } = direct.storage.database.read.client.config;
    for (const wait of [acquireConnectionTimeout, maxTurnWait]) expect(wait + deadlines.statement).to.be.at.most(deadlines.answer);
  });

  it("doesn't place calls in a file that was moved away, and continues when the file is back", async () => {
    expect(await place('before')).to.equal('placed');
    renameSync(filename(), `${filename()}.moved`);
    expect(await place('while-away')).to.equal('unavailable');
    expect(await direct.storage.isReady()).to.equal(false);
    expect(existsSync(filename())).to.equal(false);
    renameSync(`${filename()}.moved`, filename());
    expect(await place('after')).to.equal('placed');
    expect(await direct.storage.isReady()).to.equal(true);
    expect(await found()).to.deep.equal(['after', 'before']);
  });

  it('leaves acknowledged calls in the file that was moved away', async () => {
    expect(await place('before')).to.equal('placed');
    renameSync(filename(), `${filename()}.moved`);
    await place('while-away');
    await direct.close();
    rmSync(`${filename()}-wal`, { force: true });
    database += '.moved';
    expect(await found()).to.deep.equal(['before']);
  });

  it("doesn't place calls in a deleted WAL, and saves the WAL's content to the database on closing", async () => {
    expect(await place('before')).to.equal('placed');
    rmSync(`${filename()}-wal`);
    rmSync(`${filename()}-shm`);
    expect(await place('meanwhile')).to.equal('unavailable');
    expect(await direct.storage.isReady()).to.equal(false);
    await direct.close();
    expect(await found()).to.deep.equal(['before']);
  });

  const overwritings = [
    ['file was overwritten', (file: string) => ['cp', `${file}.backup`, file]],
    ['file was truncated', (file: string) => ['truncate', '-s', '8192', file]],
    ['file was emptied', (file: string) => ['truncate', '-s', '0', file]],
  ] as const;
  const attacks = [
    ['index was deleted', (file: string) => ['rm', `${file}-shm`]],
    ['index was replaced', (file: string) => ['sh', '-c', `cp ${file}-shm ${file}.copy && mv ${file}.copy ${file}-shm`]],
    ['file was deleted', (file: string) => ['rm', file]],
    ['file was replaced', (file: string) => ['mv', `${file}.backup`, file]],
    ['file has a second name', (file: string) => ['ln', file, `${file}.link`]],
    ...overwritings,
  ] as const;
  const nothing = async () => undefined;
  const write = () => direct.storage.database.write.raw('PRAGMA user_version = 0');
  // As the commit of a batch may do.
  const checkpoint = async () => {
    await write();
    await direct.storage.database.write.raw('PRAGMA wal_checkpoint(PASSIVE)');
  };
  const openElsewhere = async () => (await openDirect(database)).close();

  for (const [when, kinds, before, after] of [
    ['', attacks, nothing, nothing],
    [' right after a checkpoint', overwritings, checkpoint, nothing],
    [' right after its WAL was emptied', overwritings, () => emptyLog(direct.storage.database), nothing],
    [' before another core opens it', overwritings, write, openElsewhere],
    [' right after a checkpoint and before another core opens it', overwritings, checkpoint, openElsewhere],
  ] as const)
    for (const [attack, command] of kinds)
      it(`doesn't place calls if the ${attack}${when}, and says so`, async () => {
        await direct.storage.database.read.raw('VACUUM INTO ?', [`${filename()}.backup`]);
        expect(await place('before')).to.equal('placed');
        await before();
        const [name = '', ...args] = command(filename());
        execFileSync(name, args);
        // The other core may notice it as well.
        await after().catch(() => undefined);
        expect(await place('after')).to.equal('unavailable');
        expect(await direct.storage.isReady()).to.equal(false);
      });

  it("doesn't open an overwritten file again until a backup is restored", async () => {
    expect(await place('before')).to.equal('placed');
    execFileSync('truncate', ['-s', '8192', filename()]);
    await place('after');
    await direct.close();
    const opening = await openDirect(database).catch((error: Error) => error.message);
    expect(opening).to.match(/callkey\.db was overwritten or truncated by another program .+ restore a backup\. .+ delete .+-overwritten/);
    rmSync(`${filename()}-overwritten`);
    direct = await openDirect(await freshDatabase('sqlite'));
  });

  it("doesn't open a file that has a second hard link or is itself a mount (needs root)", async function () {
    await direct.close();
    const refusal = () =>
      openDirect(database).then(
        () => 'opened',
        (error: Error) => error.message,
      );
    linkSync(filename(), `${filename()}.link`);
    expect(await refusal()).to.match(/has another name .+ Remove its other names\. .+ find .+ -samefile/);
    rmSync(`${filename()}.link`);
    direct = await openDirect(await freshDatabase('sqlite'));
    const point = join(freshDirectory(), 'a name');
    writeFileSync(point, '');
    try {
      execFileSync('mount', ['--bind', filename(), point], { stdio: 'ignore' });
    } catch {
      return skip(this, 'only root can mount a file');
    }
    database = `sqlite:${point}`;
    expect(await refusal().finally(() => execFileSync('umount', [point]))).to.match(
      /is mounted without its folder.+ Mount its folder instead\./,
    );
  });

  it('leaves no trace of an erased contact in the database files', async () => {
    expect(await place('erased')).to.equal('placed');
    const { write, read } = direct.storage.database;
    const variables = JSON.stringify([['note', 'a secret note '.repeat(1_000)]]);
    await write('calls').update({ variables, state: 'completed', due_at: null, ended_at: instant(1) });
    const [phone]: (string | null)[] = await read('calls').pluck('phone');
    const has = (text: string) => ['', '-wal'].some((suffix) => readFileSync(filename() + suffix).includes(text));
    expect(has(String(phone))).to.equal(true);
    expect(has('a secret note')).to.equal(true);
    expect(await direct.ports.stores.retention.erase(direct.ports.clock.now())).to.equal(1);
    expect(has(String(phone))).to.equal(false);
    expect(has('a secret note')).to.equal(false);
  });

  it('leaves no trace of an erased do-not-call entry in the database files', async () => {
    const phone = somePhone();
    await addNumbers(direct.ports, operator, { partnerId: tenants.partner.id, reason: 'asked', phones: [phone], timeZone: 'UTC' });
    const has = () => ['', '-wal'].some((suffix) => readFileSync(filename() + suffix).includes(phone));
    expect(has()).to.equal(true);
    expect(await forgetDoNotCall(direct.ports, operator.actor, phone)).to.equal(1);
    expect(has()).to.equal(false);
  });

  it("doesn't accept more calls once another core has noticed that the file was overwritten", async () => {
    expect(await place('before')).to.equal('placed');
    writeFileSync(`${filename()}-overwritten`, '');
    expect(await place('after')).to.equal('unavailable');
    expect(await direct.storage.isReady()).to.equal(false);
    await direct.close();
    rmSync(`${filename()}-overwritten`);
    direct = await openDirect(await freshDatabase('sqlite'));
  });

  it('leaves no connection open if one of several statements of a transaction fails', async () => {
    const { prepare, write } = direct.storage.database;
    const statement = (n: number) =>
      prepare(`UPDATE partners SET name = name || '${n}' WHERE id IN (SELECT value FROM json_each(?))`, 'write');
    const broken = prepare('UPDATE partners SET missing = ?', 'write');
    const failing = write.transaction((trx) =>
      Promise.all([broken([], undefined, trx), ...Array.from({ length: 20 }, (_, n) => statement(n % 19)([], undefined, trx))]),
    );
    expect(await failing.catch(({ message }) => message)).to.match(/no such column/);
    await direct.close();
    expect(existsSync(`${filename()}-wal`)).to.equal(false);
    direct = await openDirect(database);
  });

  it("doesn't mistake a checkpoint by this or another process for overwriting", async () => {
    const other = await openDirect(database);
    for (let round = 0; round < 20; round++) {
      expect(await place(`call-${round}`)).to.equal('placed');
      const { write } = (round % 2 === 0 ? direct : other).storage.database;
      await write.raw(`PRAGMA wal_checkpoint(${round % 3 === 0 ? 'TRUNCATE' : 'PASSIVE'})`);
    }
    expect(await direct.storage.isReady()).to.equal(true);
    await other.close();
    expect(await place('last')).to.equal('placed');
  });

  it("doesn't mistake a checkpoint that stops at an older reader's snapshot for overwriting", async () => {
    const { read, write } = direct.storage.database;
    for (let round = 0; round < 20; round++) {
      expect(await place(`before-${round}`)).to.equal('placed');
      const reading = await read.transaction();
      await reading('calls').count();
      expect(await place(`after-${round}`)).to.equal('placed');
      await write.raw('PRAGMA wal_checkpoint(PASSIVE)');
      expect(await place(`last-${round}`), `round ${round}`).to.equal('placed');
      await reading.rollback();
    }
  });
});
