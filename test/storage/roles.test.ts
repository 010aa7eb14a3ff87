import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { adminOn } from '../support/commands.ts';
import { connected, startCoreHere } from '../support/core.ts';
import { databaseKinds, emptyDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, createTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

/**
 * Of all settings that a user may change, these made a core fail: tried one at a time, each with its extreme values. These times are longer,
 * because a busy machine may need some of them before a new connection has its own settings.
 */
const oddDefaults = [
  ...["default_transaction_isolation = 'serializable'", "transaction_timeout = '17s'", "idle_session_timeout = '17s'"],
  ...["statement_timeout = '17s'", "lock_timeout = '17s'", 'transform_null_equals = on', 'synchronous_commit = off'],
];

async function queryOn(url: string, sql: string): Promise<unknown[]> {
  const client = await connected(url);
  return client
    .query<object>(sql)
    .then(({ rows }) => rows)
    .finally(() => client.end());
}

/** Starts a core as described in core/docs/operations/postgresql.md: one role owns the tables, and the core has another one. */
async function openWithRoles() {
  const database = await emptyDatabase('postgres');
  const suffix = randomBytes(4).toString('hex');
  const [owner, core] = [`owner_${suffix}`, `core_${suffix}`];
  const name = new URL(database).pathname.slice(1);
  await queryOn(
    database,
    `CREATE ROLE ${owner} LOGIN PASSWORD 'owner';
    CREATE ROLE ${core} LOGIN PASSWORD 'core';
    CREATE SCHEMA callkey AUTHORIZATION ${owner};
    ALTER ROLE ${owner} IN DATABASE ${name} SET search_path = callkey;
    ALTER ROLE ${core} IN DATABASE ${name} SET search_path = callkey;
    ${oddDefaults.map((setting) => `ALTER ROLE ${core} IN DATABASE ${name} SET ${setting}`).join(';')};
    GRANT USAGE ON SCHEMA callkey TO ${core};
    ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA callkey GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${core};
    ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA callkey GRANT USAGE, SELECT ON SEQUENCES TO ${core};`,
  );
  const formatUrl = (username: string, password: string) => Object.assign(new URL(database), { username, password }).href;
  const [ownerUrl, url] = [formatUrl(owner, 'owner'), formatUrl(core, 'core')];
  expect((await adminOn(ownerUrl).admin(['migrate'])).code).to.equal(0);
  const running = await startCoreHere(url);
  const direct = await openDirect(url);
  const tenants = await createTenants(direct.ports);
  return {
    ...{ running, direct, tenants, url, database, role: core },
    queryAsOwner: (sql: string) => queryOn(ownerUrl, sql),
    close: () => Promise.all([direct.close(), running.close()]),
  };
}

const describeOnPostgres = databaseKinds.includes('postgres') ? describe : describe.skip;

describeOnPostgres('a core on PostgreSQL whose role can only read and change rows in its own schema', () => {
  const its = openOnce(openWithRoles);
  const isReady = () => ask('GET', `${its.running.managementUrl}/readyz`);
  const isUnready = (msg: unknown) => String(msg).startsWith('not ready');

  it('has every permission that it needs once the owner has run the migrations, whatever its own defaults are', async () => {
    const { url, log } = its.running;
    const keptDefaults = await its.direct.storage.database.query<{ name: string }>(
      `SELECT name FROM pg_settings WHERE source = 'database user'`,
      [],
    );
    const cookie = await signIn(url, 'ada@example.com');
    const { id, keyValue } = await createKey(url, cookie);
    const { campaign } = its.tenants;
    const placed = await placeCall(url, campaign.id, keyValue);
    const answers = [
      placed,
      await ask('DELETE', `${onDemand(url, campaign.id)}/${textAt(placed, 'contactId')}`, { key: keyValue }),
      await placeCall(url, campaign.id, keyValue),
      await ask('DELETE', `${url}/console/api-keys/${id}?cancelQueuedCalls=true`, { cookie }),
      await ask('GET', `${url}/console/campaigns/${campaign.id}/calls`, { cookie }),
      await isReady(),
    ];
    expect(keptDefaults).to.deep.equal([{ name: 'search_path' }]);
    expect(answers.map(({ status }) => status)).to.deep.equal([202, 200, 202, 204, 200, 200]);
    const warnings = log.filter(({ level, msg }) => (level === 'error' || level === 'warn') && !isUnready(msg)).map(({ msg }) => msg);
    expect(warnings).to.deep.equal(['DIALER is off: calls stay queued']);
  });

  it("can't create tables, and the migrations have created theirs only in the schema", async () => {
    const denied = await queryOn(its.url, 'CREATE TABLE more (n integer)').then(
      () => 'made',
      (error: Error) => error.message,
    );
    expect(denied).to.contain('permission denied');
    const schemas = `SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname IN ('public', 'callkey')`;
    expect(await queryOn(its.database, schemas)).to.deep.equal([{ schemaname: 'callkey' }]);
  });

  it('is not ready without one of its permissions, and its log and `admin check` name it', async () => {
    const [onDeletions, onChanges] = ['DELETE ON sessions, audit_events', 'INSERT, UPDATE ON calls'];
    await its.queryAsOwner(`REVOKE ${onDeletions} FROM ${its.role}; REVOKE ${onChanges} FROM ${its.role}`);
    try {
      expect((await isReady()).status).to.equal(503);
      const unready = its.running.log.filter(({ msg }) => isUnready(msg));
      expect(JSON.stringify(unready)).to.contain('lacks INSERT, UPDATE on calls; DELETE on sessions');
      const { code, stdout } = await adminOn(its.url).admin(['check']);
      expect(code, stdout).to.equal(1);
      expect(stdout).to.include('FAIL   rights: ');
    } finally {
      await its.queryAsOwner(`GRANT ${onDeletions} TO ${its.role}; GRANT ${onChanges} TO ${its.role}`);
    }
  });
});
