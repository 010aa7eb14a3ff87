import { join } from 'node:path';
import { expect } from 'chai';
import { adminOn } from '../support/admin.ts';
import { runScript } from '../support/commands.ts';
import { spawnCore } from '../support/core.ts';
import { emptyDatabase, freshDatabase, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, createTenants, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';

const password = 'correct horse battery staple';

describe('the admin command line', () => {
  onEachDatabase((kind) => {
    let database: string;
    const admin = (args: string[], input?: string) => adminOn(database).admin(args, input);
    const json = (...args: string[]) => adminOn(database).json(...args);

    beforeEach(async () => {
      database = await freshDatabase(kind);
    });

    it('sets up a tenancy that places a call, with a core running on the same database', async () => {
      const core = await spawnCore(database);
      const { partner } = await json('partner', 'add', 'Northwind Voice');
      expect(Object.keys(partner)).to.deep.equal(['id', 'name']);
      const { account } = await json('account', 'add', 'Blue Clinic', '--partner', partner.id);
      expect(account).to.include({ name: 'Blue Clinic', partnerId: partner.id });
      const { campaign } = await json('campaign', 'add', 'Reminders', '--account', account.id);
      expect(campaign).to.include({ name: 'Reminders', accountId: account.id });
      const added = await admin(
        ['user', 'add', 'Ada@Example.com', '--name', 'Ada', '--type', 'account', '--account', account.id, '--password-stdin', '--json'],
        `${password}\n`,
      );
      const { user, ...rest } = JSON.parse(added.stdout);
      expect(user).to.include({ email: 'ada@example.com', name: 'Ada', userType: 'account' });
      expect(rest).to.deep.equal({});
      const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com', password));
      expect((await placeCall(core.url, campaign.id, keyValue)).status).to.equal(202);
      await core.stop();
    });

    it('refuses names that lie, and says what to leave out', async () => {
      for (const args of [
        ['partner', 'add', 'One\u200b'],
        ['user', 'add', 'stan@example.com', '--type', 'staff', '--name', 'Stan\u202e'],
      ]) {
        const { code, stderr } = await admin(args);
        expect([code, stderr.includes('Leave out the character U+2')], stderr).to.deep.equal([2, true]);
      }
    });

    it('makes a one-time password where none is given, which signs in', async () => {
      const core = await spawnCore(database);
      const { password: made } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
      const cookie = await signIn(core.url, 'stan@example.com', made);
      await core.stop();
      expect(cookie).to.contain('callkey_session=');
    });

    it('adds partner users, tied or not, and says what is wrong with others', async () => {
      const { partner } = await json('partner', 'add', 'One');
      const { partner: other } = await json('partner', 'add', 'Other');
      const { account } = await json('account', 'add', 'A', '--partner', partner.id);
      const add = (...more: string[]) => admin(['user', 'add', 'x@example.com', '--name', 'X', ...more]);
      for (const [args, complaint] of [
        [['--type', 'account'], 'needs an account'],
        [['--type', 'account', '--account', account.id, '--partner', partner.id], 'no partner'],
        [['--type', 'account', '--account', 'none'], 'There is no account none'],
        [['--type', 'partner'], 'needs a partner'],
        [['--type', 'partner', '--partner', other.id, '--account', account.id], 'not beneath'],
        [['--type', 'staff', '--account', account.id], 'neither'],
        [['--type', 'boss'], 'Allowed choices are account, partner, staff'],
      ] as const) {
        const { code, stderr } = await add(...args);
        expect([code, stderr.includes(complaint)], stderr).to.deep.equal([2, true]);
      }
      expect((await add('--type', 'partner', '--partner', partner.id, '--account', account.id)).code).to.equal(0);
      const again = await add('--type', 'staff');
      expect([again.code, again.stderr]).to.deep.equal([4, 'error: There is a user with the e-mail address x@example.com already.\n']);
    });

    it('deletes a user with keys and sessions, and ends sessions', async () => {
      const core = await spawnCore(database);
      const { password: made } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
      const { partner } = await json('partner', 'add', 'One');
      const cookie = await signIn(core.url, 'stan@example.com', made);
      await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: { kind: 'partner', id: partner.id } });
      const { keyValue } = await createKey(core.url, cookie);
      expect((await placeCall(core.url, 'none', keyValue)).status).to.equal(403);
      expect(await json('session', 'revoke', 'stan@example.com')).to.include({ sessions: 1 });
      expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
      expect(await json('user', 'delete', 'stan@example.com')).to.include({ apiKeys: 1, sessions: 0 });
      expect((await placeCall(core.url, 'none', keyValue)).status).to.equal(401);
      await core.stop();
      expect((await admin(['user', 'delete', 'stan@example.com'])).code).to.equal(3);
    });

    it('lists and revokes keys of everybody, and cancels their queued calls when asked', async () => {
      const core = await spawnCore(database);
      const { partner } = await json('partner', 'add', 'One');
      const { account } = await json('account', 'add', 'A', '--partner', partner.id);
      const { campaign } = await json('campaign', 'add', 'C', '--account', account.id);
      await admin(
        ['user', 'add', 'ada@example.com', '--name', 'Ada', '--type', 'account', '--account', account.id, '--password-stdin'],
        password,
      );
      const { id, keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com', password), 'CRM');
      await placeCall(core.url, campaign.id, keyValue, { requestId: 'r1', contact: { phone: somePhone() } });
      const { apiKeys, total } = await json('key', 'list');
      expect([total, apiKeys[0].name, apiKeys[0].owner.name]).to.deep.equal([1, 'CRM', 'Ada']);
      expect(JSON.stringify(apiKeys)).not.to.contain('svc_sk_live_');
      await json('key', 'revoke', id, '--cancel-queued-calls');
      expect((await ask('DELETE', `${onDemand(core.url, campaign.id)}/by-request-id/r1`, { key: keyValue })).status).to.equal(401);
      await core.stop();
      const direct = await openDirect(database);
      const states = await direct.storage.database.read('calls').pluck('state');
      await direct.close();
      expect(states).to.deep.equal(['cancelled']);
      expect((await admin(['key', 'revoke', id])).code).to.equal(3);
    });

    it('gives a user a new password and ends their sessions', async () => {
      const core = await spawnCore(database);
      const { password: first } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
      const cookie = await signIn(core.url, 'stan@example.com', first);
      const { password: second } = await json('user', 'password', 'stan@example.com');
      expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
      await signIn(core.url, 'stan@example.com', second);
      await core.stop();
      expect(second).not.to.equal(first);
    });

    it('refuses a password that is too short', async () => {
      const { code, stderr } = await admin(
        ['user', 'add', 'x@example.com', '--name', 'X', '--type', 'staff', '--password-stdin'],
        'short\n',
      );
      expect([code, stderr.includes('at least 8 characters')]).to.deep.equal([2, true]);
      expect(stderr).not.to.contain('short');
    });

    it('lists users for people and for programs', async () => {
      await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
      expect((await admin(['user', 'list'])).stdout).to.match(
        /^E-MAIL +NAME +TYPE +OF +KEYS +LAST SIGN-IN\nstan@example\.com +Stan +staff +0 +Never\n$/,
      );
      expect((await json('user', 'list')).users).to.have.length(1);
    });

    it('checks what could go wrong', async () => {
      database = await emptyDatabase(kind);
      const before = await admin(['check']);
      if (kind === 'sqlite') expect([before.code, before.stderr.includes('There is no database')]).to.deep.equal([3, true]);
      else expect([before.code, before.stdout.includes('WRONG  schema')]).to.deep.equal([1, true]);
      await json('migrate');
      const { ok, checks } = await json('check');
      expect([ok, checks.length > 3]).to.deep.equal([true, true]);
    });

    it('counts the keys again, says where the kept counts are wrong, and puts them right when asked', async () => {
      const direct = await openDirect(database);
      const { write, read } = direct.storage.database;
      const { users, partner } = await createTenants(direct.ports);
      const key = { name: 'A key', creator_id: users.partner.id, creator_partner_id: partner.id, partner_id: partner.id, created_at: 1 };
      await write('api_keys').insert([1, 2].map((n) => ({ ...key, id: `key-${n}`, digest: `digest-${n}` })));
      const tallies = () => read('api_key_tallies').select('scope', 'id').sum({ keys: 'keys' }).groupBy('scope', 'id').orderBy('scope');
      const right = await tallies();
      expect((await admin(['check'])).stdout).to.contain('ok     tallies: agree with the API keys');
      await write('api_key_tallies').where({ scope: 'creator_id' }).update({ keys: 40 });
      await write('api_key_tallies').where({ scope: 'partner_id' }).delete();
      const found = await admin(['check']);
      expect([found.code, /^WRONG {2}tallies: 2 kept counts .+ check --repair$/m.test(found.stdout)], found.stdout).to.deep.equal([
        1,
        true,
      ]);
      expect((await admin(['check', '--repair'])).code).to.equal(0);
      expect(await tallies()).to.deep.equal(right);
      expect((await admin(['check'])).code).to.equal(0);
      await direct.close();
    });

    it('says that the database cannot be reached, without its password', async () => {
      // A file is no folder; and nobody listens on port 1.
      if (kind === 'sqlite') await json('migrate');
      database =
        kind === 'sqlite'
          ? `sqlite:${join(database.slice('sqlite:'.length), 'callkey.db')}`
          : 'postgres://callkey:hunter2@127.0.0.1:1/callkey';
      const { code, stderr } = await admin(['partner', 'add', 'One']);
      expect(code).to.equal(5);
      expect(stderr).to.match(/^error: .+\n$/);
      expect(stderr).not.to.contain('hunter2');
    });

    it('exits with 2 and a hint when it is used wrongly', async () => {
      for (const args of [
        ['nonsense'],
        ['partner', 'add'],
        ['account', 'add', 'x'],
        ['key', 'revoke'],
        ['user', 'add', 'x@y.z', '--nonsense'],
      ]) {
        const { code, stdout, stderr } = await admin(args);
        expect([code, stdout, stderr.includes('--help')], args.join(' ')).to.deep.equal([2, '', true]);
      }
    });
  });
});

describe('the demo', () => {
  it('fills an empty database, and its first call works as printed', async () => {
    const database = await freshDatabase('sqlite');
    const demo = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    expect(demo.code).to.equal(0);
    const key = /CALLKEY_API_KEY=(\S+)/.exec(demo.stdout)?.[1] ?? '';
    const campaign = /campaigns\/([\w-]+)\//.exec(demo.stdout)?.[1] ?? '';
    const body = /-d '(\{.*\})'/.exec(demo.stdout)?.[1] ?? '';
    const core = await spawnCore(database);
    expect((await placeCall(core.url, campaign, key, JSON.parse(body))).status).to.equal(202);
    const cookie = await signIn(core.url, 'sam@callkey.example', /password {2}(\S+)/.exec(demo.stdout)?.[1] ?? '');
    await core.stop();
    expect(cookie).to.contain('callkey_session=');
  });

  it('is refused on a database that has users', async () => {
    const database = await freshDatabase('sqlite');
    await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    const again = await runScript('scripts/demo.ts', [], { env: { DATABASE_URL: database } });
    expect([again.code, again.stdout]).to.deep.equal([1, '']);
    expect(again.stderr).to.contain('has users already');
  });
});
