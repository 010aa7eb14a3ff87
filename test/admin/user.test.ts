import { expect } from 'chai';
import { describeAdmin } from '../support/admin.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describeAdmin('admin user', emptyDatabase, ({ admin, json, database }) => {
  it('makes a one-time password where none is given, which signs in', async () => {
    const core = await startCoreHere(database());
    const { password: made } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const cookie = await signIn(core.url, 'stan@example.com', made);
    await core.close();
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
    const core = await startCoreHere(database());
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
    await core.close();
    expect((await admin(['user', 'delete', 'stan@example.com'])).code).to.equal(3);
  });

  it('gives a user a new password and ends their sessions', async () => {
    const core = await startCoreHere(database());
    const { password: first } = await json('user', 'add', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const cookie = await signIn(core.url, 'stan@example.com', first);
    const { password: second } = await json('user', 'password', 'stan@example.com');
    expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
    await signIn(core.url, 'stan@example.com', second);
    await core.close();
    expect(second).not.to.equal(first);
  });

  it('refuses a password that is too short', async () => {
    const { code, stderr } = await admin(['user', 'add', 'x@example.com', '--name', 'X', '--type', 'staff', '--password-stdin'], 'short\n');
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
});
