import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';
import { describeAdminWithTenants } from '../support/tenants.ts';

const phone = '+493012345678';

describeAdminWithTenants('admin, for protection rules', ({ admin, json, direct, tenants }) => {
  let account: string[];
  let partner: string[];
  beforeEach(() => {
    account = ['--account', tenants.account.id];
    partner = ['--partner', tenants.partner.id];
  });

  const read = () => direct.storage.database.read;
  const listed = async () => (await read()('do_not_call').orderBy('phone')).map((row) => row.phone);
  const actions = async () => (await read()('audit_events').orderBy('id')).map(({ action }) => action).slice(-4);
  function file(content: string | object, name = 'numbers.csv'): string {
    const path = join(freshDirectory(), name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }

  describe('do-not-call', () => {
    it('adds a number once, in any common format, and keeps the older entry', async () => {
      const { entry } = await json(
        'do-not-call',
        'add',
        '+49 (30) 1234-5678',
        ...account,
        '--reason',
        'complaint',
        '--until',
        '2099-01-31',
      );
      expect(entry).to.include({ phone, reason: 'complaint', source: 'admin', createdBy: null, endsAt: '2099-01-31T23:59:59.999Z' });
      expect((await json('do-not-call', 'add', phone, ...account)).entry.id).to.equal(entry.id);
      expect(await listed()).to.deep.equal([phone]);
    });

    it('lists the numbers of an account or a partner, and removes them with a reason', async () => {
      await admin(['do-not-call', 'add', phone, ...account]);
      await admin(['do-not-call', 'add', '+33123456789', ...partner]);
      const listPhones = async (...scope: string[]) =>
        (await json('do-not-call', 'list', ...scope)).entries.map((entry: { phone: string }) => entry.phone);
      expect(await listPhones(...partner)).to.deep.equal(['+33123456789', phone]);
      expect(await listPhones(...account)).to.deep.equal([phone]);
      for (const start of ['+4930', '+49', '4']) expect(await listPhones(...partner, '--search', start)).to.deep.equal([phone]);
      expect((await admin(['do-not-call', 'remove', phone, ...account])).code).to.equal(2);
      expect(await json('do-not-call', 'remove', phone, ...account, '--reason', 'Asked for a call')).to.deep.equal({ removed: phone });
      expect((await admin(['do-not-call', 'remove', phone, ...account, '--reason', 'again'])).code).to.equal(3);
      expect(await actions()).to.include.members(['do-not-call.added', 'do-not-call.lifted']);
    });

    it('refuses an invalid number, reason, date or scope', async () => {
      for (const args of [
        ['12', ...account],
        [phone, ...account, '--reason', 'none'],
        [phone, ...account, '--until', 'tomorrow'],
        [phone, ...account, '--until', '2020-01-01'],
        [phone],
        [phone, ...account, ...partner],
      ]) {
        expect((await admin(['do-not-call', 'add', ...args])).code, args.join(' ')).to.equal(2);
      }
      expect((await admin(['do-not-call', 'add', phone, '--account', 'unknown'])).code).to.equal(3);
    });
  });

  describe('calling-hours', () => {
    const rules = [
      { prefix: '+49', days: ['mon', 'tue'], from: '09:00', to: '20:00' },
      { prefix: '', date: '2026-12-25', closed: true },
    ];

    it('replaces the rules of a scope, stores each of their days once, shows which scopes inherit them, and removes them', async () => {
      const path = file([{ ...rules[0], days: ['mon', 'tue', 'mon'] }, ...rules.slice(1)], 'hours.json');
      expect(await json('calling-hours', 'set', path, ...partner)).to.deep.equal({ rules });
      const from = { kind: 'partner', id: tenants.partner.id, name: tenants.partner.name };
      expect(await json('calling-hours', 'list', '--campaign', tenants.campaign.id)).to.deep.equal({
        rules: [],
        inherited: { from, rules },
      });
      expect((await admin(['calling-hours', 'list', ...partner])).stdout).to.match(/\+49 +mon tue +09:00-20:00/);
      expect(await json('calling-hours', 'set', file('[]', 'none.json'), ...partner)).to.deep.equal({ rules: [] });
      expect(await json('calling-hours', 'list', ...account)).to.deep.equal({ rules: [], inherited: null });
    });

    it('warns that some numbers may be called at any time', async () => {
      expect((await admin(['calling-hours', 'set', file(rules, 'hours.json'), ...account])).stdout).to.contain('may be called at any time');
    });

    it('refuses an invalid file, and says what is wrong and where', async () => {
      const { code, stderr } = await admin(['calling-hours', 'set', file([{ ...rules[0], to: '08:00' }], 'hours.json'), ...account]);
      expect([code, stderr]).to.satisfy(
        ([exit, text]: [number, string]) => exit === 2 && text.includes('0.to: The end must be later than the start.'),
      );
      expect((await admin(['calling-hours', 'set', file('no JSON', 'hours.json'), ...account])).code).to.equal(2);
      expect((await admin(['calling-hours', 'set', '/nowhere.json', ...account])).code).to.equal(2);
    });
  });

  describe('numbers', () => {
    it('says which kinds of numbers exist', async () => {
      const { code, stderr } = await admin(['numbers', 'set', ...account, '--kinds', 'bogus']);
      expect([code, stderr]).to.deep.equal([2, 'error: --kinds: 0: Must be one of premium-rate, shared-cost, satellite, personal.\n']);
    });

    it('limits countries and allows kinds of numbers, and accounts inherit both', async () => {
      await json('numbers', 'set', ...partner, '--countries', 'de,AT', '--kinds', 'premium-rate,satellite');
      const effective = { countries: ['DE', 'AT'], kinds: ['premium-rate', 'satellite'] };
      expect(await json('numbers', 'show', ...account)).to.deep.equal({ numbers: { countries: null, kinds: null, effective } });
      const { numbers } = await json('numbers', 'set', ...account, '--countries', 'all', '--kinds', 'none');
      expect(numbers).to.deep.equal({ countries: [], kinds: [], effective: { countries: [], kinds: [] } });
      expect((await json('numbers', 'set', ...account, '--kinds', 'inherit')).numbers.effective.kinds).to.deep.equal(effective.kinds);
    });

    it('refuses unknown countries and kinds, and a command that changes nothing', async () => {
      for (const args of [['--countries', 'Germany'], ['--countries', 'DE,UK'], ['--kinds', 'cheap'], []]) {
        expect((await admin(['numbers', 'set', ...account, ...args])).code, args.join(' ')).to.equal(2);
      }
    });
  });

  it("applies an account's opt-outs to all of its partner's accounts, and records each change only once", async () => {
    const optOuts = (scope: string) => json('account', 'opt-outs', tenants.account.id, '--for', scope);
    expect(await optOuts('partner')).to.deep.equal({ optOuts: { listedFor: 'partner' } });
    await optOuts('partner');
    expect(await direct.ports.stores.doNotCall.optOutScope(tenants.account.id)).to.equal('partner');
    await optOuts('account');
    const changes = await read()('audit_events').where({ action: 'account.changed' }).orderBy('id').pluck('detail');
    expect(changes).to.deep.equal(["opt-outs apply to all of the partner's accounts", 'opt-outs apply only to this account']);
    expect((await admin(['account', 'opt-outs', tenants.account.id])).code).to.equal(2);
  });
});
