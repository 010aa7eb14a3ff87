import { expect } from 'chai';
import { limits } from '#contract/limits.ts';
import { readCallFile } from '../../cli/batch/call-file.ts';
import { CallkeyError } from '../../cli/client/errors.ts';

const read = (text: string) => readCallFile(Buffer.from(text), 'calls');
const error = (content: string | Buffer) => {
  try {
    readCallFile(Buffer.from(content), 'calls');
  } catch (thrown) {
    return thrown;
  }
  return undefined;
};
const bad = (text: string) => read(text).bad.flatMap(({ line, errors }) => errors.map(({ path, message }) => [line, path, message]));
const phone = '+493012345678';

describe('a file of calls', () => {
  it('is CSV with a header, quotes, blank lines and a byte order mark', () => {
    const text = `\ufeffPhone,"Name",time_zone,requestId,notAfter,var.note,var.order\r\n${phone},"Lovelace, ""Ada""",Europe/Berlin,,2099-01-01T00:00:00.000Z,"two\nlines",\r\n\r\n+493012345679,,,own,,,7\r\n`;
    expect(read(text)).to.deep.equal({
      good: [
        {
          line: 2,
          call: {
            contact: { phone, name: 'Lovelace, "Ada"', timeZone: 'Europe/Berlin' },
            variables: { note: 'two\nlines' },
            notAfter: '2099-01-01T00:00:00.000Z',
          },
        },
        { line: 5, call: { requestId: 'own', contact: { phone: '+493012345679' }, variables: { order: '7' } } },
      ],
      bad: [],
    });
  });

  it('is NDJSON where it begins with a brace', () => {
    const { good } = read(`\n{"contact":{"phone":"${phone}"},"variables":{"a":"1"}}\n\n{"contact":{"phone":"${phone}"}}\n`);
    expect(good).to.deep.equal([
      { line: 2, call: { contact: { phone }, variables: { a: '1' } } },
      { line: 4, call: { contact: { phone } } },
    ]);
  });

  for (const [what, lineEnd] of [
    ['LF', '\n'],
    ['CR', '\r'],
  ] as const) {
    it(`numbers the lines of CSV with ${what} by the last line above a cell of several lines`, () => {
      const text = ['phone,var.note', `${phone},"one${lineEnd}two${lineEnd}three"`, '12,x'].join(lineEnd);
      expect([read(text).good[0]?.line, read(text).bad[0]?.line]).to.deep.equal([2, 5]);
    });
  }

  const unreadable: [string, string | Buffer, RegExp][] = [
    ['an empty file', '', /empty/],
    ['a header alone', 'phone,name\n', /no calls/],
    ['a header without phone', 'name\nAda\n', /no column phone/],
    ['an unknown column', `phone,fax\n${phone},1\n`, /"fax".*The columns are/],
    ['a column twice', `phone,Phone\n${phone},1\n`, /column phone twice/],
    ['a variable twice', `phone,var.a,var.a\n${phone},1,2\n`, /column var\.a twice/],
    ['semicolons', `phone;name\n${phone};Ada\n`, /commas/],
    ['tabs', `phone\tname\n${phone}\tAda\n`, /commas/],
    ['text that is not UTF-8', Buffer.from(`phone,name\n${phone},\xe4\n`, 'latin1'), /UTF-8/],
    ['a header with a quote out of place', 'ph"one\n', /quote/],
  ];
  for (const [what, content, message] of unreadable) {
    it(`is refused as a whole for ${what}`, () => {
      expect(error(content)).to.be.instanceOf(CallkeyError).and.include({ kind: 'usage' });
      expect(error(content)).to.have.property('message').that.matches(message);
    });
  }

  const wrongLines: [string, string, [number, string, string | RegExp]][] = [
    ['is no phone number', 'phone\n12\n', [2, 'contact.phone', /E\.164/]],
    ['has too few cells', `phone,name\n${phone}\n`, [2, '', 'This line has 1 cells, the header has 2.']],
    ['has an empty phone', 'phone,name\n,Ada\n', [2, 'contact.phone', 'This field is required.']],
    ['is not JSON', `{"contact":{"phone":"${phone}"}}\nnonsense\n`, [2, '', 'This is not JSON.']],
    ['has an unknown field', `{"contact":{"phone":"${phone}"},"x":1}\n`, [1, 'x', 'This field is not known.']],
    ['repeats a request id', `phone,requestId\n${phone},a\n${phone},b\n${phone},a\n`, [4, 'requestId', 'Line 2 has the same request id.']],
    ['has a quote that never closes', `phone,name\n${phone},Ada\n${phone},"Bob\n`, [3, '', /quote is out of place/]],
  ];
  for (const [what, text, [line, path, message]] of wrongLines) {
    it(`reports a line that ${what}`, () => {
      const [first, ...more] = bad(text);
      expect(first?.slice(0, 2)).to.deep.equal([line, path]);
      if (typeof message === 'string') expect(first?.[2]).to.equal(message);
      else expect(first?.[2]).to.match(message);
      expect(more).to.deep.equal([]);
    });
  }

  it('does not report a value of a wrong type as a missing one', () => {
    expect(bad('{"contact":{"phone":493012345678}}\n')).to.deep.equal([
      [1, 'contact.phone', 'Invalid input: expected string, received number'],
    ]);
  });

  it('has no lines after a quote out of place, even right ones', () => {
    const { good, bad } = read(`phone,name\n${phone},A"da\n${phone},Bob\n`);
    expect([good, bad.length]).to.deep.equal([[], 1]);
  });

  it('reports a call that leaves no room for a request id', () => {
    const variables = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`v${n}`, 'x'.repeat(1000)]));
    const line = JSON.stringify({ contact: { phone }, variables });
    expect(line.length).to.be.greaterThan(limits.bodyBytes);
    expect(bad(`${line}\n`).length).to.be.greaterThan(0);
  });
});
