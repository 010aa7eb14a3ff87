import { hash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { completeLine, csvRow, csvStart } from '#contract/files/csv.ts';
import { callsHead, doNotCallHead } from '#contract/files/table.ts';
import { limits } from '#contract/limits.ts';
import { openCallFile } from '../../cli/batch/call-file.ts';
import { parseColumns, parseCountry, plainReading, type Reading } from '../../cli/batch/reading.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { badLines, readCalls, readRefusal } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';

const phone = '+493012345678';
const e164 = `Must be a phone number in E.164 format, such as ${phone}`;

describe('reading a call file', () => {
  it('accepts CSV with a header, quotes, blank lines and a byte order mark', async () => {
    const text = `\ufeffPhone,"Name",time_zone,requestId,notAfter,var.note,var.order\r\n${phone},"Lovelace, ""Ada""",Europe/Berlin,,2099-01-01T00:00:00.000Z,"two\nlines",\r\n\r\n+493012345679,,,own,,,7\r\n`;
    const { good, bad: wrong, content } = await readCalls(text);
    expect(good).to.deep.equal([
      {
        line: 2,
        call: {
          contact: { phone, name: 'Lovelace, "Ada"', timeZone: 'Europe/Berlin' },
          variables: { note: 'two\nlines' },
          notAfter: '2099-01-01T00:00:00.000Z',
        },
      },
      { line: 5, call: { requestId: 'own', contact: { phone: '+493012345679' }, variables: { order: '7' } } },
    ]);
    expect([wrong, content]).to.deep.equal([[], hash('sha256', text)]);
  });

  it('reads a file as NDJSON if it starts with a brace', async () => {
    const { good } = await readCalls(`\n{"contact":{"phone":"${phone}"},"variables":{"a":"1"}}\n\n{"contact":{"phone":"${phone}"}}\n`);
    expect(good).to.deep.equal([
      { line: 2, call: { contact: { phone }, variables: { a: '1' } } },
      { line: 4, call: { contact: { phone } } },
    ]);
  });

  it('reads files longer than one chunk, with letters and quotes split between chunks', async () => {
    const name = (n: number) => `Zoë "${'é'.repeat(n % 7)}" ${n}`;
    const numbers = Array.from({ length: 5_000 }, (_, n) => n);
    const csv = numbers.map((n) => `+4930${10_000_000 + n},"${name(n).replaceAll('"', '""')}"`).join('\n');
    const json = numbers.map((n) => JSON.stringify({ contact: { phone: `+4930${10_000_000 + n}`, name: name(n) } })).join('\n');
    for (const [text, first] of [
      [`phone,name\n${csv}`, 2],
      [json, 1],
    ] as const) {
      const { good } = await readCalls(text);
      expect(good.map(({ line, call }) => [line, call.contact.name])).to.deep.equal(numbers.map((n) => [n + first, name(n)]));
    }
  });

  const withUmlaut = `phone,name\n${phone},Grüße Ömer\n`;
  const utf16be = Buffer.from(`\ufeff${withUmlaut}`, 'utf16le').swap16();
  const encodings: [string, Buffer][] = [
    ['UTF-8', Buffer.from(withUmlaut)],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${withUmlaut}`)],
    ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${withUmlaut}`, 'utf16le')],
    ['big-endian UTF-16 with a byte order mark', utf16be],
    ['UTF-16 without a byte order mark', Buffer.from(withUmlaut, 'utf16le')],
    ['big-endian UTF-16 without a byte order mark', utf16be.subarray(2)],
  ];
  for (const [what, bytes] of encodings) {
    it(`accepts ${what}`, async () => {
      const { good, notes } = await readCalls(bytes);
      expect([good[0]?.call.contact.name, notes]).to.deep.equal(['Grüße Ömer', []]);
    });
  }

  it("reads text that isn't UTF-8 as Latin-1, with a warning", async () => {
    const { good, notes } = await readCalls(Buffer.from(withUmlaut, 'latin1'));
    expect(good[0]?.call.contact.name).to.equal('Grüße Ömer');
    expect(notes.join()).to.match(/isn't UTF-8.*Latin-1.*CSV UTF-8/);
  });

  for (const [what, delimiter] of [
    ['semicolons', ';'],
    ['tabs', '\t'],
  ] as const) {
    it(`accepts columns separated by ${what}, and empty cells`, async () => {
      const line = (...cells: string[]) => cells.join(delimiter);
      const text = [line('phone', 'name', '"var.note;,"'), line(phone, '', 'a,b'), line('', '', ''), line(phone, 'Ada', '')].join('\n');
      const { good, bad: wrong } = await readCalls(text);
      expect(good).to.deep.equal([
        { line: 2, call: { contact: { phone }, variables: { 'note;,': 'a,b' } } },
        { line: 4, call: { contact: { phone, name: 'Ada' } } },
      ]);
      expect(wrong).to.deep.equal([]);
    });
  }

  it('accepts tabs between quoted columns', async () => {
    const { good } = await readCalls(`"phone"\t"name"\t"var.note"\n"${phone}"\t"Ada"\t""\n`);
    expect(good).to.deep.equal([{ line: 2, call: { contact: { phone, name: 'Ada' } } }]);
  });

  it('counts lines as an editor does, whatever line endings a cell contains', async () => {
    const cells = ['"a\r\nb"', '"a\nb"', '"a\rb"', '"a\r\n\r\n"', 'a'];
    const text = ['phone,var.note', ...cells.map((cell, n) => `+4930123456${10 + n},${cell}`)].join('\r\n');
    expect((await readCalls(text)).good.map(({ line }) => line)).to.deep.equal([2, 4, 6, 8, 11]);
  });

  it('accepts a comma in a column name', () => {
    expect(parseColumns('name=Name, first,phone=Mobile')).to.deep.equal({ name: 'Name, first', phone: 'Mobile' });
  });

  it('uses only the columns that --columns names, and says which ones it ignores', async () => {
    const text = `Kunde;Mobile;phone;Ort;Bestellung;time zone\nAda;${phone};12;Berlin;7;Europe/Berlin\n`;
    const { good, notes } = await readCalls(text, { columns: parseColumns('phone=Mobile, name=Kunde,var.order=Bestellung') });
    expect(good).to.deep.equal([{ line: 2, call: { contact: { phone, name: 'Ada' }, variables: { order: '7' } } }]);
    expect(notes).to.deep.equal(['Ignored columns: phone, Ort, time zone.']);
  });

  it('reads national numbers with --country', async () => {
    const text = `phone\n030 12345-678\n(0151) 23456789\n+44 20 7946 0018\n+442079460018\n12\n`;
    const { good, bad: wrong } = await readCalls(text, { country: parseCountry('de') });
    expect(good.map(({ call }) => call.contact.phone)).to.deep.equal(['+493012345678', '+4915123456789', '+442079460018', '+442079460018']);
    expect(wrong.map(({ line }) => line)).to.deep.equal([6]);
  });

  it('reads numbers with spaces and invisible characters in every file, and national ones in NDJSON with --country', async () => {
    const texts = ['\u202A+353 86 123 4567\u202C', '+353861234567', '086 123 4567'];
    const lines = texts.map((text) => JSON.stringify({ contact: { phone: text } }));
    for (const text of [`phone\n${texts.join('\n')}\n`, lines.join('\n')]) {
      for (const country of [undefined, 'IE']) {
        const { good, bad } = await readCalls(text, country === undefined ? {} : { country });
        expect([...new Set(good.map(({ call }) => call.contact.phone))]).to.deep.equal(['+353861234567']);
        expect(bad).to.have.length(country === undefined ? 1 : 0);
      }
    }
  });

  it('reads local times with --zone, in CSV and NDJSON', async () => {
    const text = `phone,notBefore,notAfter,requestId\n${phone},2099-07-01 09:00,2099-07-01T18:00:30,a\n${phone},2099-07-01T09:00:00.000Z,,\n`;
    const { good } = await readCalls(text, { zone: 'Europe/Berlin' });
    expect(good.map(({ call: { notBefore, notAfter } }) => [notBefore, notAfter])).to.deep.equal([
      ['2099-07-01T07:00:00.000Z', '2099-07-01T16:00:30.000Z'],
      ['2099-07-01T09:00:00.000Z', undefined],
    ]);
    const ndjson = await readCalls(`{"contact":{"phone":"${phone}"},"notBefore":"2099-07-01T09:00"}`, { zone: 'Europe/Berlin' });
    expect(ndjson.good[0]?.call.notBefore).to.equal('2099-07-01T07:00:00.000Z');
  });

  for (const [time, zone, says] of [
    ['2027-03-28 02:30', 'Europe/Berlin', "2027-03-28 02:30: this time doesn't exist in Europe/Berlin."],
    [
      '2027-10-31 02:30',
      'Europe/Berlin',
      '2027-10-31 02:30: this time occurs twice in Europe/Berlin, because the clocks are set back. Specify it in UTC, ending in Z.',
    ],
    ['2027-01-31 02:30', null, '2027-01-31 02:30: add --zone, such as --zone Europe/Berlin, or specify a time in UTC that ends in Z.'],
  ] as const) {
    it(`rejects a line with the local time ${time}${zone === null ? ' without --zone' : ` in ${zone}`}`, async () => {
      expect(await badLines(`phone,notBefore\n${phone},${time}\n`, { zone })).to.deep.equal([[2, 'notBefore', says]]);
    });
  }

  it('reports each line that has the same phone number as an earlier line', async () => {
    const { good, duplicateNumber } = await readCalls(`phone\n${phone}\n+442079460018\n${phone}\n12\n${phone}\n`);
    expect([good.length, duplicateNumber]).to.deep.equal([
      4,
      [
        [4, 2],
        [6, 2],
      ],
    ]);
  });

  it('reads a file once: what changes in it afterwards is ignored', async () => {
    const directory = freshDirectory();
    const path = join(directory, 'calls.csv');
    writeFileSync(path, `phone\n${phone}\n`);
    const folders = { config: directory, data: directory, state: directory };
    const file = await openCallFile({ stdin: Readable.from([]), folders }, path, plainReading);
    writeFileSync(path, 'phone\n+442079460018\n+442079460019\n');
    expect(await Readable.from(file.rows()).toArray()).to.deep.equal([{ line: 2, input: { contact: { phone } } }]);
    expect(readdirSync(directory)).to.deep.equal(['calls.csv']);
    await file.close();
  });
});

