import { hash } from 'node:crypto';
import { appendFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { limits } from '#contract/limits.ts';
import { type BadLine, type CallLine, checkCalls, goodLines, openCallFile } from '../../cli/batch/file/call-file.ts';
import { readNdjson } from '../../cli/batch/file/ndjson.ts';
import { parseColumns, parseCountry, type Reading } from '../../cli/batch/file/reading.ts';
import { openSource } from '../../cli/batch/file/source.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { freshDirectory } from '../support/databases.ts';

type Read = { good: CallLine[]; bad: BadLine[]; sameNumber: [number, number][]; notes: string[]; content: string };

async function read(content: string | Buffer, reading: Partial<Reading> = {}): Promise<Read> {
  const directory = freshDirectory();
  const path = join(directory, 'calls');
  writeFileSync(path, content);
  const source = await openSource(path, Readable.from([]), { config: directory, data: directory, state: directory });
  try {
    const file = await openCallFile(source, { columns: {}, country: null, ...reading });
    const result: Read = { good: [], bad: [], sameNumber: [], notes: file.notes, content: file.content };
    const { bad, good } = await checkCalls(file, {
      badLine: (line) => result.bad.push(line),
      sameNumber: (...lines) => result.sameNumber.push(lines),
      line: () => undefined,
    });
    result.good.push(...(await Readable.from(goodLines(file, bad)).toArray()));
    expect([good, bad.size]).to.deep.equal([result.good.length, result.bad.length]);
    return result;
  } finally {
    await source.close();
  }
}
const error = (content: string | Buffer, reading?: Partial<Reading>) =>
  read(content, reading).then(
    () => expect.fail('It was read.'),
    (thrown: unknown) => thrown,
  );
const bad = async (text: string, reading?: Partial<Reading>) =>
  (await read(text, reading)).bad.flatMap(({ line, errors }) => errors.map(({ path, message }) => [line, path, message]));
const phone = '+493012345678';

describe('reading a call file', () => {
  it('accepts CSV with a header, quotes, blank lines and a byte order mark', async () => {
    const text = `\ufeffPhone,"Name",time_zone,requestId,notAfter,var.note,var.order\r\n${phone},"Lovelace, ""Ada""",Europe/Berlin,,2099-01-01T00:00:00.000Z,"two\nlines",\r\n\r\n+493012345679,,,own,,,7\r\n`;
    const { good, bad: wrong, content } = await read(text);
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
    const { good } = await read(`\n{"contact":{"phone":"${phone}"},"variables":{"a":"1"}}\n\n{"contact":{"phone":"${phone}"}}\n`);
    expect(good).to.deep.equal([
      { line: 2, call: { contact: { phone }, variables: { a: '1' } } },
      { line: 4, call: { contact: { phone } } },
    ]);
  });

  for (const [what, lineEnd] of [
    ['LF', '\n'],
    ['CR', '\r'],
  ] as const) {
    it(`numbers CSV lines correctly after a cell with several lines, with ${what}`, async () => {
      const text = ['phone,var.note', `${phone},"one${lineEnd}two${lineEnd}three"`, '12,x'].join(lineEnd);
      const { good, bad: wrong } = await read(text);
      expect([good[0]?.line, wrong[0]?.line]).to.deep.equal([2, 5]);
    });
  }

  it('reads files longer than one chunk, with letters and quotes split between chunks', async () => {
    const name = (n: number) => `Zoë "${'é'.repeat(n % 7)}" ${n}`;
    const numbers = Array.from({ length: 5_000 }, (_, n) => n);
    const csv = numbers.map((n) => `+4930${10_000_000 + n},"${name(n).replaceAll('"', '""')}"`).join('\n');
    const json = numbers.map((n) => JSON.stringify({ contact: { phone: `+4930${10_000_000 + n}`, name: name(n) } })).join('\n');
    for (const [text, first] of [
      [`phone,name\n${csv}`, 2],
      [json, 1],
    ] as const) {
      const { good } = await read(text);
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
      const { good, notes } = await read(bytes);
      expect([good[0]?.call.contact.name, notes]).to.deep.equal(['Grüße Ömer', []]);
    });
  }

  it("reads text that isn't UTF-8 as Latin-1, with a warning", async () => {
    const { good, notes } = await read(Buffer.from(withUmlaut, 'latin1'));
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
      const { good, bad: wrong } = await read(text);
      expect(good).to.deep.equal([
        { line: 2, call: { contact: { phone }, variables: { 'note;,': 'a,b' } } },
        { line: 4, call: { contact: { phone, name: 'Ada' } } },
      ]);
      expect(wrong).to.deep.equal([]);
    });
  }

  it('accepts tabs between quoted columns', async () => {
    const { good } = await read(`"phone"\t"name"\t"var.note"\n"${phone}"\t"Ada"\t""\n`);
    expect(good).to.deep.equal([{ line: 2, call: { contact: { phone, name: 'Ada' } } }]);
  });

  it('counts lines as an editor does, whatever line ends a cell contains', async () => {
    const cells = ['"a\r\nb"', '"a\nb"', '"a\rb"', '"a\r\n\r\n"', 'a'];
    const text = ['phone,var.note', ...cells.map((cell, n) => `+4930123456${10 + n},${cell}`)].join('\r\n');
    expect((await read(text)).good.map(({ line }) => line)).to.deep.equal([2, 4, 6, 8, 11]);
  });

  it('accepts a comma in a column name', () => {
    expect(parseColumns('name=Name, first,phone=Mobile')).to.deep.equal({ name: 'Name, first', phone: 'Mobile' });
  });

  it('maps other column names with --columns, and says which columns it ignores', async () => {
    const text = `Kunde;Mobile;phone;Ort;Bestellung;time zone\nAda;${phone};12;Berlin;7;Europe/Berlin\n`;
    const { good, notes } = await read(text, { columns: parseColumns('phone=Mobile, name=Kunde,var.order=Bestellung') });
    expect(good).to.deep.equal([
      { line: 2, call: { contact: { phone, name: 'Ada', timeZone: 'Europe/Berlin' }, variables: { order: '7' } } },
    ]);
    expect(notes).to.deep.equal(['Ignored: phone, Ort.']);
  });

  it('reads national numbers with --country', async () => {
    const text = `phone\n030 12345-678\n(0151) 23456789\n+44 20 7946 0018\n+442079460018\n12\n`;
    const { good, bad: wrong } = await read(text, { country: parseCountry('de') });
    expect(good.map(({ call }) => call.contact.phone)).to.deep.equal(['+493012345678', '+4915123456789', '+442079460018', '+442079460018']);
    expect(wrong.map(({ line }) => line)).to.deep.equal([6]);
  });

  it('reports each line that has the same phone number as an earlier line', async () => {
    const { good, sameNumber } = await read(`phone\n${phone}\n+442079460018\n${phone}\n12\n${phone}\n`);
    expect([good.length, sameNumber]).to.deep.equal([
      4,
      [
        [4, 2],
        [6, 2],
      ],
    ]);
  });

  it("refuses a file that changes while it's being read, even if its size and times stay the same", async () => {
    for (const change of [
      (path: string) => appendFileSync(path, '+442079460018\n'),
      (path: string) => {
        const { atime, mtime } = statSync(path);
        writeFileSync(path, `phone\n${phone.slice(0, -1)}9\n`);
        utimesSync(path, atime, mtime);
      },
    ]) {
      const directory = freshDirectory();
      const path = join(directory, 'calls.csv');
      writeFileSync(path, `phone\n${phone}\n`);
      const source = await openSource(path, Readable.from([]), { config: directory, data: directory, state: directory });
      const file = await openCallFile(source, { columns: {}, country: null });
      change(path);
      const thrown = await Readable.from(file.rows())
        .toArray()
        .catch((error: unknown) => error);
      await source.close();
      expect(thrown).to.be.instanceOf(CallkeyError).and.include({ kind: 'conflict', code: 'file-changed' });
    }
  });

  const unreadable: [string, string | Buffer, RegExp, Partial<Reading>?][] = [
    ['an empty file', '', /empty/],
    ['a header without any lines', 'phone,name\n', /no calls/],
    ['a header without a phone column', 'name\nAda\n', /no phone column/],
    ['an unknown column', `phone,fax\n${phone},1\n`, /"fax".*The columns.*--columns/],
    ['a duplicate column', `phone,Phone\n${phone},1\n`, /column phone twice/],
    ['a duplicate variable', `phone,var.a,var.a\n${phone},1,2\n`, /column var\.a twice/],
    [
      'a missing column that --columns names',
      `phone,name\n${phone},Ada\n`,
      /no column "Mobile".*phone, name/,
      { columns: { phone: 'Mobile' } },
    ],
    ['--columns with NDJSON', `{"contact":{"phone":"${phone}"}}`, /--columns/, { columns: { phone: 'Mobile' } }],
    ['an unsupported separator', `phone|name\n${phone}|Ada\n`, /commas, semicolons or tabs/],
    ['text that mixes UTF-8 and Latin-1', Buffer.from(`phone,name\n${phone},Ã©\n${phone},\xe4\n`, 'latin1'), /mixes UTF-8/],
    ["a spreadsheet program's own file format", Buffer.from('PK\x03\x04\x14\x00', 'latin1'), /save it as CSV/],
    ["an old spreadsheet program's own file format", Buffer.from('\xd0\xcf\x11\xe0\xa1', 'latin1'), /save it as CSV/],
    ['a compressed file', Buffer.from('\x1f\x8b\x08\x00\xc3\xa4\xff', 'latin1'), /isn't a text file/],
    ['a JSON array', `[{"contact":{"phone":"${phone}"}}]`, /without brackets/],
    [
      'a first line that is too long, of which it shows only the start',
      'x'.repeat(200_000),
      /has an unknown column: "x{60}…"\. The columns/,
    ],
    ['a header with a misplaced quote', 'ph"one\n', /quote/],
    ['an unclosed quote', `phone,name\n${phone},Ada\n${phone},"Bob\n`, /line 3: there is a misplaced quotation mark/],
    [
      'a quoted cell that is too long',
      `phone,name\n${phone},"Bob\n${`${phone},Ada\n`.repeat(20_000)}`,
      /this line is too long for a call, or there is a misplaced quotation mark/,
    ],
    [
      'a misplaced quote followed by valid lines',
      `phone,name\n${phone},A"da\n${phone},Bob\n`,
      /line 2: there is a misplaced quotation mark/,
    ],
    ['NDJSON on a single line', `{"a":"${'x'.repeat(3_000_000)}`, /too long/],
  ];
  for (const [what, content, message, reading] of unreadable) {
    it(`refuses the whole file for ${what}`, async () => {
      const thrown = await error(content, reading);
      expect(thrown).to.be.instanceOf(CallkeyError).and.include({ kind: 'usage' });
      expect(thrown).to.have.property('message').that.matches(message);
    });
  }

  const wrongLines: [string, string, [number, string, string | RegExp]][] = [
    ['has an invalid phone number', 'phone\n12\n', [2, 'contact.phone', /E\.164/]],
    ['has a number rounded by a spreadsheet', 'phone\n4.91E+11\n', [2, 'contact.phone', /spreadsheet.*"4\.91E\+11".*as text/]],
    ['has a number rounded by a German spreadsheet', 'phone;name\n4,91512E+12;Ada\n', [2, 'contact.phone', /spreadsheet/]],
    ['has too few cells', `phone,name\n${phone}\n`, [2, '', 'This line has 1 cell, but the header has 2.']],
    ['has an empty phone', 'phone,name\n,Ada\n', [2, 'contact.phone', 'This field is required.']],
    ["isn't JSON", `{"contact":{"phone":"${phone}"}}\nnonsense\n`, [2, '', "This isn't valid JSON."]],
    ['has an unknown field', `{"contact":{"phone":"${phone}"},"x":1}\n`, [1, 'x', 'Unknown field.']],
    ['repeats a request ID', `phone,requestId\n${phone},a\n${phone},b\n${phone},a\n`, [4, 'requestId', 'Line 2 has the same request ID.']],
    ['has a variable that would be lost', `phone,var.__proto__\n${phone},x\n`, [2, 'variables', /__proto__/]],
  ];
  for (const [what, text, [line, path, message]] of wrongLines) {
    it(`rejects a line that ${what}`, async () => {
      const [first, ...more] = await bad(text);
      expect(first?.slice(0, 2)).to.deep.equal([line, path]);
      if (typeof message === 'string') expect(first?.[2]).to.equal(message);
      else expect(first?.[2]).to.match(message);
      expect(more).to.deep.equal([]);
    });
  }

  it('reports that a value has the wrong type, instead of calling it missing', async () => {
    expect(await bad('{"contact":{"phone":493012345678}}\n')).to.deep.equal([[1, 'contact.phone', 'Must be a string.']]);
  });

  it('rejects a call that only its request ID makes too large', async () => {
    const variables = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`v${n}`, '€'.repeat(1000)]));
    const line = JSON.stringify({ contact: { phone }, variables });
    expect(Buffer.byteLength(line)).to.be.greaterThan(limits.bodyBytes);
    expect(await bad(`${line}\n`))
      .to.have.nested.property('[0][2]')
      .that.matches(/too large/);
  });
});

