import { hash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { completeLine, csvRow, csvStart } from '#contract/files/csv.ts';
import { callsHead } from '#contract/files/table.ts';
import { openCallFile } from '../../cli/batch/call-file.ts';
import { parseColumns, parseCountry, plainReading } from '../../cli/batch/reading.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { badLines, readCalls, readRefusal } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';

const phone = '+493012345678';

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
