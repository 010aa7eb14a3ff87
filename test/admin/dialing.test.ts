import { expect } from 'chai';
import { describeAdminWithTenants, insertCalls } from '../support/tenants.ts';

describeAdminWithTenants('admin, for dialing', ({ admin, json, direct, tenants }) => {
  let account: string[];
  let partner: string[];
  beforeEach(() => {
    account = ['--account', tenants.account.id];
    partner = ['--partner', tenants.partner.id];
  });

  const actions = async () => (await direct.storage.database.read('audit_events').orderBy('id')).map(({ action }) => action);
  const refused = async (code: number, message: string, ...args: string[]) => {
    const ended = await admin(args);
    expect([ended.code, ended.stdout], args.join(' ')).to.deep.equal([code, '']);
    expect(ended.stderr, args.join(' ')).to.contain(message);
  };

  it('stops dialing, cancels queued calls on request, lists what is stopped, and resumes it', async () => {
    await insertCalls(direct, tenants, ['a', 'b'], {});
    const { name } = tenants.account;
    const first = await admin(['dialing', 'stop', ...account, '--reason', 'Wrong recording']);
    expect([first.code, first.stdout]).to.deep.equal([
      0,
      `Dialing is stopped for the account ${name}: 2 queued calls waiting, 0 calls with the provider.\n`,
    ]);
    const cancel = ['dialing', 'stop', ...account, '--cancel-queued-calls'];
    expect((await admin(cancel)).stdout).to.equal(
      `Dialing is stopped for the account ${name}, and its queued calls are cancelled: 0 queued calls waiting, 0 calls with the provider.\n`,
    );
    const again = await json(...cancel);
    expect(again).to.deep.include({ queuedCalls: 0, withProvider: 0 });
    expect(again.stop).to.deep.include({ scope: 'account', target: { id: tenants.account.id, name }, reason: 'Wrong recording', by: null });
    await json('dialing', 'stop', '--server');
    const { stops } = await json('dialing', 'list');
    expect(stops.map(({ scope }: { scope: string }) => scope)).to.deep.equal(['server', 'account']);
    expect((await admin(['dialing', 'list'])).stdout).to.match(
      /^SCOPE +NAME +STOPPED +BY +REASON\nserver .+\naccount .+ operator +Wrong recording\n$/,
    );
    expect((await json('dialing', 'resume', '--server')).resumed.scope).to.equal('server');
    expect((await admin(['dialing', 'resume', ...account])).stdout).to.equal(`Dialing is resumed for the account ${name}.\n`);
    await refused(3, "Dialing isn't stopped for the server.", 'dialing', 'resume', '--server');
    expect((await admin(['dialing', 'list'])).stdout).to.equal('Nothing is stopped.\n');
    expect((await actions()).slice(-4)).to.deep.equal(['dialing.stopped', 'dialing.stopped', 'dialing.resumed', 'dialing.resumed']);
  });

  it('sets and shows a pace, and keeps the value that is not specified', async () => {
    expect((await admin(['dialing', 'pace', ...account])).stdout).to.equal('Calls per second: any number\nLive calls: any number\n');
    await json('dialing', 'pace', ...account, '--per-second', '0.5', '--live-calls', '20');
    expect(await json('dialing', 'pace', ...account, '--per-second', '1000')).to.deep.equal({ pace: { perSecond: 1_000, liveCalls: 20 } });
    await json('dialing', 'pace', ...account, '--live-calls', 'none');
    expect(await json('dialing', 'pace', ...account)).to.deep.equal({ pace: { perSecond: 1_000, liveCalls: null } });
    await json('dialing', 'pace', ...account, '--per-second', 'none', '--live-calls', '1');
    const events = await direct.storage.database.read('audit_events').orderBy('id');
    expect(events.map(({ detail }) => detail).slice(-2)).to.deep.equal([
      '1000 per second, any number of live calls',
      'any number per second, 1 live call',
    ]);
  });

  it('sets, shows, inherits and removes contact limits', async () => {
    const limits = { calls: 3, days: 1, minutesBetween: 240 };
    const three = ['--calls', '3', '--days', '1', '--minutes-between', '240'];
    expect((await admin(['contact-limits', 'list', ...account])).stdout).to.equal(
      'No contact limits: a number may be called at any time.\n',
    );
    const from = { kind: 'partner', id: tenants.partner.id, name: tenants.partner.name };
    expect(await json('contact-limits', 'set', ...partner, ...three)).to.deep.equal({ limits, effective: { from, limits } });
    expect(await json('contact-limits', 'show', ...account)).to.deep.equal({ limits: null, effective: { from, limits } });
    expect((await admin(['contact-limits', 'list', ...account])).stdout).to.equal(
      `At most 3 calls to one number in 1 day, at least 240 minutes apart (from partner ${from.name})\n`,
    );
    expect(await json('contact-limits', 'set', ...partner, '--none')).to.deep.equal({ limits: null, effective: null });
  });

  it('says what a pace, limits or a scope must be, and changes nothing', async () => {
    const stop = 'Specify exactly one of --server, --partner, --account, --campaign.';
    const before = await actions();
    await refused(2, stop, 'dialing', 'stop');
    await refused(2, stop, 'dialing', 'stop', '--server', ...account);
    await refused(2, stop, 'dialing', 'resume', ...account, ...partner);
    await refused(3, "The account unknown doesn't exist.", 'dialing', 'stop', '--account', 'unknown');
    await refused(2, '--reason: Must be at most', 'dialing', 'stop', ...account, '--reason', 'x'.repeat(1_000));
    await refused(2, 'Specify exactly one of --account, --campaign.', 'dialing', 'pace', '--per-second', '1');
    for (const value of ['0', '-1', 'NaN', '1001', '', ' ', '0x10', '1e2', 'Infinity'])
      await refused(2, '--per-second: Must be a number from 0.1 to 1000, or none.', 'dialing', 'pace', ...account, '--per-second', value);
    await refused(
      2,
      '--live-calls: Must be a whole number from 1 to 100000, or none.',
      'dialing',
      'pace',
      ...account,
      '--live-calls',
      '1.5',
    );
    const set = ['contact-limits', 'set', ...account];
    const all = 'Specify --calls, --days and --minutes-between, or --none.';
    await refused(2, all, ...set);
    await refused(2, all, ...set, '--calls', '1', '--days', '1');
    await refused(2, all, ...set, '--none', '--calls', '1');
    for (const [calls, days, between, message] of [
      ['0', '1', '0', '--calls: Must be a whole number from 1 to 100.'],
      ['1', '31', '0', '--days: Must be a whole number from 1 to 30.'],
      ['1', 'NaN', '0', '--days: Must be a whole number from 1 to 30.'],
      ['1', '1', '', '--minutes-between: Must be a whole number from 0 to 43200.'],
      ['1', '1', '-1', '--minutes-between: Must be a whole number from 0 to 43200.'],
    ] as const)
      await refused(2, message, ...set, '--calls', calls, '--days', days, '--minutes-between', between);
    expect(await actions()).to.deep.equal(before);
  });
});
