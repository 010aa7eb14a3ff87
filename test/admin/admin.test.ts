import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Command } from 'commander';
import { directoryCommands } from '../../core/admin/directory.ts';
import { userCommands } from '../../core/admin/user.ts';
import { adminOn, describeAdmin, runScript } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

const password = 'correct horse battery staple';

describeAdmin('the admin command', ({ admin, json, kind, database }) => {
  it('creates and lists partners, accounts, campaigns and users that a running core can use to place a call', async () => {
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
    const externalId: string | null = null;
    expect(await json('partner', 'list')).to.deep.equal({ partners: [{ ...partner, externalId }] });
    expect(await json('account', 'list')).to.deep.equal({ accounts: [{ ...account, externalId }] });
    expect(await json('campaign', 'list')).to.deep.equal({ campaigns: [{ ...campaign, externalId }] });
    expect((await admin(['campaign', 'list'])).stdout).to.match(/^ID +NAME +ACCOUNT +EXTERNAL ID\n[\w-]+ +Reminders +Blue Clinic\n$/);
  });

  it('deletes partners, accounts and campaigns to which nothing belongs', async () => {
    const { partner } = await json('partner', 'add', 'Short');
    const { account } = await json('account', 'add', 'Short', '--partner', partner.id);
    const { campaign } = await json('campaign', 'add', 'Short', '--account', account.id);
    for (const [kind, { id }, left] of [
      ['partner', partner, 'it has 1 account.'],
      ['account', account, 'it has 1 campaign.'],
    ] as const) {
      const { code, stderr } = await admin([kind, 'delete', id]);
      expect([code === 0, stderr]).to.satisfy(([isDone, text]: [boolean, string]) => !isDone && text.includes(left));
    }
    for (const [kind, { id }] of [
      ['campaign', campaign],
      ['account', account],
      ['partner', partner],
    ] as const) {
      expect(await json(kind, 'delete', id)).to.deep.equal({ deleted: { kind, id, name: 'Short' } });
      expect((await admin([kind, 'delete', id])).stderr).to.contain("doesn't exist");
    }
  });

  it('reports errors as a single JSON object with --json', async () => {
    await json('migrate');
    for (const [args, code, exitCode] of [
      [['user', 'show', 'nobody@example.com'], 'not-found', 3],
      [['partner', 'create', ''], 'invalid', 2],
      [['partner', 'create', 'One\u200b'], 'invalid', 2],
      [['user', 'create', 'stan@example.com', '--type', 'staff', '--name', 'Stan\u202e'], 'invalid', 2],
      [['nonsense'], 'usage', 2],
      [['partner'], 'usage', 2],
      [['partner', 'add'], 'usage', 2],
    ] as const) {
      const ended = await admin(['--json', ...args]);
      const { error } = JSON.parse(ended.stderr);
      expect([ended.code, ended.stdout, error.code, Object.keys(error)]).to.deep.equal([exitCode, '', code, ['code', 'message']]);
      expect(error.message).to.match(/^(?!error)[\w-].+/);
    }
    const wrong = await adminOn('nonsense:').admin(['--json', 'partner', 'list']);
    expect([wrong.code, JSON.parse(wrong.stderr).error.code]).to.deep.equal([2, 'configuration']);
  });

  it('reports that the database is unreachable without showing its password', async () => {
    // On SQLite, the address uses a file as a folder, and this command creates that file. On PostgreSQL, nothing listens on port 1.
    if (kind === 'sqlite') await json('migrate');
    const unreachable =
      kind === 'sqlite'
        ? `sqlite:${join(database().slice('sqlite:'.length), 'callkey.db')}`
        : 'postgres://callkey:hunter2@127.0.0.1:1/callkey';
    const { code, stderr } = await adminOn(unreachable).admin(['partner', 'add', 'One']);
    expect(code).to.equal(5);
    expect(stderr).to.match(/^error: Can't use the database .+ \(E\w+\)\. .+\n$/);
    expect(stderr).not.to.contain('hunter2');
  });

  it('exits with 2 and a hint on incorrect usage', async () => {
    for (const args of [
      ['nonsense'],
      ['partner', 'add'],
      ['account', 'add', 'x'],
      ['key', 'revoke'],
      ['user', 'add', 'x@y.z', '--nonsense'],
    ]) {
      const { code, stdout, stderr } = await admin(args);
      expect(code, args.join(' ')).to.equal(2);
      expect(stdout, args.join(' ')).to.equal('');
      expect(stderr, args.join(' ')).to.include('--help');
    }
  });
});

describe('a relative file path in a command', () => {
  it('is resolved against the folder that npm was run from', async () => {
    const [project, caller] = [freshDirectory(), freshDirectory()];
    const env = { DATABASE_URL: await freshDatabase('sqlite') };
    const byNpm = { ...env, npm_lifecycle_event: 'admin', INIT_CWD: caller };
    const run = (args: string[], environment: Record<string, string>) =>
      runScript('core/admin.ts', args, { env: environment, directory: project });
    expect((await run(['backup', 'copy.db'], byNpm)).stdout).to.equal(`Wrote ${join(caller, 'copy.db')}.\n`);
    expect((await run(['backup', 'copy.db'], env)).stdout).to.equal(`Wrote ${join(project, 'copy.db')}.\n`);
    writeFileSync(join(caller, 'tenancy.json'), '{"partners":[{"externalId":"p","name":"P"}]}');
    const imported = await run(['import', 'tenancy.json'], byNpm);
    const restored = await run(['restore', 'copy.db'], byNpm);
    expect([imported.code, restored.code], imported.stderr + restored.stderr).to.deep.equal([0, 0]);
  });
});

describe('admin help', () => {
  const runner = { withDatabase: () => async () => undefined, withoutDatabase: () => async () => undefined };
  it('lists both create and its older name', () => {
    const program = new Command();
    directoryCommands(program, runner);
    userCommands(program, runner);
    expect(program.commands).to.have.length(4);
    for (const command of program.commands) expect(command.helpInformation()).to.match(/^ {2}create\|add /m);
  });

  it('shows examples for each command', async () => {
    const without: string[] = [];
    const look = async (path: string[]): Promise<void> => {
      const { stdout } = await runScript('core/admin.ts', ['help', ...path]);
      const [, commands] = stdout.split('\nCommands:\n');
      if (commands === undefined && !stdout.includes(`\nExamples:\n  admin ${path.join(' ')}`)) without.push(path.join(' '));
      for (const [, name = ''] of commands?.matchAll(/^ {2}([\w-]+)/gm) ?? []) if (name !== 'help') await look([...path, name]);
    };
    await look([]);
    expect(without).to.deep.equal([]);
  });
});
