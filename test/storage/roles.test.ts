import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { adminOn } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createKey, createTenants, onDemand, openDirect, placeCall, signIn } from '../support/tenants.ts';

/**
 * Of all settings that a user may change, these made a core fail: tried one at a time, each with its extreme values. These times are longer,
 * because a busy machine may need some of them before a new connection has its own settings.
 */
const oddDefaults = [
  ...["default_transaction_isolation = 'serializable'", "transaction_timeout = '17s'", "idle_session_timeout = '17s'"],
  ...["statement_timeout = '17s'", "lock_timeout = '17s'", 'transform_null_equals = on', 'synchronous_commit = off'],
];

describe('a core on PostgreSQL whose role can only read and change rows in its own schema', () => {
  it('has every permission that it needs once the owner has run the migrations, whatever its own defaults are', async () => {
    const database = await emptyDatabase('postgres');
    const suffix = randomBytes(4).toString('hex');
    const [owner, core] = [`owner_${suffix}`, `core_${suffix}`];
    const name = new URL(database).pathname.slice(1);
    const client = new pg.Client(database);
    await client.connect();
    // As described in core/docs/operations/postgresql.md.
    await client.query(`
      CREATE ROLE ${owner} LOGIN PASSWORD 'owner';
      CREATE ROLE ${core} LOGIN PASSWORD 'core';
      CREATE SCHEMA callkey AUTHORIZATION ${owner};
      ALTER ROLE ${owner} IN DATABASE ${name} SET search_path = callkey;
      ALTER ROLE ${core} IN DATABASE ${name} SET search_path = callkey;
      ${oddDefaults.map((setting) => `ALTER ROLE ${core} IN DATABASE ${name} SET ${setting}`).join(';')};
      GRANT USAGE ON SCHEMA callkey TO ${core};
      ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA callkey GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${core};
      ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA callkey GRANT USAGE, SELECT ON SEQUENCES TO ${core};`);
    const formatUrl = (username: string, password: string) => Object.assign(new URL(database), { username, password }).href;
    expect((await adminOn(formatUrl(owner, 'owner')).admin(['migrate'])).code).to.equal(0);

    const running = await startCoreHere(formatUrl(core, 'core'));
    const direct = await openDirect(formatUrl(core, 'core'));
    const { campaign } = await createTenants(direct.ports);
    const keptDefaults = await direct.storage.database.query<{ name: string }>(
      `SELECT name FROM pg_settings WHERE source = 'database user'`,
      [],
    );
    await direct.close();
    const cookie = await signIn(running.url, 'ada@example.com');
    const { id, keyValue } = await createKey(running.url, cookie);
    const placed = await placeCall(running.url, campaign.id, keyValue);
    const answers = [
      placed,
      await ask('DELETE', `${onDemand(running.url, campaign.id)}/${textAt(placed, 'contactId')}`, { key: keyValue }),
      await placeCall(running.url, campaign.id, keyValue),
      await ask('DELETE', `${running.url}/console/api-keys/${id}?cancelQueuedCalls=true`, { cookie }),
      await ask('GET', `${running.url}/console/campaigns/${campaign.id}/calls`, { cookie }),
      await ask('GET', `${running.managementUrl}/readyz`),
    ];
    const owning = new pg.Client(formatUrl(owner, 'owner'));
    await owning.connect();
    await owning.query(`REVOKE DELETE ON sessions, audit_events FROM ${core}; REVOKE INSERT, UPDATE ON calls FROM ${core}`);
    await owning.end();
    const ready = await ask('GET', `${running.managementUrl}/readyz`);
    const { code, stdout } = await adminOn(formatUrl(core, 'core')).admin(['check']);
    const isUnready = (msg: unknown) => String(msg).startsWith('not ready');
    const unready = running.log.filter(({ msg }) => isUnready(msg));
    await running.close();
    const { rows } = await client.query(`SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname IN ('public', 'callkey')`);
    const refused = new pg.Client(formatUrl(core, 'core'));
    await refused.connect();
    const denied = await refused.query('CREATE TABLE more (n integer)').then(
      () => 'made',
      (error: Error) => error.message,
    );
    await refused.end();
    await client.end();
    expect(keptDefaults).to.deep.equal([{ name: 'search_path' }]);
    expect(answers.map(({ status }) => status)).to.deep.equal([202, 200, 202, 204, 200, 200]);
    expect(ready.status).to.equal(503);
    expect(JSON.stringify(unready)).to.contain('lacks INSERT, UPDATE on calls; DELETE on sessions');
    expect(code, stdout).to.equal(1);
    expect(stdout).to.include('FAIL   rights: ');
    expect(rows).to.deep.equal([{ schemaname: 'callkey' }]);
    expect(denied).to.contain('permission denied');
    expect(
      running.log.filter(({ level, msg }) => (level === 'error' || level === 'warn') && !isUnready(msg)).map(({ msg }) => msg),
    ).to.deep.equal(['DIALER is off: calls stay queued']);
  });
});