describe('reading a file saved by a spreadsheet', () => {
  it('accepts a delimiter declared in the first line', async () => {
    for (const [sep, text] of [
      [';', `phone;name\r\n${phone};Ada\r\n`],
      ['|', `phone|name\r\n${phone}|Ada\r\n`],
    ]) {
      const { good } = await readCalls(`\ufeffsep=${sep}\r\n${text}`);
      expect(good).to.deep.equal([{ line: 3, call: { contact: { phone, name: 'Ada' } } }]);
    }
  });

  const phones: [string, string][] = [
    ['titles above the header', `Callbacks;;\nExported 2026-11-28;;\n\nName;phone\nAda;${phone}\n`],
    ['a column named as people name it', `name;Telefonnummer\nAda;${phone}\n`],
    ['rows without their last empty cells', `name;phone;notBefore;var.note\r\nAda;${phone}\r\n`],
    ['empty cells beyond the last column', `name,phone\nAda,${phone},,\n`],
    ['numbers written as formulas', `name,phone\nAda,="${phone}"\n`],
    ['numbers guarded by an apostrophe', `name,phone\nAda,'${phone}\n`],
    ['invisible characters in a number, and spaces', `name,phone\nAda,\u202a+49 30\u00a01234 5678\u202c\n`],
    ['vertical bars', `name|phone\nAda|${phone}\n`],
    ['two byte order marks', `\ufeff\ufeffname,phone\nAda,${phone}\n`],
  ];
  for (const [what, text] of phones) {
    it(`accepts ${what}`, async () => {
      const { good, bad } = await readCalls(text);
      expect([good.map(({ call }) => call), bad]).to.deep.equal([[{ contact: { phone, name: 'Ada' } }], []]);
    });
  }

  it("places the console's own export of calls again, without its request IDs, and finds them to cancel", async () => {
    const cells = ['Reminders', 'order-1', 'Ada', phone, 'No answer', ...Array.from({ length: 8 }, () => '')];
    const text = csvStart + csvRow(callsHead) + csvRow(cells) + completeLine(1);
    const { good, bad, notes } = await readCalls(text);
    expect([good, bad]).to.deep.equal([[{ line: 2, call: { contact: { phone, name: 'Ada' } } }], []]);
    expect(notes.join()).to.match(/^Ignored columns: Campaign, Request ID, Outcome/);
    expect((await readCalls(text, {}, 'cancel')).good.map(({ call }) => call.requestId)).to.deep.equal(['order-1']);
  });

  it('ignores columns without a name, and says so', async () => {
    const { good, notes } = await readCalls(`phone,name,\n${phone},Ada,\n`);
    expect(good).to.deep.equal([{ line: 2, call: { contact: { phone, name: 'Ada' } } }]);
    expect(notes).to.deep.equal(['Ignored columns: column 3 (no name).']);
  });

  it('refuses UTF-32, and names this encoding', async () => {
    const utf32 = (text: string) => Buffer.concat(Array.from(text, (character) => Buffer.from([character.charCodeAt(0), 0, 0, 0])));
    const little = utf32(`phone\n${phone}\n`);
    for (const content of [little, Buffer.concat([Buffer.from([0xff, 0xfe, 0, 0]), little]), Buffer.from(little).swap32()])
      expect(await readRefusal(content))
        .to.have.property('message')
        .that.matches(/is UTF-32/);
  });
});

describe('reading NDJSON', () => {
  it('accepts LF, CR LF and CR as line endings, even where two chunks meet', async () => {
    const line = JSON.stringify({ contact: { phone } });
    for (const end of ['\n', '\r\n', '\r']) {
      // The second byte of CR LF is the first of the second chunk.
      const text = [line.padEnd(64 * 1024 - 1), line, line].join(end);
      expect((await readCalls(text)).good).to.deep.equal([1, 2, 3].map((number) => ({ line: number, call: { contact: { phone } } })));
    }
  });
});

describe('the CSV options', () => {
  for (const text of ['phone', 'phone=', 'fax=Fax', 'var.=x', 'phone=A,phone=B', ''])
    it(`refuse --columns "${text}"`, () => expect(() => parseColumns(text)).to.throw(CallkeyError, /--columns/));

  it('accept the pairs of --columns in any order', () => {
    expect(JSON.stringify(parseColumns('phone=A,name=B'))).to.equal(JSON.stringify(parseColumns('name=B,phone=A')));
  });

  it('refuse an unknown country', () => expect(() => parseCountry('Germany')).to.throw(CallkeyError, /two-letter/));
});

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
