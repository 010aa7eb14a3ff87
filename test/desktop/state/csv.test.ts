import { expect } from 'chai';
import { parse } from 'csv-parse/sync';
import { toCsv } from '../../../desktop/renderer/state/csv.ts';

describe('a file of comma-separated values', () => {
  it('comes back as it was, with commas, quotes, line breaks and any script', () => {
    const rows = [
      ['a,b', 'say "hi"', 'two\r\nlines'],
      ['', '电话 📞', 'مفتاح'],
    ];
    expect(parse(toCsv(['x', 'y', 'z'], rows), { bom: true })).to.deep.equal([['x', 'y', 'z'], ...rows]);
  });

  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '\u200E=1', '＝1']) {
    it(`does not let ${JSON.stringify(text)} be a formula`, () => {
      expect(parse(toCsv(['x'], [[text]]), { bom: true })).to.deep.equal([['x'], [`'${text}`]]);
    });
  }

  it('begins with a byte order mark, for Excel', () => {
    expect(toCsv(['x'], []).codePointAt(0)).to.equal(0xfeff);
  });
});
