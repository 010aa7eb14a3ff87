import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { completeLine, csvRow, csvStart, incompleteLine } from '#contract/files/csv.ts';
import { callsHead, doNotCallHead } from '#contract/files/table.ts';
import { describeAdmin } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';

const [one, two, three] = ['+353861230001', '+353861230002', '+353861230003'];

describeAdmin('admin do-not-call import', ({ admin, json, kind, database }) => {
  let direct: DirectAccess;
  let tenants: Tenants;
  let account: string[];
  beforeEach(async () => {
    direct = await openDirect(database());
    tenants = await createTenants(direct.ports);
    account = ['--account', tenants.account.id];
  });
  afterEach(() => direct.close());

  const read = () => direct.storage.database.read;
  const listed = async () => (await read()('do_not_call').orderBy('phone')).map((row) => row.phone);
  function file(content: string | Buffer, name = 'numbers.csv'): string {
    const path = join(freshDirectory(), name);
    writeFileSync(path, content);
    return path;
  }
  const run = (content: string | Buffer, ...options: string[]) =>
    admin(['--json', 'do-not-call', 'import', file(content), ...account, ...options]);
  const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');

  // How a file is read doesn't depend on the database.
  const onSqlite = <Row>(rows: Row[]) => (kind === 'sqlite' ? rows : []);
  const readable: [string, string | Buffer, { numbers: string[]; columns: string[]; empty?: number }, string[]?][] = [
    ['one number on each line', `${one}\n${two}\r\n\r\n${three}`, { numbers: [one, two, three], columns: ['1'] }],
    ['a title without digits above the numbers', `Sperrliste\n${one}\n`, { numbers: [one], columns: ['Sperrliste'] }],
    [
      'a column named as people name it',
      `Id;Phone Number;Name\n1;${one};Ada\n2;;Bob\n`,
      { numbers: [one], columns: ['Phone Number'], empty: 1 },
    ],
    [
      'a first column of record IDs',
      `Record ID,Name,Mobile\n10000000001,Ada,${one}\n10000000002,Bob,${two}\n`,
      { numbers: [one, two], columns: ['Mobile'] },
    ],
    [
      'titles and dates above the header',
      `Opt-outs;;\nExported 2026-11-28;;\n\nName;Téléphone;Depuis\nAda;${one};28.11.2026\n`,
      { numbers: [one], columns: ['Téléphone'] },
    ],
    ['UTF-16 with tabs', utf16(`${one}\tZoë\r\n${two}\tAda\r\n`), { numbers: [one, two], columns: ['1'] }],
    ['UTF-16 with a header', utf16(`Name\tTelefon\r\nZoë\t${one}\r\n`), { numbers: [one], columns: ['Telefon'] }],
    ["Excel's sep= line", `sep=;\r\nPhone;Name\r\n${one};A\r\n`, { numbers: [one], columns: ['Phone'] }],
    ['numbers written as formulas', `Name,Phone\nAda,="${one}"\nBob,"=""${two}"""\n`, { numbers: [one, two], columns: ['Phone'] }],
    ['rows without their last cells', `Phone;Name;Note\n${one}\n${two};Bob\n`, { numbers: [one, two], columns: ['Phone'] }],
    ['Latin-1', Buffer.from(`Name;Téléphone\nZoë;${one}\n`, 'latin1'), { numbers: [one], columns: ['Téléphone'] }],
    ['two byte order marks', `\ufeff\ufeff"Phone","Name"\n"${one}","Ada"\n`, { numbers: [one], columns: ['Phone'] }],
    ['CR as line ends', `Phone,Name\r${one},Ada\r${two},Bob\r`, { numbers: [one, two], columns: ['Phone'] }],
    ['a quoted cell with line breaks', `Name,Phone\n"Ada\r\nLovelace",${one}\n`, { numbers: [one], columns: ['Phone'] }],
    [
      'three hundred columns',
      `${Array.from({ length: 299 }, (_, n) => `f${n}`).join()},Cell Phone\n${','.repeat(299)}${one}\n`,
      { numbers: [one], columns: ['Cell Phone'] },
    ],
    [
      'a column named with --column',
      `Kontakt;Mobil;Büro\nAda;${one};${two}\n`,
      { numbers: [two], columns: ['Büro'] },
      ['--column', 'Büro'],
    ],
    [
      'several columns named with --column',
      `Kontakt;Mobil;Büro\nAda;${one};${two}\nBob;;\n`,
      { numbers: [one, two], columns: ['Mobil', 'Büro'], empty: 1 },
      ['--column', 'Mobil', '--column', 'Büro'],
    ],
    [
      'notes with dates, times, amounts, IDs and links',
      `Phone;Notes\n${one};"28.11.2026, 10:30: paid 1.234,50 for 123-45, see https://crm.example/10000000001 and 550e8400-e29b-41d4-a716-446655440000"\n`,
      { numbers: [one], columns: ['Phone'] },
    ],
    ['digits of other scripts', '＋３５３８６１２３０００１\n+٣٥٣٨٦١٢٣٠٠٠٢\n', { numbers: [one, two], columns: ['1'] }],
    ['a column named by its position', `${one};${two}\n${three};${two}\n`, { numbers: [one, three], columns: ['1'] }, ['--column', '1']],
    [
      'calls that the console exported',
      csvStart + csvRow(callsHead) + csvRow(['Reminders', 'order-1', 'Ada', one, ...Array.from({ length: 9 }, () => '')]) + completeLine(1),
      { numbers: [one], columns: ['Phone'] },
    ],
  ];
  for (const [what, content, { numbers, columns, empty = 0 }, options = []] of onSqlite(readable)) {
    it(`reads ${what}`, async () => {
      const { code, stdout, stderr } = await run(content, ...options);
      expect(code, stderr + stdout).to.equal(0);
      expect(JSON.parse(stdout)).to.deep.include({ added: numbers.length, known: 0, wrong: [], columns, numbers: numbers.length, empty });
      expect(await listed()).to.deep.equal(numbers);
    });
  }

  const unclear: [string, string, number[], string?][] = [
    ['a number in digits of another script in another column', `Phone,Other\n${one},＋３５３８６１２３０００２\n`, [2]],
    ["a number in digits that the reader doesn't know", '+353861230001\n+९१९८७६५४३२१०\n', [2]],
    ['several numbers on a line', `${one}, ${two}, ${three}\n`, [1]],
    ['a second number on a line', `${one};${two}\n${three}\n`, [1]],
    ['a number in another column', `Phone,Name\n${one},Ada\n,"${two} (Bob)"\n`, [3]],
    ['a number without a plus in another column', `Phone,Other\n${one},353861230002\n`, [2]],
    ['two columns for numbers', `Mobile,Home Phone\n${one},\n${two},${three}\n`, [3]],
    ['a number beyond the last column', `Phone\n${one}\n${two},${three}\n`, [3]],
    ['two numbers in a cell', `Phone\n"${one}; ${two}"\n`, [2]],
    ['text instead of a number', `Phone\n${one}\nunknown\n`, [3]],
    ['a rounded number', `Phone\n3.53861E+11\n`, [2]],
    ['a number saved as a decimal', `Phone\n${one}\n353861230002.0\n`, [3]],
    ['a NUL byte in a number', `Phone\n${one}\n+35386\u00001230002\n`, [3]],
    ['a second number of eight digits on a line', '91234567;98765432\n81234567;\n', [1], 'SG'],
    ['a number of seven digits in another column', 'Phone;Backup\n6111234;6111235\n', [2], 'IS'],
    ['a national number within a note', 'Phone;Notes\n086 123 0001;28.11.2026: also 086 123 0002\n', [2], 'IE'],
    ['a number with hyphens within a note', 'Phone;Notes\n2125551234;call (212) 555-1299 instead\n', [2], 'US'],
    ['numbers above a header', '91234567\nPhone\n98765432\n', [2], 'SG'],
  ];
  for (const [what, content, lines, country] of onSqlite(unclear)) {
    it(`imports nothing if there's ${what}, and reports the line`, async () => {
      const { code, stdout } = await run(content, ...(country === undefined ? [] : ['--country', country]));
      const { added, wrong } = JSON.parse(stdout);
      expect([code, added, wrong.map(({ line }: { line: number }) => line)]).to.deep.equal([1, 0, lines]);
      expect(await listed()).to.deep.equal([]);
    });
  }

  const unreadable: [string, string | Buffer, RegExp, string[]?][] = [
    ['an empty file', '', /contains no phone numbers/],
    ['a header alone', 'Phone,Name\n', /contains no phone numbers/],
    ['NDJSON', `{"phone":"${one}"}\n`, /is JSON\. Use CSV/],
    ['a table without a column for numbers', `Kontakt;Firma\n${one};ACME\n`, /no column.*Kontakt, Firma.*--column NAME/],
    ["a column that doesn't exist", `Phone,Name\n${one},Ada\n`, /no column "Mobile".*Phone, Name/, ['--column', 'Mobile']],
    ['an export that was cut off', csvRow(doNotCallHead) + csvRow([one]) + incompleteLine(1, 'Export again.'), /ended early \(line 3\)/],
    [
      'a header in Windows-1251',
      Buffer.from(`\xd2\xe5\xeb\xe5\xf4\xee\xed;\xc8\xec\xff\n${one};Ada\n`, 'latin1'),
      /no column that's named.*numbers\.csv isn't UTF-8, so it's read as Latin-1/,
    ],
    ['a misplaced quote', `Phone,Name\n${one},"Ada\n${two},Bob\n`, /line 2: there's a misplaced quotation mark/],
    ['an XLSX file', Buffer.from('PK\x03\x04\x14\0', 'latin1'), /spreadsheet file or an archive/],
    ['a PDF', '%PDF-1.7\n%âãÏÓ', /is a PDF/],
    ['a web page named .xls', `\ufeff<html><table><tr><td>${one}</td></tr></table>`, /is HTML/],
    ['a vCard', `BEGIN:VCARD\nTEL:${one}\nEND:VCARD\n`, /vCard/],
    ['a compressed file', gzipSync(`Phone\n${one}\n`), /isn't a text file/],
  ];
  for (const [what, content, message, options = []] of onSqlite(unreadable)) {
    it(`refuses ${what} in words about the file`, async () => {
      const { code, stdout, stderr } = await run(content, ...options);
      expect([code, stdout, await listed()]).to.deep.equal([2, '', []]);
      expect(JSON.parse(stderr).error.message).to.match(message);
    });
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

  it("imports numbers that are old or new, and counts those that aren't valid", async () => {
    const { stdout } = await run(`Phone\n${one}\n+5215512345678\n+14362345678\n`);
    expect(JSON.parse(stdout)).to.include({ added: 3, notValid: 2 });
    expect(await listed()).to.deep.equal(['+14362345678', one, '+5215512345678']);
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

  it('refuses to import a folder, and refuses an invalid country', async () => {
    const folder = await admin(['do-not-call', 'import', freshDirectory(), ...account]);
    expect([folder.code, folder.stderr]).to.satisfy(([code, text]: [number, string]) => code === 2 && text.includes('it is a folder'));
    const country = await admin(['do-not-call', 'import', file('020 7946 0958'), ...account, '--country', 'UK']);
    expect([country.code, country.stderr.includes('--country')]).to.deep.equal([2, true]);
  });
});
