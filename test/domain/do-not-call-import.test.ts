import { expect } from 'chai';
import { completeLine, csvRow, incompleteLine } from '#contract/files/csv.ts';
import { openPhoneList } from '#contract/files/phone-list.ts';
import { callsHead, doNotCallHead } from '#contract/files/table.ts';
import { toTextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import { importNumbers } from '../../core/domain/protection/do-not-call.ts';
import { fakePorts } from '../support/ports.ts';

const [one, two, three] = ['+353861230001', '+353861230002', '+353861230003'];

/** Imports a file's text. @returns the result, and what was added to the list */
async function load(content: string, { columns = [], country }: { columns?: string[] | undefined; country?: string | undefined } = {}) {
  const listed: string[] = [];
  const ports = fakePorts({
    stores: {
      doNotCall: {
        importNumbers: async (_, numbers) => {
          for await (const { phone } of numbers) listed.push(phone);
          return listed.length;
        },
      },
    },
  });
  const text = toTextFile('numbers.csv', content);
  const list = openPhoneList(text, columns, 'Add --column NAME.');
  const owner = { accountId: 'account', partnerId: 'partner' };
  const how = {
    reason: 'imported',
    note: null,
    source: 'admin',
    call: null,
    createdBy: null,
    createdAt: instant(0),
    endsAt: null,
  } as const;
  const job = { list, chunks: () => text.chunks(), country, entry: { owner, ...how }, skipped: null };
  return { ...(await importNumbers(ports, operator.actor, job)), listed, columns: list.columns };
}

// The tests of call files have the encodings and ways to write CSV, which all files share.
describe('importing a do-not-call list', () => {
  const readable: [string, string, { numbers: string[]; columns: string[]; empty?: number }, string[]?][] = [
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
    [
      'three hundred columns',
      `${Array.from({ length: 299 }, (_, n) => `f${n}`).join()},Cell Phone\n${','.repeat(299)}${one}\n`,
      { numbers: [one], columns: ['Cell Phone'] },
    ],
    ['a column named with --column', `Kontakt;Mobil;Büro\nAda;${one};${two}\n`, { numbers: [two], columns: ['Büro'] }, ['Büro']],
    [
      'several columns named with --column',
      `Kontakt;Mobil;Büro\nAda;${one};${two}\nBob;;\n`,
      { numbers: [one, two], columns: ['Mobil', 'Büro'], empty: 1 },
      ['Mobil', 'Büro'],
    ],
    [
      'notes with dates, times, amounts, IDs and links',
      `Phone;Notes\n${one};"28.11.2026, 10:30: paid 1.234,50 for 123-45, see https://crm.example/10000000001 and 550e8400-e29b-41d4-a716-446655440000"\n`,
      { numbers: [one], columns: ['Phone'] },
    ],
    ['digits of other scripts', '＋３５３８６１２３０００１\n+٣٥٣٨٦١٢٣٠٠٠٢\n', { numbers: [one, two], columns: ['1'] }],
    ['a column named by its position', `${one};${two}\n${three};${two}\n`, { numbers: [one, three], columns: ['1'] }, ['1']],
    [
      'calls that the console exported',
      csvRow(callsHead) + csvRow(['Reminders', 'order-1', 'Ada', one, ...Array.from({ length: 9 }, () => '')]) + completeLine(1),
      { numbers: [one], columns: ['Phone'] },
    ],
  ];
  for (const [what, content, { numbers, columns, empty = 0 }, chosen] of readable) {
    it(`reads ${what}`, async () => {
      expect(await load(content, { columns: chosen })).to.deep.include({
        ...{ listed: numbers, columns, added: numbers.length, known: 0, wrong: [], numbers: numbers.length, empty },
      });
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
  for (const [what, content, lines, country] of unclear) {
    it(`imports nothing if there's ${what}, and reports the line`, async () => {
      const { listed, wrong } = await load(content, { country });
      expect([listed, wrong.map(({ line }) => line)]).to.deep.equal([[], lines]);
    });
  }

  const unreadable: [string, string, RegExp, string[]?][] = [
    ['NDJSON', `{"phone":"${one}"}\n`, /is JSON\. Use CSV/],
    ['a table without a column for numbers', `Kontakt;Firma\n${one};ACME\n`, /no column.*Kontakt, Firma.*--column NAME/],
    ["a column that doesn't exist", `Phone,Name\n${one},Ada\n`, /no column "Mobile".*Phone, Name/, ['Mobile']],
    ['an export that was cut off', csvRow(doNotCallHead) + csvRow([one]) + incompleteLine(1, 'Export again.'), /ended early \(line 3\)/],
  ];
  for (const [what, content, message, columns] of unreadable) {
    it(`refuses ${what} in words about the file`, async () => {
      const failure: unknown = await load(content, { columns }).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(UnreadableFile).with.property('message').that.matches(message);
    });
  }

  it("imports numbers that are old or new, and counts those that aren't valid", async () => {
    const { listed, notValid } = await load(`Phone\n${one}\n+5215512345678\n+14362345678\n`);
    expect([listed, notValid]).to.deep.equal([[one, '+5215512345678', '+14362345678'], 2]);
  });
});
