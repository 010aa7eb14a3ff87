import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { completeLine, csvRow, csvStart, incompleteLine } from '#contract/files/csv.ts';
import { instant } from '../../core/domain/instant.ts';
import { discardImports, finishImports } from '../../core/domain/protection/import-numbers.ts';
import { describeAdmin } from '../support/admin.ts';
import { freshDirectory } from '../support/databases.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';

const phone = '+493012345678';

describeAdmin('admin, for protection rules', ({ admin, json, database }) => {
  let direct: DirectAccess;
  let tenants: Tenants;
  let account: string[];
  let partner: string[];
  beforeEach(async () => {
    direct = await openDirect(database());
    tenants = await createTenants(direct.ports);
    account = ['--account', tenants.account.id];
    partner = ['--partner', tenants.partner.id];
  });
  afterEach(() => direct.close());

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

    it('imports the first column of a file, counts numbers that are already listed, and records one event without numbers', async () => {
      await admin(['do-not-call', 'add', phone, ...account]);
      const path = file('\ufeffPhone;Name\r\n030 12345678;Ada\r\n\r\n"+33 1 23 45 67 89";Grace\r\n+33123456789;again\r\n');
      expect(await json('do-not-call', 'import', path, ...account, '--country', 'de')).to.deep.equal({ added: 1, known: 1, wrong: [] });
      expect(await listed()).to.deep.equal(['+33123456789', phone]);
      const [event] = await read()('audit_events').where({ action: 'do-not-call.imported' });
      expect(event?.subject_name).to.equal('2 numbers');
      expect(await read()('number_imports')).to.deep.equal([]);
    });

    it('imports a list that the console exported, but refuses an export that was cut off', async () => {
      const head = csvStart + csvRow(['Number', 'For', 'Reason']);
      const rows = [phone, '+33123456789'].map((number) => csvRow([number, 'Blue Clinic', 'Complained'])).join('');
      const partial = await admin(['do-not-call', 'import', file(head + rows + incompleteLine(2, 'Export again.')), ...account]);
      expect([partial.code, partial.stdout.includes('line 4')]).to.deep.equal([1, true]);
      const path = file(head + rows + completeLine(2));
      expect(await json('do-not-call', 'import', path, ...account)).to.deep.equal({ added: 2, known: 0, wrong: [] });
      expect(await listed()).to.deep.equal(['+33123456789', phone]);
    });

    it('reports an invalid cell of an exported list, and if a number has several entries, keeps the one that ends last', async () => {
      const head = 'Number;Reason;Note;Ends\n';
      const { stdout } = await admin(['do-not-call', 'import', file(`${head}${phone};Complained;;2099-01-31`), ...account]);
      expect(stdout).to.contain('line 2: Ends: Must be a time in UTC');
      const rows = ['2099-01-31T22:59:59.999Z', '2099-02-28T22:59:59.999Z', '2020-01-31T22:59:59.999Z'].map(
        (ends) => `${phone};asked;;${ends}`,
      );
      const ended = '+33123456789;asked;;2020-01-31T22:59:59.999Z';
      const path = file(head + [...rows, ended].join('\n'));
      expect(await json('do-not-call', 'import', path, ...account)).to.deep.equal({ added: 1, known: 0, wrong: [] });
      const { entries } = await json('do-not-call', 'list', ...account);
      expect(entries).to.have.lengthOf(1);
      expect(entries[0]).to.include({ phone, reason: 'asked', endsAt: '2099-02-28T22:59:59.999Z' });
    });

    it('refuses to import a folder, and refuses an invalid country', async () => {
      const folder = await admin(['do-not-call', 'import', freshDirectory(), ...account]);
      expect([folder.code, folder.stderr]).to.satisfy(([code, text]: [number, string]) => code === 2 && text.includes('it is a folder'));
      const country = await admin(['do-not-call', 'import', file('020 7946 0958'), ...account, '--country', 'UK']);
      expect([country.code, country.stderr.includes('--country')]).to.deep.equal([2, true]);
    });

    it('imports nothing if a line is invalid, and reports each one', async () => {
      const path = file(['+4930123', ...Array.from({ length: 30 }, (_, n) => `+49301234${1_000 + n}`), 'nobody', '12'].join('\n'));
      const { code, stdout } = await admin(['--json', 'do-not-call', 'import', path, ...account]);
      const { added, wrong } = JSON.parse(stdout);
      expect([code, added, wrong.map(({ line }: { line: number }) => line)]).to.deep.equal([1, 0, [32, 33]]);
      expect((await admin(['do-not-call', 'import', path, ...account])).stdout).to.contain(
        'Nothing was imported, because 2 lines are invalid.',
      );
      expect(await listed()).to.deep.equal([]);
      expect([await read()('number_imports'), await read()('number_import_parts')]).to.deep.equal([[], []]);
    });

    it('leaves nothing half done: a core deletes an uncommitted import, and finishes a committed one', async () => {
      const { ports } = direct;
      const imports = ports.stores.numberImports;
      const entry = { reason: 'imported', note: null, source: 'admin', call: null, createdBy: null, endsAt: null } as const;
      const owner = { accountId: tenants.account.id, partnerId: tenants.partner.id };
      const longAgo = instant(ports.clock.now() - 2 * 86_400_000);
      const numbers = Array.from({ length: 2_500 }, (_, n) => `+4930${1_000_000 + n}`);
      for (const id of ['stopped', 'killed']) {
        await imports.begin(id, { ...entry, owner, createdAt: longAgo }, longAgo);
        await imports.addPart(
          id,
          0,
          numbers.map((number) => ({ phone: id === 'stopped' ? `${number}9` : number })),
        );
      }
      await direct.storage.database.write('number_imports').where({ id: 'killed' }).update({ committed_at: longAgo });
      await imports.moveBatch('killed', () => ports.randomness.id(), ports.clock.now());
      const { length: moved } = await listed();
      expect(moved).to.be.within(1, numbers.length - 1);
      expect(await finishImports(ports, imports, async () => undefined)).to.equal(numbers.length - moved);
      expect(await listed()).to.deep.equal(numbers);
      await discardImports(imports, ports.clock.now());
      expect([await read()('number_imports'), await read()('number_import_parts')]).to.deep.equal([[], []]);
      // The command may only have been suspended. When it continues, it tries to store its next numbers, which must fail.
      const adding = imports.addPart('stopped', 1, [{ phone }]).then(String, ({ code }: { code: string }) => code);
      expect([await adding, await read()('number_import_parts')]).to.deep.equal(['conflict', []]);
    });

    it('finishes or deletes an import that was killed while the clock was ahead', async () => {
      const { ports } = direct;
      const imports = ports.stores.numberImports;
      const entry = { reason: 'imported', note: null, source: 'admin', call: null, createdBy: null, endsAt: null } as const;
      const owner = { accountId: tenants.account.id, partnerId: tenants.partner.id };
      const ahead = instant(ports.clock.now() + 2 * 86_400_000);
      for (const id of ['stopped', 'killed']) {
        await imports.begin(id, { ...entry, owner, createdAt: ahead }, ahead);
        await imports.addPart(id, 0, [{ phone }]);
      }
      await direct.storage.database.write('number_imports').where({ id: 'killed' }).update({ committed_at: ahead });
      expect(await finishImports(ports, imports, async () => undefined)).to.equal(1);
      expect(await listed()).to.deep.equal([phone]);
      await discardImports(imports, ports.clock.now());
      expect([await read()('number_imports'), await read()('number_import_parts')]).to.deep.equal([[], []]);
    });
  });

  describe('calling-hours', () => {
    const rules = [
      { prefix: '+49', days: ['mon', 'tue'], from: '09:00', to: '20:00' },
      { prefix: '', date: '2026-12-25', closed: true },
    ];

    it('replaces the rules of a scope, shows which scopes inherit them, and removes them', async () => {
      const path = file(rules, 'hours.json');
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
      expect([code, stderr]).to.satisfy(([exit, text]: [number, string]) => exit === 2 && text.includes('0 to Must be later than from.'));
      expect((await admin(['calling-hours', 'set', file('no JSON', 'hours.json'), ...account])).code).to.equal(2);
      expect((await admin(['calling-hours', 'set', '/nowhere.json', ...account])).code).to.equal(2);
    });
  });

  describe('numbers', () => {
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
    expect(await direct.ports.stores.protection.optOutScope(tenants.account.id)).to.equal('partner');
    await optOuts('account');
    const changes = await read()('audit_events').where({ action: 'account.changed' }).orderBy('id').pluck('detail');
    expect(changes).to.deep.equal(["opt-outs apply to all of the partner's accounts", 'opt-outs apply only to this account']);
    expect((await admin(['account', 'opt-outs', tenants.account.id])).code).to.equal(2);
  });

  it('shows help for each command', async () => {
    for (const command of [['do-not-call'], ['do-not-call', 'import'], ['calling-hours', 'set'], ['numbers', 'set']]) {
      const { code, stdout } = await admin([...command, '--help']);
      expect([code, stdout.includes('Usage:')], command.join(' ')).to.deep.equal([0, true]);
    }
    expect((await admin(['help', 'do-not-call'])).stdout).to.contain('import');
  });
});
