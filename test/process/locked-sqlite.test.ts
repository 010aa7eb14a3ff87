import { expect } from 'chai';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { holdWriteLock } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';

describe("a core on SQLite while another process holds the file's lock", () => {
  let database: string;
  let core: CoreProcess;
  let tenants: Tenants;
  let key: string;
  let keyId: string;
  let cookie: string;

  beforeEach(async () => {
    ({ database, tenants } = await databaseWithTenants('sqlite'));
    core = await spawnCore(database);
    cookie = await signIn(core.url, 'ada@example.com');
    ({ id: keyId, keyValue: key } = await createKey(core.url, cookie));
  });
  afterEach(async () => {
    if (core.child.exitCode === null && core.child.signalCode === null) await core.stop('SIGKILL');
  });

  /** Places calls one after another. @returns the acknowledged request IDs */
  async function placeMany(count: number, prefix: string): Promise<string[]> {
    const acknowledged: string[] = [];
    for (let n = 0; n < count; n++) {
      const requestId = `${prefix}-${n}`;
      const { status } = await placeCall(core.url, tenants.campaign.id, key, { requestId, contact: { phone: somePhone() } });
      if (status === 202) acknowledged.push(requestId);
    }
    return acknowledged;
  }

  async function lost(acknowledged: readonly string[]): Promise<string[]> {
    const direct = await openDirect(database);
    const kept = new Set<string>(await direct.storage.database.read('calls').pluck('request_id'));
    await direct.close();
    return acknowledged.filter((id) => !kept.has(id));
  }

  /**
   * Places calls before, during and after another connection's write lock, and checks that a cancel fails during it. @returns the
   * acknowledged request IDs
   */
  async function placeThroughLock(): Promise<string[]> {
    const before = await placeMany(1, 'before');
    const release = await holdWriteLock(database);
    const cancelled = ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/by-request-id/before-0`, { key });
    const locked = await placeMany(1, 'locked');
    expect((await cancelled).status).to.equal(503);
    await release();
    return [...before, ...locked, ...(await placeMany(50, 'after'))];
  }

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    it(`revokes keys once the lock is released, and doesn't lose an acknowledged call when it's stopped with ${signal}`, async () => {
      const acknowledged = await placeThroughLock();
      expect(acknowledged).to.include('after-49');
      expect((await ask('DELETE', `${core.url}/console/api-keys/${keyId}`, { cookie })).status).to.equal(204);
      expect((await placeCall(core.url, tenants.campaign.id, key)).status).to.equal(401);
      await core.stop(signal);
      expect(await lost(acknowledged)).to.deep.equal([]);
    });
  }

  it("returns 503 for a large number of requests while it waits for the lock, and reports that it isn't ready", async () => {
    const release = await holdWriteLock(database);
    const answers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const { status, headers } = await placeCall(core.url, tenants.campaign.id, key);
        return { status, retryAfter: headers['retry-after'] };
      }),
    );
    const ready = await ask('GET', `${core.managementUrl}/readyz`);
    await release();
    expect([...new Set(answers.map((answer) => JSON.stringify(answer)))]).to.deep.equal(['{"status":503,"retryAfter":"2"}']);
    expect(ready.status).to.equal(503);
    expect((await ask('GET', `${core.managementUrl}/readyz`)).status).to.equal(200);
  });
});
