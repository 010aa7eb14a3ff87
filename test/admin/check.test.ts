import { rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { createSecretBox } from '../../core/server/sealed-secrets.ts';
import { adminOn, describeAdmin, runScript } from '../support/commands.ts';
import { emptyDatabase } from '../support/databases.ts';
import { createTenants, openDirect } from '../support/tenants.ts';

describeAdmin('admin check', ({ admin, json, kind, database }) => {
  it("fails if there's no database, or only an empty one", async () => {
    const { code, stdout, stderr } = await adminOn(await emptyDatabase(kind)).admin(['check']);
    if (kind === 'sqlite') expect([code, stderr.includes("doesn't exist. Set DATABASE_URL")]).to.deep.equal([3, true]);
    else expect([code, stdout.includes('FAIL   schema')]).to.deep.equal([1, true]);
  });

  it('makes all checks, and succeeds on a new database', async () => {
    const { ok, checks } = await json('check');
    expect(ok).to.equal(true);
    const order = kind === 'sqlite' ? ['database', 'integrity', 'disk', 'privacy'] : ['database', 'durability', 'primary'];
    expect(checks.map(({ name }: { name: string }) => name)).to.deep.equal([...order, 'rights', 'schema', 'clock', 'users', 'dialer']);
  });

  if (kind === 'postgres') {
    it("says what to do if the database can't be reached", async () => {
      const { code, stdout } = await adminOn(`${database()}?sslmode=verify-full`).admin(['check']);
      expect(code).to.equal(1);
      expect(stdout).to.match(/^FAIL {3}database: the server doesn't use TLS\. Turn on ssl in postgresql\.conf, or remove sslmode from/m);
    });

    it('reports that the role may not write', async () => {
      const { code, stdout } = await adminOn(`${database()}?options=-cdefault_transaction_read_only%3Don`).admin(['check']);
      expect([code, stdout]).to.deep.include(1);
      expect(stdout).to.contain('FAIL   primary: PostgreSQL is read-only (default_transaction_read_only).');
    });
  } else {
    it('says how to fix an invalid session secret', async () => {
      const file = `${database().replace('sqlite:', '')}.session-secret`;
      writeFileSync(file, 'too short', { mode: 0o600 });
      const result = await admin(['check']);
      expect(result.code, result.stdout).to.equal(1);
      expect(result.stdout).to.match(/^FAIL {3}session secret: .+ Delete the file .+$/m);
      writeFileSync(file, 'x'.repeat(43), { mode: 0o600 });
      expect((await admin(['check'])).stdout).to.contain('ok     session secret: valid');
      rmSync(file);
    });
  }

  it('reports second factors that no session secret can decrypt', async () => {
    const env = (secret: string) => ({ DATABASE_URL: database(), SESSION_SECRETS: secret.repeat(40) });
    const { storage, ports, close } = await openDirect(database());
    const { users } = await createTenants(ports);
    const secretBox = createSecretBox(['a'.repeat(40)], ports.randomness);
    await ports.stores.secondFactors.enroll({ id: users.account.id }, secretBox.seal(users.account.id, new Uint8Array(20)));
    const look = async (secret: string) => (await runScript('core/admin.ts', ['check'], { env: env(secret) })).stdout;
    expect(await look('a')).to.contain('ok     second factors: can be decrypted');
    expect(await look('b')).to.match(/^FAIL {3}second factors: 1 user: .+SESSION_SECRETS no longer contains.+reset EMAIL$/m);
    await storage.database.write('second_factors').delete();
    await close();
  });

  it('reports a clock that is far ahead of the recorded time until an administrator accepts it', async () => {
    const direct = await openDirect(database());
    const clock = () => direct.storage.database.write('clock');
    await clock().update({ newest_at: instant(0) });
    await direct.storage.database.write('recorded_retention').insert({ one: 1, contact_days: 90, audit_event_days: null });
    const refused = await Promise.all(['check', 'clock show', 'retention run'].map((command) => admin(command.split(' '))));
    expect(refused.map(({ code }) => code)).to.deep.equal([1, 1, 4]);
    expect(refused[0]?.stdout).to.match(/^FAIL {3}clock: This machine's clock is \d+ days ahead of 1970-.+ run: .+ clock accept$/m);
    expect(refused[2]?.stderr).to.match(/^error: This machine's clock is \d+ days ahead of 1970-/m);
    const { acceptedAt } = await json('clock', 'accept');
    expect(await json('clock', 'show')).to.deep.include({ ok: true, recordedAt: acceptedAt });
    expect((await admin(['check'])).code).to.equal(0);
    expect(await direct.storage.database.read('audit_events').where({ action: 'clock.accepted' })).to.have.length(1);
    await clock().update({ newest_at: null });
    await direct.close();
  });

  it('says how long the provider has been refusing calls, as recorded by a running core', async () => {
    const direct = await openDirect(database());
    const { dialing } = direct.ports.stores;
    expect((await admin(['check'])).stdout).to.contain('ok     dialer: no calls are due');
    const now = Date.now();
    const since = now - 3_600_000;
    await dialing.noteTrouble('core-1', { since: instant(since), reason: 'connection refused' }, instant(now));
    await dialing.noteTrouble('core-2', { since: instant(since + 1), reason: 'HTTP 503' }, instant(now));
    const { code, stdout } = await admin(['check']);
    const text = `FAIL   dialer: the provider hasn't accepted a call since ${new Date(since).toISOString()}: connection refused`;
    expect([code, stdout.includes(text)], stdout).to.deep.equal([1, true]);
    await dialing.noteTrouble('core-1', null, instant(now));
    expect((await admin(['check'])).stdout).to.contain('HTTP 503');
    // A report this old no longer counts, because the core that made it may have died.
    await dialing.noteTrouble('core-2', { since: instant(since), reason: 'HTTP 503' }, instant(now - 600_000));
    expect((await admin(['check'])).code).to.equal(0);
    await direct.close();
  });
});
