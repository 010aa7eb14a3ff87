import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { completeLine, csvRow, csvStart } from '#contract/files/csv.ts';
import { doNotCallHead } from '#contract/files/table.ts';
import { freshDirectory } from '../support/databases.ts';
import { describeAdminWithTenants } from '../support/tenants.ts';

const [one, two, three] = ['+353861230001', '+353861230002', '+353861230003'];

describeAdminWithTenants('admin do-not-call import', ({ admin, json, direct, tenants }) => {
  let account: string[];
  beforeEach(() => {
    account = ['--account', tenants.account.id];
  });

  const read = () => direct.storage.database.read;
  const listed = async () => (await read()('do_not_call').orderBy('phone')).map((row) => row.phone);
  function file(content: string): string {
    const path = join(freshDirectory(), 'numbers.csv');
    writeFileSync(path, content);
    return path;
  }

  it('says what it has read, counts numbers that are already listed, and records one event without numbers', async () => {
    await admin(['do-not-call', 'add', one, ...account]);
    const path = file(`Phone Number;Name\r\n086 123 0001;Ada\r\n;Bob\r\n"+353 86 123 0002";Cy\r\n${two};again\r\n`);
    const { stdout } = await admin(['do-not-call', 'import', path, ...account, '--country', 'ie']);
    expect(stdout).to.contain('Column Phone Number: 3 numbers, 1 empty.');
    expect(stdout).to.match(/Imported 1 number for account .+\. Already on the list: 2\./);
    expect(await listed()).to.deep.equal([one, two]);
    const events = await read()('audit_events').where({ action: 'do-not-call.imported' }).pluck('subject_name');
    expect(events).to.deep.equal(['3 numbers']);
  });

  describe('with --skip-invalid', () => {
    const mixed = `sep=;\r\nPhone;Name\r\n${one};Ada\r\n12;"Bob\r\nB."\r\n${two};${three}`;

    it('imports the valid lines, and writes the others to a file that can be imported once they are fixed', async () => {
      const path = file(mixed);
      const result = await json('do-not-call', 'import', path, ...account, '--skip-invalid');
      expect(result).to.deep.include({ added: 1, skippedFile: path.replace('.csv', '.skipped.csv') });
      expect(result.wrong.map(({ line }: { line: number }) => line)).to.deep.equal([4, 6]);
      const skipped = readFileSync(result.skippedFile, 'utf8');
      expect(skipped).to.equal(`\ufeffsep=;\r\nPhone;Name\r\n12;"Bob\r\nB."\r\n${two};${three}\n`);
      writeFileSync(result.skippedFile, skipped.replace('12;', `${three};`).replace(`${two};${three}`, two));
      expect(await json('do-not-call', 'import', result.skippedFile, ...account)).to.include({ added: 2 });
      expect(await listed()).to.deep.equal([one, two, three]);
    });

    it("can be repeated, but doesn't overwrite lines that someone has corrected", async () => {
      const target = join(freshDirectory(), 'fix.csv');
      const again = () => admin(['do-not-call', 'import', file(mixed), ...account, '--skip-invalid', target]);
      expect([(await again()).code, (await again()).code]).to.deep.equal([0, 0]);
      writeFileSync(target, 'corrected');
      const refused = await again();
      expect([refused.code, readFileSync(target, 'utf8')]).to.deep.equal([2, 'corrected']);
      expect(refused.stderr).to.contain('already exists');
    });

    it('imports nothing if no line is valid, and writes the lines to the file', async () => {
      const path = file('Phone\n12\n');
      const { code, stdout } = await admin(['do-not-call', 'import', path, ...account, '--skip-invalid']);
      const skipped = path.replace('.csv', '.skipped.csv');
      expect([code, readFileSync(skipped, 'utf8')]).to.deep.equal([1, '\ufeffPhone\n12\n']);
      expect(stdout).to.contain('Nothing was imported, because no line has a valid number.').and.not.contain('--skip-invalid');
      expect(stdout).to.contain(`Skipped 1 invalid line. Fix it in ${skipped}, and import that file.`);
      const without = await admin(['do-not-call', 'import', path, ...account]);
      expect(without.stdout).to.contain('no line has a valid number. Fix it, and import the file again.').and.not.contain('--skip-invalid');
    });
  });

  it('restores a list that the console exported, with its details, even if a spreadsheet program has saved it again', async () => {
    const times = ['2026-01-31T22:59:59.999Z', '2099-01-31T22:59:59.999Z'];
    const row = [one, 'Blue Clinic', 'Complained', `=Said, "never;-again": call +353861230009 instead`, 'console', 'Ada', ...times];
    const text = csvStart + csvRow(doNotCallHead) + csvRow(row) + completeLine(1);
    for (const content of [text, text.replaceAll('","', '";"').replace('complete, 1 rows', 'complete; 1 rows;;;;;;')]) {
      await json('do-not-call', 'import', file(content), ...account);
      const { entries } = await json('do-not-call', 'list', ...account);
      expect(entries).to.have.lengthOf(1);
      expect(entries[0]).to.include({ phone: one, reason: 'complaint', note: row[3], createdAt: times[0], endsAt: times[1] });
    }
  });

  it('reports an invalid cell of an exported list, and if a number has several entries, keeps the one that ends last', async () => {
    const head = 'Number;Reason;Note;Ends\n';
    const { stdout } = await admin(['do-not-call', 'import', file(`${head}${one};Complained;;2099-01-31`), ...account]);
    expect(stdout).to.contain('line 2: Ends: Must be a time in UTC');
    const ends = ['2099-01-31T22:59:59.999Z', '2099-02-28T22:59:59.999Z', '2020-01-31T22:59:59.999Z'];
    const path = file(`${head}${ends.map((end) => `${one};asked;;${end}`).join('\n')}\n${two};asked;;${ends[2]}`);
    expect(await json('do-not-call', 'import', path, ...account)).to.include({ added: 1, known: 3 });
    const { entries } = await json('do-not-call', 'list', ...account);
    expect(entries).to.have.lengthOf(1);
    expect(entries[0]).to.include({ phone: one, reason: 'asked', endsAt: ends[1] });
  });

  it('refuses a folder, a file without numbers and an invalid country', async () => {
    for (const [content, message] of [
      ['', /contains no phone numbers/],
      ['Phone,Name\n', /contains no phone numbers/],
      ['BEGIN:VCARD\nEND:VCARD\n', /vCard/],
    ] as const) {
      const { code, stdout, stderr } = await admin(['--json', 'do-not-call', 'import', file(content), ...account]);
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(JSON.parse(stderr).error.message).to.match(message);
    }
    const folder = await admin(['do-not-call', 'import', freshDirectory(), ...account]);
    expect([folder.code, folder.stderr]).to.satisfy(([code, text]: [number, string]) => code === 2 && text.includes('it is a folder'));
    const country = await admin(['do-not-call', 'import', file('020 7946 0958'), ...account, '--country', 'UK']);
    expect([country.code, country.stderr.includes('--country')]).to.deep.equal([2, true]);
  });
});
