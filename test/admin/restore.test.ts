import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ownTables } from '../../core/storage/engine/tables.ts';
import { adminOn, runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory, onToolDatabases, toUnreleased } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { addTenants, createKey, openDirect, placeCall, signIn } from '../support/tenants.ts';

describe('admin restore', () => {
  onToolDatabases(({ kind, freshDatabase, emptyDatabase }) => {
    let url: string;
    let file: string;
    const admin = (...args: string[]) => adminOn(url).admin(args);
    const json = (...args: string[]) => adminOn(url).json(...args);
    beforeEach(async () => {
      url = await freshDatabase();
      file = join(freshDirectory(), 'backup');
    });

    async function listPartners(): Promise<string[]> {
      await using direct = await openDirect(url);
      return await direct.storage.database.read('partners').pluck('name');
    }

    it('restores the data, and lists the keys and users that are active again', async () => {
      const tenants = await addTenants(url);
      const core = await startCoreHere(url);
      const cookie = await signIn(core.url, 'ada@example.com');
      const kept = await createKey(core.url, cookie, 'Kept');
      const leaked = await createKey(core.url, cookie, 'Leaked');
      await json('user', 'disable', 'pat@example.com');
      await json('backup', file);
      const backedUp = readFileSync(file);
      await ask('DELETE', `${core.url}/console/api-keys/${leaked.id}`, { cookie });
      await json('user', 'delete', 'tom@example.com');
      await json('user', 'disable', 'sue@example.com');
      await json('user', 'disable', 'oda@example.com');
      await json('partner', 'add', 'Added since');
      await core.close();

      const answer = await json('restore', file);
      const [key, ...moreKeys] = answer.revokedApiKeys;
      expect([key.id, key.name, key.owner.name, moreKeys]).to.deep.equal([leaked.id, 'Leaked', 'Ada Account', []]);
      expect(key.revokedAt).to.match(/^\d{4}-.+Z$/);
      expect(answer.deletedUsers.map(({ email }: { email: string }) => email)).to.deep.equal(['tom@example.com']);
      const enabled = answer.disabledUsers.map(({ email }: { email: string }) => email);
      expect(enabled).to.deep.equal(['sue@example.com', 'oda@example.com']);
      expect(readFileSync(file).equals(backedUp)).to.equal(true);

      const restored = await startCoreHere(url);
      expect((await placeCall(restored.url, tenants.campaign.id, kept.keyValue)).status).to.equal(202);
      expect((await placeCall(restored.url, tenants.campaign.id, leaked.keyValue)).status).to.equal(202);
      // The user may have signed out since, so no session is restored.
      expect((await ask('GET', `${restored.url}/console/session`, { cookie })).status).to.equal(401);
      await signIn(restored.url, 'tom@example.com');
      await restored.close();
      const { ok } = await json('check');
      expect(ok).to.equal(true);
      expect(await listPartners()).not.to.include('Added since');
    });

    if (kind === 'sqlite')
      it('says in plain text which keys and users are active again, and what the operator can do', async () => {
        await addTenants(url);
        const core = await startCoreHere(url);
        const { id } = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'Leaked');
        await core.close();
        await json('backup', file);
        await json('key', 'revoke', id, '--cancel-queued-calls');
        await json('user', 'delete', 'tom@example.com');
        await json('user', 'disable', 'sue@example.com');
        const { code, stdout, stderr } = await admin('restore', file);
        expect([code, stderr]).to.deep.equal([0, '']);
        expect(stdout)
          .to.contain('calls that were cancelled or dialed since then can be dialed again')
          .and.to.match(/WORK AGAIN.*, with --cancel-queued-calls if QUEUED CALLS is "cancelled"\nID .*\n.+ Leaked .+ cancelled$/m)
          .and.to.contain('All sessions have ended')
          .and.to.contain('Do-not-call entries that were added after the backup are missing')
          .and.to.contain(
            'Later changes to key limits, users, second factors, calling hours, number rules, paces and contact limits are undone',
          )
          .and.to.contain('Dialing that was stopped after the backup is no longer stopped')
          .and.to.contain('CAN SIGN IN AGAIN')
          .and.to.match(/^tom@example\.com +Tom/m)
          .and.to.match(/ARE ENABLED AGAIN.*\nEMAIL.*\nsue@example\.com +Sue/);
      });

    it('is refused while a core is running, and changes nothing', async () => {
      await json('backup', file);
      await json('partner', 'add', 'Added since');
      const core = await startCoreHere(url);
      const refused = await admin('restore', file);
      const ready = await ask('GET', `${core.managementUrl}/readyz`);
      await core.close();
      const partners = await listPartners();
      expect([refused.code, ready.status, partners]).to.deep.equal([4, 200, ['Added since']]);
      expect(refused.stderr).to.match(/^error: .*[Ss]top.*\n$/);
    });

    it('works on an empty database', async () => {
      await json('partner', 'add', 'One');
      await json('backup', file);
      url = await emptyDatabase();
      expect(await json('restore', file)).to.deep.include({ revokedApiKeys: [], deletedUsers: [], disabledUsers: [] });
      const partners = await listPartners();
      expect(partners).to.deep.equal(['One']);
    });

    it('restores an older schema, even over a newer schema, and says which command to run next', async () => {
      const direct = await openDirect(url);
      await toUnreleased(direct.storage.database);
      await json('backup', file);
      await direct.close();
      await json('migrate');
      const { code, stdout } = await admin('restore', file);
      expect(code, stdout).to.equal(0);
      expect(stdout).to.include('missing 001-schema').and.to.include('admin -- migrate.\n');
      expect((await admin('user', 'list')).stderr).to.contain('schema is out of date');
      // What happened in a database with another schema is unknown. On PostgreSQL, its tables couldn't be replaced either.
      const again = await admin('restore', file);
      if (kind === 'sqlite') expect(again.stdout).to.contain("Couldn't read the previous database");
      else expect([again.code, again.stderr.includes('schema is out of date')], again.stderr).to.deep.equal([4, true]);
      expect((await json('migrate')).migrations).to.deep.equal(['001-schema']);
      expect((await json('check')).ok).to.equal(true);
    });

    it("refuses a backup that is missing, damaged, from a newer release or not Callkey's, and changes nothing", async () => {
      await json('partner', 'add', 'One');
      const backup = join(freshDirectory(), 'newer');
      const direct = await openDirect(url);
      const { write } = direct.storage.database;
      await write('schema_migrations').insert({ name: '999-later' });
      await json('backup', backup);
      await write('schema_migrations').where({ name: '999-later' }).delete();
      await json('backup', file);
      await direct.close();
      const notes = join(freshDirectory(), 'notes');
      writeFileSync(notes, 'These are my notes. '.repeat(1000));
      const cut = join(freshDirectory(), 'cut');
      writeFileSync(cut, readFileSync(file).subarray(0, Math.floor(statSync(file).size * 0.6)));
      const short = join(freshDirectory(), 'short');
      writeFileSync(short, readFileSync(file).subarray(0, -20));
      const codes: number[] = [];
      for (const wrong of [backup, notes, cut, short, '/nowhere']) {
        const { code, stdout, stderr } = await admin('restore', wrong);
        codes.push(code);
        expect([stdout, stderr.split('\n').length], stderr).to.deep.equal(['', 2]);
        expect(stderr).not.to.match(/node:|\.ts:/);
      }
      expect(codes).to.deep.equal(kind === 'sqlite' ? [4, 2, 2, 2, 2] : [4, 2, 2, 1, 2]);
      const { ok } = await json('check');
      const partners = await listPartners();
      expect(ok).to.equal(true);
      expect(partners).to.deep.equal(['One']);
    });

    if (kind === 'postgres') {
      it("keeps other programs' objects in the same schema, and leaves them out of backups", async () => {
        await json('partner', 'add', 'One');
        const direct = await openDirect(url);
        const { write } = direct.storage.database;
        await write.raw('CREATE TABLE theirs (id int PRIMARY KEY)');
        await write.raw('INSERT INTO theirs VALUES (1)');
        await write.raw('CREATE VIEW their_view AS SELECT id FROM theirs');
        await write.raw("CREATE TYPE their_type AS ENUM ('a')");
        await write.raw('CREATE FUNCTION their_function() RETURNS int LANGUAGE sql AS $$ SELECT id FROM theirs $$');
        await json('backup', file);
        await write.raw('INSERT INTO theirs VALUES (2)');
        await json('partner', 'add', 'Added since');
        await direct.close();
        await json('restore', file);
        const after = await openDirect(url);
        const { read } = after.storage.database;
        expect(await read('partners').pluck('name')).to.deep.equal(['One']);
        const { rows } = await read.raw("SELECT their_function(), id, 'a'::their_type AS type FROM their_view");
        expect(rows.map(({ id }: { id: number }) => id)).to.deep.equal([1, 2]);
        // A view on Callkey's tables would be lost, so nothing is restored.
        await after.storage.database.write.raw('CREATE VIEW on_ours AS SELECT id FROM partners');
        await after.close();
        await json('partner', 'add', 'Stays');
        const { code, stderr } = await admin('restore', file);
        expect(code, stderr).to.equal(1);
        expect(stderr).to.match(/depend on them; view on_ours depends on table partners$/m);
        expect((await json('partner', 'list')).partners).to.have.length(2);
      });

      it("exits with 5 only if the database is unreachable, and with 1 if PostgreSQL's tools are missing, as backup does", async () => {
        await json('backup', file);
        const ended: unknown[] = [];
        for (const env of [{ DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }, { DATABASE_URL: url, PATH: '/nowhere' }]) {
          for (const args of [
            ['restore', file],
            ['backup', join(freshDirectory(), 'backup')],
          ]) {
            const { code, stderr } = await runScript('core/admin.ts', ['--json', ...args], { env });
            ended.push([code, JSON.parse(stderr).error.code]);
          }
        }
        const [unreachable, failed] = [
          [5, 'unavailable'],
          [1, 'failed'],
        ];
        expect(ended).to.deep.equal([unreachable, unreachable, failed, failed]);
      });

      it('works with a pg_restore that is newer than the server, and sets a parameter that the server does not know', async () => {
        await json('partner', 'add', 'One');
        await json('backup', file);
        const programs = freshDirectory();
        const original = execFileSync('which', ['pg_restore'], { encoding: 'utf8' }).trim();
        // From version 17 on, pg_restore sets transaction_timeout, which earlier servers don't have.
        const settings = 'SET idle_in_transaction_session_timeout = 0;\\nSET transaction_timeout = 0;';
        const script = `#!/bin/sh\n${original} "$@" | sed 's/^SET idle_in_transaction_session_timeout = 0;$/${settings}/'\n`;
        writeFileSync(join(programs, 'pg_restore'), script, { mode: 0o755 });
        const env = { DATABASE_URL: url, PATH: `${programs}:${process.env['PATH']}` };
        const { code, stderr } = await runScript('core/admin.ts', ['restore', file], { env });
        expect([code, stderr]).to.deep.equal([0, '']);
        expect((await json('partner', 'list')).partners).to.have.length(1);
      });

      it("says who has to restore if the address's role doesn't own the tables", async () => {
        await json('backup', file);
        const core = Object.assign(new URL(url), { username: `core_${randomUUID()}`, password: 'x' });
        const direct = await openDirect(url);
        const { write } = direct.storage.database;
        await write.raw(`CREATE ROLE "${core.username}" LOGIN PASSWORD 'x'`);
        await write.raw(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO "${core.username}"`);
        await direct.close();
        const { code, stderr } = await adminOn(core.href).admin(['restore', file]);
        expect(code, stderr).to.equal(1);
        expect(stderr).to.match(
          /must be owner of table \w+\. Restore as the role that owns the tables: of two roles, the one in owner-url\.\n$/,
        );
      });

      it("says to create a role to which the backup grants rights, if the server doesn't have it", async () => {
        const reader = `reader_${randomUUID()}`;
        const direct = await openDirect(url);
        const { write } = direct.storage.database;
        await write.raw(`CREATE ROLE "${reader}"`);
        await write.raw(`GRANT SELECT ON partners TO "${reader}"`);
        await json('backup', file);
        await write.raw(`DROP OWNED BY "${reader}"`);
        await write.raw(`DROP ROLE "${reader}"`);
        await direct.close();
        const { code, stderr } = await admin('restore', file);
        expect(code, stderr).to.equal(1);
        expect(stderr).to.contain(
          `role "${reader}" does not exist. The backup grants rights to this role. Create it, then restore again.\n`,
        );
      });

      it('also works with plain pg_restore into an empty database', async () => {
        await json('partner', 'add', 'One');
        const direct = await openDirect(url);
        await direct.storage.database.write.raw('CREATE SCHEMA elsewhere');
        await direct.storage.database.write.raw('CREATE TABLE elsewhere.theirs (id int)');
        await direct.close();
        await json('backup', file);
        url = await emptyDatabase();
        execFileSync('pg_restore', ['-1', '--exit-on-error', `--dbname=${url}`, file], { stdio: 'pipe' });
        const { partners } = await json('partner', 'list');
        expect(partners.length).to.equal(1);
        expect((await json('check')).ok).to.equal(true);
      });

      it('includes every table that the migrations create', async () => {
        const direct = await openDirect(url);
        const { rows: tables } = await direct.storage.database.read.raw(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
        await direct.close();
        expect(tables.map(({ tablename }: { tablename: string }) => tablename)).to.have.members(ownTables);
      });

      it('restores into the schema that was backed up, and refuses an address with a different schema', async () => {
        const direct = await openDirect(url);
        await direct.storage.database.write.raw('CREATE SCHEMA "Own"');
        await direct.close();
        await json('migrate');
        const own = adminOn(`${url}?options=${encodeURIComponent('-c search_path="Own"')}`);
        await own.json('partner', 'add', 'One');
        await own.json('backup', file);
        await own.json('partner', 'add', 'Added since');
        await own.json('restore', file);
        const { partners } = await own.json('partner', 'list');
        expect(partners.map(({ name }: { name: string }) => name)).to.deep.equal(['One']);
        const { code, stderr } = await admin('restore', file);
        expect(code, stderr).to.equal(4);
        expect(stderr.split('\n').length, stderr).to.equal(2);
        expect(stderr).to.match(/schema Own.* to public\./);
        expect((await json('check')).ok).to.equal(true);
      });
    }
  });
});
