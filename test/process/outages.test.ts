import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { mountDisk } from '../support/commands.ts';
import { spawnCore, startCoreHere, withKey } from '../support/core.ts';
import { freshDatabase, holdWriteLock } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { startFront } from '../support/proxies.ts';
import { onDemand, openDirect, placeCall, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/**
 * Places calls without a request ID, 32 at a time, until it's stopped. @returns the status for each phone number; null without a response
 */
function startPlacing(url: string, campaignId: string, key: string) {
  const answers = new Map<string, number | null>();
  let isStopped = false;
  const placing = Array.from({ length: 32 }, async () => {
    while (!isStopped) {
      const phone = somePhone();
      const answered = await placeCall(url, campaignId, key, { contact: { phone } }).catch(() => null);
      answers.set(phone, answered?.status ?? null);
    }
  });
  return {
    untilThereAre: (status: number, count: number) => until(() => [...answers.values()].filter((one) => one === status).length >= count),
    async stop(): Promise<Map<string, number | null>> {
      isStopped = true;
      await Promise.all(placing);
      return answers;
    },
  };
}

/** Returns calls with a 202 that aren't in the database, and calls with a 503 that are. */
async function findBrokenPromises(database: string, answers: ReadonlyMap<string, number | null>): Promise<string[]> {
  const direct = await openDirect(database);
  const placed = new Set<string | null>(await direct.storage.database.read('calls').pluck('phone'));
  await direct.close();
  return [...answers].flatMap(([phone, status]) =>
    (status === 202 && !placed.has(phone)) || (status === 503 && placed.has(phone)) ? [`${status} ${phone}`] : [],
  );
}

describe('while the database is unavailable', () => {
  it("a core on PostgreSQL returns 503 only for calls that it hasn't placed and 202 only for calls that it has, wherever the connection breaks, and recovers without a restart", async () => {
    const database = await freshDatabase('postgres');
    const line = await startFront(database);
    const core = await startCoreHere(line.toThrough(database));
    const { tenants, key, cookie } = await withKey(database, core);
    const status = async (path: string) => (await ask('GET', `${core.managementUrl}${path}`)).status;
    const placing = startPlacing(core.url, tenants.campaign.id, key);
    const observer = new pg.Client(database);
    await observer.connect();
    for (let times = 1; times <= 3; times++) {
      await placing.untilThereAre(202, 100 * times);
      await observer.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      await placing.untilThereAre(202, 100 * times + 50);
      await line.close();
      await placing.untilThereAre(503, 50 * times);
      const listed = await ask('GET', `${core.url}/console/api-keys`, { cookie });
      expect([listed.status, readCode(listed)]).to.deep.equal([503, 'unavailable']);
      expect(Number(listed.headers['retry-after'])).to.be.greaterThan(0);
      expect((await placeCall(core.url, tenants.campaign.id, 'nonsense')).status).to.equal(401);
      expect([await status('/readyz'), await status('/healthz')]).to.deep.equal([503, 200]);
      await line.mend();
    }
    await until(async () => (await status('/readyz')) === 200);
    const answers = await placing.stop();
    await observer.end();
    await core.close();
    await line.close();
    expect(await findBrokenPromises(database, answers)).to.deep.equal([]);
  });

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    it(`a core on SQLite whose lock another process holds returns 503 only for calls that it hasn't placed, and loses none that it has when it's stopped with ${signal}`, async () => {
      const database = await freshDatabase('sqlite');
      const core = await spawnCore(database);
      const { tenants, key, keyId, cookie } = await withKey(database, core);
      const placing = startPlacing(core.url, tenants.campaign.id, key);
      await placing.untilThereAre(202, 100);
      const release = await holdWriteLock(database);
      const refused = await placeCall(core.url, tenants.campaign.id, key, { requestId: 'locked', contact: { phone: somePhone() } });
      expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '2']);
      const cancelled = await ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/locked`, { key });
      expect(cancelled.status).to.equal(503);
      await placing.untilThereAre(503, 32);
      expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(503);
      await release();
      await placing.untilThereAre(202, 200);
      expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(200);
      const answers = await placing.stop();
      expect((await ask('DELETE', `${core.url}/console/api-keys/${keyId}`, { cookie })).status).to.equal(204);
      expect((await placeCall(core.url, tenants.campaign.id, key)).status).to.equal(401);
      await core.stop(signal);
      expect(await findBrokenPromises(database, answers)).to.deep.equal([]);
    });
  }

  it('a core on a full disk returns 503, keeps every acknowledged call, and recovers without a restart (needs root to mount a disk)', async function () {
    const directory = mountDisk(this, 'size=3m');
    try {
      const database = `sqlite:${join(directory, 'callkey.db')}`;
      const core = await startCoreHere(database);
      const { tenants, key } = await withKey(database, core);
      const variables = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`v${n}`, 'x'.repeat(1_000)]));
      const statuses: number[] = [];
      for (let call = 0; call < 100 && statuses.at(-1) !== 503; call++) {
        statuses.push(
          (await placeCall(core.url, tenants.campaign.id, key, { requestId: `r${call}`, contact: { phone: somePhone() }, variables }))
            .status,
        );
      }
      expect(statuses.at(-1)).to.equal(503);
      execFileSync('mount', ['-o', 'remount,size=64m', directory]);
      expect((await placeCall(core.url, tenants.campaign.id, key)).status).to.equal(202);
      await core.close();
      const direct = await openDirect(database);
      const kept: string[] = await direct.storage.database.read('calls').pluck('request_id');
      await direct.close();
      const acknowledged = statuses.flatMap((status, call) => (status === 202 ? [`r${call}`] : []));
      expect(acknowledged.filter((id) => !kept.includes(id))).to.deep.equal([]);
    } finally {
      execFileSync('umount', ['-l', directory]);
    }
  });
});
