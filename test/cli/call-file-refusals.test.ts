import { expect } from 'chai';
import { csvRow } from '#contract/files/csv.ts';
import { doNotCallHead } from '#contract/files/table.ts';
import { limits } from '#contract/limits.ts';
import type { Reading } from '../../cli/batch/reading.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { badLines, readRefusal } from '../support/cli.ts';

const phone = '+493012345678';
const e164 = `Must be a phone number in E.164 format, such as ${phone}`;

describe('checking a call file', () => {
  const unreadable: [string, string | Buffer, RegExp, Partial<Reading>?][] = [
    ['is empty', '', /empty/],
    ['has a header, but no lines', 'phone,name\n', /no calls/],
    ['has no phone column', 'name\nAda\n', /no phone column/],
    ['has an unknown column', `phone,fax\n${phone},1\n`, /"fax".*Supported columns.*--columns/],
    ['has a duplicate column', `phone,Phone\n${phone},1\n`, /column phone twice/],
    ['has a duplicate variable', `phone,var.a,var.a\n${phone},1,2\n`, /column var\.a twice/],
    [
      'lacks a column that --columns names',
      `phone,name\n${phone},Ada\n`,
      /no column "Mobile".*phone, name/,
      { columns: { phone: 'Mobile' } },
    ],
    ['is NDJSON, although --columns is given', `{"contact":{"phone":"${phone}"}}`, /--columns/, { columns: { phone: 'Mobile' } }],
    ['has an unsupported separator', `phone:name\n${phone}:Ada\n`, /commas, semicolons, tabs or vertical bars/],
    ['has no header', `${phone},Ada\n+442079460018,Bob\n`, /has no header\. Add a first line/],
    ['has several columns for the phone number', `Mobile;Telefon\n${phone};\n`, /column phone twice \(Telefon\).*--columns phone=NAME/],
    ['is an export that ended early', `phone\n${phone}\n# INCOMPLETE, 1 rows: Export again.\n`, /ended early \(line 3\)/],
    ['is a do-not-call list that the console exported', csvRow(doNotCallHead) + csvRow([phone, 'Blue Clinic']), /is a do-not-call list/],
    [
      'has a header in Shift JIS',
      Buffer.from(`\x93\x64\x98\x62,\x96\xbc\x91\x4f\n${phone},Ada\n`, 'latin1'),
      /has an unknown column.*isn't UTF-8, so it's read as Latin-1/,
    ],
    ['is a PDF', '%PDF-1.7\n', /is a PDF/],
    ['is a web page', '<table><tr><td>phone</td></tr></table>', /is HTML/],
    ['mixes UTF-8 and Latin-1', Buffer.from(`phone,name\n${phone},Ã©\n${phone},\xe4\n`, 'latin1'), /mixes UTF-8/],
    ["is in a spreadsheet program's own format", Buffer.from('PK\x03\x04\x14\x00', 'latin1'), /save it as CSV/],
    ["is in an old spreadsheet program's own format", Buffer.from('\xd0\xcf\x11\xe0\xa1', 'latin1'), /save it as CSV/],
    ['is compressed', Buffer.from('\x1f\x8b\x08\x00\xc3\xa4\xff', 'latin1'), /isn't a text file/],
    ['is a JSON array', `[{"contact":{"phone":"${phone}"}}]`, /without brackets/],
    [
      'has a column with a long name, of which the error shows only the start',
      `phone,${'x'.repeat(20_000)}`,
      /has an unknown column: "x{60}…"\. Supported columns/,
    ],
    ['has a first line that is too long', 'x'.repeat(200_000), /the first line is too long/],
    ['has a misplaced quote in its header', 'ph"one\n', /misplaced quotation mark/],
    ['has an unclosed quote', `phone,name\n${phone},Ada\n${phone},"Bob\n`, /line 3: there's a misplaced quotation mark/],
    [
      'has a quoted cell that is too long',
      `phone,name\n${phone},"Bob\n${`${phone},Ada\n`.repeat(20_000)}`,
      /line 2: there's a misplaced quotation mark .* or the line is too long/,
    ],
    [
      'has a misplaced quote followed by valid lines',
      `phone,name\n${phone},A"da\n${phone},Bob\n`,
      /line 2: there's a misplaced quotation mark/,
    ],
    ['is NDJSON with a line that is too long', `{"a":"${'x'.repeat(3_000_000)}`, /too long/],
  ];
  for (const [what, content, message, reading] of unreadable) {
    it(`refuses a whole file if it ${what}`, async () => {
      const thrown = await readRefusal(content, reading);
      expect(thrown).to.be.instanceOf(CallkeyError).and.include({ kind: 'usage' });
      expect(thrown).to.have.property('message').that.matches(message);
    });
  }

  const wrongLines: [string, string, [number, string, string | RegExp]][] = [
    ['has an invalid phone number', 'phone\n12\n', [2, 'contact.phone', `${e164}.`]],
    ['has a national number', 'phone\n030 12345678\n', [2, 'contact.phone', `${e164}, or add --country, such as --country DE.`]],
    ['has a number rounded by a spreadsheet', 'phone\n4.91E+11\n', [2, 'contact.phone', /spreadsheet.*"4\.91E\+11".*as text/]],
    ['has too many cells', `phone,name\n${phone},Kelly,Niamh\n`, [2, '', 'This line has 3 cells, but the header has 2.']],
    ['has an empty phone', 'phone,name\n,Ada\n', [2, 'contact.phone', 'This field is required.']],
    ["isn't JSON", `{"contact":{"phone":"${phone}"}}\nnonsense\n`, [2, '', "This isn't valid JSON."]],
    ['has a value of the wrong type', '{"contact":{"phone":493012345678}}\n', [1, 'contact.phone', 'Must be a string.']],
    ['has an unknown field', `{"contact":{"phone":"${phone}"},"x":1}\n`, [1, 'x', 'Unknown field.']],
    ['repeats a request ID', `phone,requestId\n${phone},a\n${phone},b\n${phone},a\n`, [4, 'requestId', 'Line 2 has the same request ID.']],
    ['has a variable named __proto__, which would be lost', `phone,var.__proto__\n${phone},x\n`, [2, 'variables', /__proto__/]],
  ];
  for (const [what, text, [line, path, message]] of wrongLines) {
    it(`rejects a line that ${what}`, async () => {
      const [first, ...more] = await badLines(text);
      expect(first?.slice(0, 2)).to.deep.equal([line, path]);
      if (typeof message === 'string') expect(first?.[2]).to.equal(message);
      else expect(first?.[2]).to.match(message);
      expect(more).to.deep.equal([]);
    });
  }

  it('rejects a call that is larger than the core accepts', async () => {
    const variables = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`v${n}`, '€'.repeat(1000)]));
    const line = JSON.stringify({ contact: { phone }, variables });
    expect(Buffer.byteLength(line)).to.be.greaterThan(limits.bodyBytes);
    expect(await badLines(`${line}\n`))
      .to.have.nested.property('[0][2]')
      .that.matches(/too large/);
  });
});
