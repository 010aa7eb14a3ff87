import { join } from 'node:path';
import { expect } from 'chai';
import { Command } from 'commander';
import { accountCommands } from '../../core/admin/account.ts';
import { campaignCommands } from '../../core/admin/campaign.ts';
import { partnerCommands } from '../../core/admin/partner.ts';
import { userCommands } from '../../core/admin/user.ts';
import { adminOn, describeAdmin } from '../support/admin.ts';
import { startCoreHere } from '../support/core.ts';
import { emptyDatabase } from '../support/databases.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

const password = 'correct horse battery staple';

describeAdmin('the admin command line', emptyDatabase, ({ admin, json, kind, database }) => {
  it('sets up a tenancy that places a call, with a core running on the same database', async () => {
    const core = await startCoreHere(database());
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
    await core.close();
  });

  it('takes create, and its older name add', async () => {
    const { partner } = await json('partner', 'create', 'Northwind Voice');
    const { account } = await json('account', 'create', 'Blue Clinic', '--partner', partner.id);
    const { campaign } = await json('campaign', 'create', 'Reminders', '--account', account.id);
    const { user } = await json('user', 'create', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    expect([campaign.accountId, user.email]).to.deep.equal([account.id, 'stan@example.com']);
    const added = await Promise.all([
      json('partner', 'add', 'P'),
      json('account', 'add', 'A', '--partner', partner.id),
      json('campaign', 'add', 'C', '--account', account.id),
      json('user', 'add', 'sue@example.com', '--name', 'Sue', '--type', 'staff'),
    ]);
    expect(added.map(Object.keys)).to.deep.equal([['partner'], ['account'], ['campaign'], ['user', 'password']]);
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

  it('says that the database cannot be reached, without its password', async () => {
    // A file is no folder; and nobody listens on port 1.
    if (kind === 'sqlite') await json('migrate');
    const unreachable =
      kind === 'sqlite'
        ? `sqlite:${join(database().slice('sqlite:'.length), 'callkey.db')}`
        : 'postgres://callkey:hunter2@127.0.0.1:1/callkey';
    const { code, stderr } = await adminOn(unreachable).admin(['partner', 'add', 'One']);
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

describe('the help of admin', () => {
  const runner = { withDatabase: () => async () => undefined, withoutDatabase: () => async () => undefined };
  for (const commandsOf of [partnerCommands, accountCommands, campaignCommands, userCommands]) {
    it(`shows create and its older name: ${commandsOf.name}`, () => {
      const program = new Command();
      commandsOf(program, runner);
      expect(program.commands[0]?.helpInformation()).to.match(/^ {2}create\|add /m);
    });
  }
});