describe('reading a file saved by a spreadsheet', () => {
  it('accepts a delimiter declared in the first line', async () => {
    for (const [sep, text] of [
      [';', `phone;name\r\n${phone};Ada\r\n`],
      ['|', `phone|name\r\n${phone}|Ada\r\n`],
    ]) {
      const { good } = await read(`\ufeffsep=${sep}\r\n${text}`);
      expect(good).to.deep.equal([{ line: 3, call: { contact: { phone, name: 'Ada' } } }]);
    }
  });

  it('ignores columns without a name, and says so', async () => {
    const { good, notes } = await read(`phone,name,\n${phone},Ada,\n`);
    expect(good).to.deep.equal([{ line: 2, call: { contact: { phone, name: 'Ada' } } }]);
    expect(notes).to.deep.equal(['Ignored: column 3 (no name).']);
  });

  it('refuses UTF-32, and names this encoding', async () => {
    const utf32 = (text: string) => Buffer.concat(Array.from(text, (character) => Buffer.from([character.charCodeAt(0), 0, 0, 0])));
    const little = utf32(`phone\n${phone}\n`);
    for (const content of [little, Buffer.concat([Buffer.from([0xff, 0xfe, 0, 0]), little]), Buffer.from(little).swap32()])
      expect(await error(content))
        .to.have.property('message')
        .that.matches(/is UTF-32/);
  });
});

describe('reading NDJSON', () => {
  it('accepts LF, CR LF and CR as line ends, even where two chunks meet', async () => {
    const line = JSON.stringify({ contact: { phone } });
    for (const end of ['\n', '\r\n', '\r']) {
      const chunks = [`${line}${end}`, ...`${line}${end}${line}`];
      const rows = await Readable.from(readNdjson(Readable.from(chunks))).toArray();
      expect(rows).to.deep.equal([1, 2, 3].map((number) => ({ line: number, input: { contact: { phone } } })));
    }
  });
});

describe('the CSV options', () => {
  for (const text of ['phone', 'phone=', 'fax=Fax', 'var.=x', 'phone=A,phone=B', ''])
    it(`refuse --columns "${text}"`, () => expect(() => parseColumns(text)).to.throw(CallkeyError, /--columns/));

  it('give --columns the same meaning in any order', () => {
    expect(JSON.stringify(parseColumns('phone=A,name=B'))).to.equal(JSON.stringify(parseColumns('name=B,phone=A')));
  });

  it('refuse an unknown country', () => expect(() => parseCountry('Germany')).to.throw(CallkeyError, /two-letter/));
});
