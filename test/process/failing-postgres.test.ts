import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type pg from 'pg';
import { migrationLock } from '../../core/storage/engine/postgres/postgres.ts';
import { type Pooler, startPgBouncer } from '../../scripts/support/pgbouncer.ts';
import { mountDisk } from '../support/commands.ts';
import { connected, type RunningCore, sessions, start, startCoreHere, untilQuery, withKey } from '../support/core.ts';
import { emptyDatabase, freshDatabase, freshDirectory, setUpPostgres } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { listProcesses, signalAll } from '../support/postgres-node.ts';
import { skip } from '../support/suites.ts';
import { createKey, onDemand, placeCall, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/**
 * Waits until all commits wait for a standby. They don't do so immediately, because the server's processes learn of a new setting one after
 * another.
 */
async function untilCommitsWait(observer: pg.Client, database: string): Promise<void> {
  const url = new URL(database);
  url.searchParams.set('application_name', 'probe');
  const client = await connected(url.href);
  for (let hasWaited = false; !hasWaited; ) {
    let isCommitted = false;
    const commit = client.query(`SELECT pg_logical_emit_message(true, 'test', '')`).then(() => {
      isCommitted = true;
    });
    await until(async () => {
      const { rowCount } = await observer.query(
        `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'probe' AND wait_event = 'SyncRep'`,
      );
      hasWaited = rowCount === 1;
      return hasWaited || isCommitted;
    });
    await commit;
  }
  await client.end();
}

/** Records in the table `commits` with which settings a core's database session makes each of its changes. */
async function noteSettings(observer: pg.Client): Promise<void> {
  await observer.query(`CREATE TABLE commits (made text, patience text, scans text, path text)`);
  await observer.query(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO commits VALUES (current_setting('synchronous_commit'), current_setting('statement_timeout'), current_setting('enable_seqscan'), TG_TABLE_NAME);
    RETURN NULL; END $$`);
  for (const table of ['calls', 'api_keys', 'audit_events', 'sessions'])
    await observer.query(`CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION note()`);
}

/**
 * Creates a database in this folder, for a role that may not create temporary tables, as on a hardened server.
 *
 * @returns its DATABASE_URL
 */
async function createDatabaseIn(directory: string, direct: string, server: pg.Client): Promise<string> {
  execFileSync('chown', ['postgres', directory]);
  await server.query(`CREATE TABLESPACE small LOCATION '${directory}'`);
  await server.query('CREATE DATABASE callkey_small TABLESPACE small');
  await server.query(`REVOKE TEMP ON DATABASE callkey_small FROM PUBLIC; CREATE ROLE small LOGIN PASSWORD 'small'`);
  const [pathname, username] = ['/callkey_small', 'small'];
  const owner = await connected(Object.assign(new URL(direct), { pathname }).href);
  await owner.query('GRANT CREATE ON SCHEMA public TO small');
  await owner.end();
  return Object.assign(new URL(direct), { pathname, username, password: 'small' }).href;
}

/**
 * Freezes all processes of the server except the observer's session: pg_stat_activity doesn't list sessions that are just starting. The main
 * process comes first, so that it can't start another one in the meantime.
 *
 * @returns a function that thaws them
 */
async function freeze(observer: pg.Client): Promise<() => void> {
  const { rows } = await observer.query(
    `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int AS server, pg_backend_pid() AS own, current_setting('data_directory') AS data`,
  );
  const [{ server, own, data }] = rows;
  signalAll([server], 'SIGSTOP');
  const frozen = listProcesses(server, data).filter((pid) => pid !== own);
  signalAll(frozen, 'SIGSTOP');
  return () => signalAll(frozen.splice(0), 'SIGCONT');
}

describe('a core on PostgreSQL', function () {
  // Some tests wait for the time limits themselves.
  this.timeout(40_000);
  // Use a separate server, because some tests change the whole server, such as its standby setting, or freeze it.
  before(() => setUpPostgres());

  describe('behind PgBouncer', () => {
    let pooler: Pooler | null = null;
    afterEach(async () => {
      await pooler?.stop();
      pooler = null;
    });

    for (const mode of ['transaction', 'session'] as const) {
      it(`places, cancels and revokes durably in ${mode} mode, even if the database's default isn't durable (needs pgbouncer)`, async function () {
        const database = await freshDatabase('postgres');
        // The pooler connects to the server only once a core does, so it has no connection with earlier settings.
        pooler = await startPgBouncer(freshDirectory(), database, mode);
        if (!pooler) skip(this, "pgbouncer isn't installed");
        const observer = await connected(database);
        const name = new URL(database).pathname.slice(1);
        await observer.query(`ALTER DATABASE ${name} SET synchronous_commit = off`);
        await observer.query(`ALTER DATABASE ${name} SET statement_timeout = '7s'`);
        const cores = await Promise.all([startCoreHere(pooler.url), startCoreHere(pooler.url)]);
        const [core] = cores;
        const { tenants, key, cookie } = await withKey(database, core);
        await noteSettings(observer);
        const answers = await Promise.all(
          Array.from({ length: 300 }, (_, n) =>
            placeCall(cores[n % 2 ? 0 : 1].url, tenants.campaign.id, key, { requestId: `r${n}`, contact: { phone: somePhone() } }),
          ),
        );
        const cancelled = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/r7`, { key });
        const other = await createKey(core.url, cookie);
        const revoked = await ask('DELETE', `${core.url}/console/api-keys/${other.id}`, { cookie });
        const { rows } = await observer.query('SELECT DISTINCT made, patience, scans FROM commits');
        const { rows: kept } = await observer.query('SELECT count(*)::int AS calls FROM calls');
        const ready = await ask('GET', `${core.managementUrl}/readyz`);
        for (const one of cores) await one.close();
        await observer.end();
        expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([202]));
        expect({ cancelled: cancelled.status, revoked: revoked.status, ready: ready.status }).to.deep.equal({
          cancelled: 200,
          revoked: 204,
          ready: 200,
        });
        expect(kept).to.deep.equal([{ calls: 300 }]);
        expect(rows).to.deep.equal([{ made: 'on', patience: '10s', scans: 'off' }]);
      });
    }

    it('refuses to start in statement mode, and says what to change (needs pgbouncer)', async function () {
      pooler = await startPgBouncer(freshDirectory(), await freshDatabase('postgres'), 'statement');
      if (!pooler) skip(this, "pgbouncer isn't installed");
      const core = start(pooler.url);
      expect(await core.ended).to.deep.equal([1, null]);
      expect(core.lines.join('\n')).to.contain('Set pool_mode to transaction or session');
    });
  });

  it("isn't ready while PostgreSQL is read-only, and is ready again afterwards", async () => {
    const database = await freshDatabase('postgres');
    const name = new URL(database).pathname.slice(1);
    const core = await startCoreHere(database);
    const ready = async () => (await ask('GET', `${core.managementUrl}/readyz`)).status;
    const observer = await connected(database);
    const statuses: number[] = [];
    for (const readOnly of ['on', 'off']) {
      await observer.query(`ALTER DATABASE ${name} SET default_transaction_read_only = ${readOnly}`);
      await observer.query('SET default_transaction_read_only = off');
      const ended = await observer.query(`SELECT pid, pg_terminate_backend(pid) FROM (${sessions.replace('1', 'pid')}) AS s`);
      // Waits only for the end of these connections, since the core may already have opened new ones.
      const pids = ended.rows.map(({ pid }) => pid).join();
      await untilQuery(observer, `SELECT 1 FROM pg_stat_activity WHERE pid = ANY ('{${pids}}')`, false);
      statuses.push(await ready());
    }
    await observer.end();
    await core.close();
    expect(statuses).to.deep.equal([503, 200]);
  });

  it("isn't ready, and doesn't acknowledge calls, while a synchronous standby is missing", async () => {
    const database = await freshDatabase('postgres');
    const core = await startCoreHere(database);
    const { tenants, key } = await withKey(database, core);
    const observer = await connected(database);
    const body = { requestId: 'one', contact: { phone: somePhone() } };
    const place = () =>
      placeCall(core.url, tenants.campaign.id, key, body).then(
        ({ status }) => status,
        () => 'no answer',
      );
    const ready = async () => (await ask('GET', `${core.managementUrl}/readyz`)).status;
    const configure = async (names: string) => {
      await observer.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await observer.query('SELECT pg_reload_conf()');
      await untilQuery(observer, `SELECT 1 WHERE current_setting('synchronous_standby_names') = '${names}'`, true);
    };
    try {
      await configure('nobody');
      await untilCommitsWait(observer, database);
      // The first request waits for the standby and will be committed. The second request changes nothing, because it arrives while the
      // first is in doubt.
      expect([await place(), await place(), await ready()]).to.deep.equal(['no answer', 503, 503]);
    } finally {
      await configure('');
    }
    expect({ placed: await place(), ready: await ready() }).to.deep.equal({ placed: 202, ready: 200 });
    expect((await observer.query('SELECT 1 FROM calls')).rowCount).to.equal(1);
    await observer.end();
    await core.close();
  });

  it("isn't ready while the disk is full, and is ready again afterwards (needs root to mount a disk)", async function () {
    const direct = await freshDatabase('postgres');
    const directory = mountDisk(this, 'size=40m');
    const server = await connected(direct);
    try {
      const database = await createDatabaseIn(directory, direct, server);
      const core = await startCoreHere(database);
      const { tenants, key } = await withKey(database, core);
      const ready = async () => (await ask('GET', `${core.managementUrl}/readyz`)).status;
      const acknowledged: string[] = [];
      const place = async (requestId: string) => {
        // The text can't be compressed, so it takes as many bytes as it has characters.
        const variables = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`v${n}`, randomBytes(500).toString('hex')]));
        const body = { requestId, contact: { phone: somePhone() }, variables };
        const { status } = await placeCall(core.url, tenants.campaign.id, key, body);
        if (status === 202) acknowledged.push(requestId);
        return status;
      };
      const before = await ready();
      const { bavail, bsize } = statfsSync(directory);
      writeFileSync(join(directory, 'filler'), Buffer.alloc(bavail * bsize - 500_000));
      let last = 202;
      for (let call = 0; last === 202 && call < 100; call++) last = await place(`r${call}`);
      const full = await ready();
      rmSync(join(directory, 'filler'));
      const after = await ready();
      expect({ before, last, full, after, placed: await place('after') }).to.deep.equal({
        before: 200,
        last: 503,
        full: 503,
        after: 200,
        placed: 202,
      });
      await core.close();
      const observer = await connected(database);
      const kept = (await observer.query('SELECT request_id AS id FROM calls')).rows.map(({ id }) => id);
      await observer.end();
      expect(acknowledged.filter((id) => !kept.includes(id))).to.deep.equal([]);
      // Without its disk, the server couldn't write a checkpoint anymore, which each copy of a database needs.
      await server.query('DROP DATABASE callkey_small WITH (FORCE)');
      await server.query('DROP TABLESPACE small');
    } finally {
      await server.end();
      execFileSync('umount', ['-l', directory]);
    }
  });

  describe('that is told to stop while starting', () => {
    for (const [what, hold] of [
      ["waits for another core's migration", `SELECT pg_advisory_xact_lock(${migrationLock})`],
      ['migrates', 'CREATE TABLE schema_migrations (n int)'],
    ] as const) {
      it(`stops immediately while it ${what}, and closes its session on the server`, async () => {
        const database = await emptyDatabase('postgres');
        const holder = await connected(database);
        await holder.query(`BEGIN; ${hold}`);
        const observer = await connected(database);
        const core = start(database);
        const isStuck =
          what === 'migrates'
            ? `${sessions} AND wait_event_type = 'Lock'`
            : `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND (query LIKE '%advisory%') AND pid <> pg_backend_pid() AND pid <> ${(await holder.query('SELECT pg_backend_pid() AS pid')).rows[0].pid}`;
        await untilQuery(observer, isStuck, true);
        core.child.kill('SIGTERM');
        expect(await core.ended).to.deep.equal([0, null]);
        await untilQuery(observer, sessions, false);
        await holder.end();
        await observer.end();
        expect(core.lines.filter((line) => /"level":"(fatal|error)"/.test(line))).to.deep.equal([]);
      });
    }
  });

  describe('while PostgreSQL is frozen', () => {
    let observer: pg.Client;
    let core: RunningCore;
    let placing: Awaited<ReturnType<typeof withKey>>;
    let thaw: (() => void) | undefined;

    before(async () => {
      const database = await freshDatabase('postgres');
      observer = await connected(database);
      core = await startCoreHere(database);
      placing = await withKey(database, core);
    });
    after(async () => {
      thaw?.();
      await core.close();
      await observer.end();
    });

    it("returns 503 for calls that it hasn't sent to PostgreSQL, doesn't respond to the others, recovers, and stores each acknowledged call once", async () => {
      const { tenants, key, cookie } = placing;
      let calls = 0;
      const place = (count: number) =>
        Promise.all(
          Array.from({ length: count }, async () => {
            const requestId = `r${calls++}`;
            const body = { requestId, contact: { phone: somePhone() } };
            const answered = await placeCall(core.url, tenants.campaign.id, key, body).catch(() => null);
            return { requestId, status: answered?.status ?? null };
          }),
        );
      const before = await place(50);
      thaw = await freeze(observer);
      const listing = ask('GET', `${core.url}/console/api-keys`, { cookie });
      const [during, ready] = await Promise.all([place(50), ask('GET', `${core.managementUrl}/readyz`)]);
      // That took less than the usual limit for a statement, or the list would be refused as well.
      thaw();
      const listed = await listing;
      const after = await place(50);
      const kept = (await observer.query('SELECT request_id AS id FROM calls')).rows.map(({ id }) => id);
      expect(new Set(before.map(({ status }) => status))).to.deep.equal(new Set([202]));
      expect(during.map(({ status }) => status)).to.include(null);
      const refused = during.filter(({ status }) => status !== null);
      expect(refused.filter(({ requestId, status }) => status !== 503 || kept.includes(requestId))).to.deep.equal([]);
      expect({ listed: listed.status, ready: ready.status }).to.deep.equal({ listed: 200, ready: 503 });
      expect(new Set(after.map(({ status }) => status))).to.deep.equal(new Set([202]));
      expect([...before, ...after].filter(({ requestId }) => !kept.includes(requestId))).to.deep.equal([]);
    });
  });
});
