import { userInfo } from 'node:os';
import { expect } from 'chai';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { describeAdmin } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { ask } from '../support/http.ts';
import { createKey, openDirect, placeCall, signIn, signInFirst } from '../support/tenants.ts';

describeAdmin('admin user', ({ admin, json, database }) => {
  it('creates a partner user with an account, and explains what is wrong with an invalid combination', async () => {
    const { partner } = await json('partner', 'add', 'One');
    const { account } = await json('account', 'add', 'A', '--partner', partner.id);
    const add = (...more: string[]) => admin(['user', 'add', 'x@example.com', '--name', 'X', ...more]);
    for (const [args, complaint] of [
      [['--type', 'account'], 'needs an account'],
      [['--type', 'boss'], 'Allowed choices are account, partner, staff'],
    ] as const) {
      const { code, stderr } = await add(...args);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.include(complaint);
    }
    expect((await add('--type', 'partner', '--partner', partner.id, '--account', account.id)).code).to.equal(0);
    const again = await add('--type', 'staff');
    expect([again.code, again.stderr]).to.deep.equal([4, 'error: A user with the email address x@example.com already exists.\n']);
  });

  it("resets a user's password and ends their sessions", async () => {
    const core = await startCoreHere(database());
    const { password: first } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const cookie = await signIn(core.url, 'stan@example.com', first);
    const { password: second } = await json('user', 'password', 'stan@example.com');
    expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
    await signIn(core.url, 'stan@example.com', second);
    await core.close();
    expect(second).not.to.equal(first);
  });

  it('renames a user, shows their keys and sessions, ends the sessions, and deletes the user together with the keys', async () => {
    const core = await startCoreHere(database());
    const { password: made } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const { partner } = await json('partner', 'add', 'One');
    const cookie = await signInFirst(core.url, 'stan@example.com', made);
    await ask('PUT', `${core.url}/console/session/tenancy`, { cookie, body: { kind: 'partner', id: partner.id } });
    const { id, keyValue } = await createKey(core.url, cookie, 'CRM');
    expect((await json('user', 'rename', 'stan@example.com', 'Stan the Man')).user).to.include({ name: 'Stan the Man', userType: 'staff' });
    const { user } = await json('user', 'show', 'Stan@Example.com');
    expect(user).to.deep.include({ name: 'Stan the Man', sessions: 1, disabledAt: null, activeApiKeys: 1, maxActiveApiKeys: 1_000 });
    expect(user.apiKeys).to.deep.equal([{ id, name: 'CRM', lastUsedAt: null, queuedCalls: 0 }]);
    expect((await admin(['user', 'show', 'stan@example.com'])).stdout)
      .to.match(/^Name +Stan the Man$/m)
      .and.match(/^API keys +1, 1 of them active \(MAX_ACTIVE_KEYS_PER_USER is 1000\)$/m)
      .and.match(/^[\w-]{36} +CRM +Never +0$/m);
    expect((await placeCall(core.url, 'none', keyValue)).status).to.equal(403);
    expect(await json('session', 'revoke', 'stan@example.com')).to.include({ sessions: 1 });
    expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
    expect(await json('user', 'delete', 'stan@example.com')).to.include({ apiKeys: 1, sessions: 0 });
    expect((await placeCall(core.url, 'none', keyValue)).status).to.equal(401);
    await core.close();
    for (const command of ['show', 'delete']) expect((await admin(['user', command, 'stan@example.com'])).code).to.equal(3);
  });

  it('moves a user to another account or type, but not to an invalid combination', async () => {
    const [one, other] = [await json('partner', 'add', 'One'), await json('partner', 'add', 'Other')].map(({ partner }) => partner.id);
    const account = async (name: string, partner: string) => (await json('account', 'add', name, '--partner', partner)).account.id;
    const [from, to] = [await account('A', one), await account('B', other)];
    await json('user', 'add', 'ada@example.com', '--name', 'Ada', '--type', 'account', '--account', from);
    expect((await json('user', 'move', 'ada@example.com', '--account', to)).user.accountId).to.equal(to);
    const tied = await json('user', 'move', 'ada@example.com', '--type', 'partner', '--partner', other, '--account', to);
    expect(tied.user).to.include({ userType: 'partner', partnerId: other, accountId: to });
    expect((await admin(['user', 'move', 'ada@example.com', '--type', 'staff', '--account', to])).code).to.equal(2);
  });

  it('disables and enables a user, but not twice in a row, and records who ran the command', async () => {
    await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    expect((await json('user', 'disable', 'stan@example.com')).sessions).to.equal(0);
    expect((await admin(['user', 'list'])).stdout).to.match(/ Never \(disabled\)$/m);
    expect((await json('check')).checks).to.deep.include({ name: 'users', ok: true, detail: '0 can sign in' });
    expect((await admin(['user', 'disable', 'stan@example.com'])).code).to.equal(4);
    await json('user', 'enable', 'stan@example.com');
    expect((await admin(['user', 'enable', 'stan@example.com'])).code).to.equal(4);
    expect((await json('user', 'show', 'stan@example.com')).user.disabledAt).to.equal(null);
    const direct = await openDirect(database());
    const events = await direct.storage.database.read('audit_events').where('action', 'like', 'user.%able%').orderBy('id');
    await direct.close();
    expect(events.map(({ action, address }) => [action, address])).to.deep.equal([
      ['user.disabled', `local:${userInfo().username}`],
      ['user.enabled', `local:${userInfo().username}`],
    ]);
  });

  it("refuses a short password for a new user and a common one in a reset, and doesn't print them", async () => {
    await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    for (const [command, password, complaint] of [
      [['add', 'x@example.com', '--name', 'X', '--type', 'staff'], 'qz7', 'at least 8 characters'],
      [['password', 'stan@example.com'], 'password1', 'The password must not be a common one or a simple pattern'],
    ] as const) {
      const { code, stderr } = await admin(['user', ...command, '--password-stdin'], `${password}\n`);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.include(complaint);
      expect(stderr).not.to.contain(password);
    }
  });

  it('lists users as a table and as JSON', async () => {
    await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    expect((await admin(['user', 'list'])).stdout).to.match(
      /^EMAIL +NAME +TYPE +BELONGS TO +KEYS +LAST SIGN-IN\nstan@example\.com +Stan +staff +0 +Never\n$/,
    );
    expect((await json('user', 'list')).users).to.have.length(1);
  });

  it('resets a second factor, ends the sessions, and records it', async () => {
    await using direct = await openDirect(database());
    const { user } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const { stores, clock } = direct.ports;
    const none = await admin(['user', 'second-factor', 'reset', 'stan@example.com']);
    expect([none.code, none.stderr]).to.deep.equal([3, 'error: stan@example.com has no second factor.\n']);
    const event = auditEvent(direct.ports, operator.actor, 'second-factor.enabled', { kind: 'user', id: user.id, name: 'Stan' }, null);
    await stores.secondFactors.enroll(user, 'encrypted');
    expect((await json('user', 'show', 'stan@example.com')).user.secondFactor, 'before its confirmation').to.equal(false);
    await stores.secondFactors.confirm(user.id, { secret: 'encrypted', step: 1, recoveryDigests: ['a'], at: clock.now() }, event);
    expect((await json('user', 'show', 'stan@example.com')).user).to.include({ secondFactor: true, recoveryCodes: 1 });
    expect((await admin(['user', 'show', 'stan@example.com'])).stdout).to.match(/^Second factor +on, 1 recovery code left$/m);
    const reset = await json('user', 'second-factor', 'reset', 'stan@example.com');
    expect(reset).to.deep.include({ sessions: 0 });
    expect((await json('user', 'show', 'stan@example.com')).user.secondFactor).to.equal(false);
    const recorded = await direct.storage.database.read('audit_events').where({ action: 'second-factor.reset', subject_id: user.id });
    expect(recorded).to.have.length(1);
  });

  it('lists and removes links to identities at a provider, of which only the latest counts, and records who unlinked whom', async () => {
    await using direct = await openDirect(database());
    const { user } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    expect(await json('user', 'link', 'list')).to.deep.equal({ links: [] });
    const subject = { issuer: 'https://login.example.com', subject: 'stan-there' };
    const { stores, clock } = direct.ports;
    const event = { at: clock.now(), actor: null, action: 'user.linked', address: 'local', owningScope: null } as const;
    const link = (identity: typeof subject, id: string) =>
      stores.links.create(user, identity, true, { ...event, id, subject: { kind: 'user', id: user.id, name: 'Stan' } });
    expect(await link({ issuer: 'https://former.example.com', subject: 'stan-elsewhere' }, 'linked first')).to.equal(true);
    expect(await link(subject, 'linked')).to.equal(true);
    const { links } = await json('user', 'link', 'list');
    expect(links).to.have.length(1);
    expect(links[0]).to.deep.include({ email: 'stan@example.com', ...subject });
    expect((await json('user', 'show', 'stan@example.com')).user.link).to.deep.include(subject);
    expect((await admin(['user', 'show', 'stan@example.com'])).stdout).to.contain('stan-there at https://login.example.com');
    await json('user', 'link', 'remove', 'stan@example.com');
    expect(await json('user', 'link', 'list')).to.deep.equal({ links: [] });
    const again = await admin(['user', 'link', 'remove', 'stan@example.com']);
    expect([again.code, again.stderr]).to.deep.equal([4, "error: stan@example.com isn't linked to an identity at the provider.\n"]);
    const recorded = await direct.storage.database.read('audit_events').where({ action: 'user.unlinked', subject_id: user.id });
    expect(recorded).to.have.length(1);
  });

  it('shows the readable spelling of an email address in every text', async () => {
    const email = 'joerg@münchen.example';
    const add = ['add', email, '--name', 'Jörg', '--type', 'staff'];
    const commands = [
      ...[add, add, ['disable', email], ['disable', email], ['enable', email], ['enable', email], ['password', email]],
      ...[
        ['rename', email, 'Jo'],
        ['move', email, '--type', 'staff'],
        ['second-factor', 'reset', email],
        ['link', 'remove', email],
      ],
      ['delete', email],
    ];
    for (const command of commands) {
      const { stdout, stderr } = await admin(['user', ...command]);
      expect(stdout + stderr, command.join(' ')).to.contain(email);
    }
  });
});
