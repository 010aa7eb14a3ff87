import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import type pg from 'pg';
import { connected, type RunningCore, sessions, start, startCoreHere, untilQuery, withKey } from '../support/core.ts';
import { emptyDatabase, freshDatabase, setUpPostgres } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { placeCall, somePhone, type Tenants } from '../support/tenants.ts';

/** The key of the advisory lock that migrations take: "callkey" in ASCII, read as a number. */
const migrationLock = '27975062105318777';

describe('a core on PostgreSQL', function () {
  // Some tests wait for the time limits themselves.
  this.timeout(40_000);
  // Some tests change the whole server or stop it.
  before(() => setUpPostgres());

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
    let placing: { tenants: Tenants; key: string; cookie: string };
    let frozen: number[] = [];
    const thaw = () => {
      for (const pid of frozen) process.kill(pid, 'SIGCONT');
      frozen = [];
    };

    before(async () => {
      const database = await freshDatabase('postgres');
      observer = await connected(database);
      core = await startCoreHere(database);
      placing = await withKey(database, core);
    });
    after(async () => {
      thaw();
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
      const freeze = (pid: number) => {
        process.kill(pid, 'SIGSTOP');
        frozen.push(pid);
      };
      const { rows } = await observer.query(
        `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int AS server, pg_backend_pid() AS own`,
      );
      // Freezes the process that starts sessions first, so that no session is missed. Then all of its other processes, because a session
      // that's still starting isn't in pg_stat_activity.
      freeze(rows[0].server);
      for (const line of execFileSync('ps', ['-A', '-o', 'ppid=,pid='], { encoding: 'utf8' }).split('\n')) {
        const [parent, pid] = line.trim().split(/ +/).map(Number);
        if (pid !== undefined && parent === rows[0].server && pid !== rows[0].own) freeze(pid);
      }
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
