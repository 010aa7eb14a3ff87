import { expect } from 'chai';
import { parse } from 'csv-parse/sync';
import { toCsv } from '../../../desktop/renderer/state/format.ts';

describe('a CSV file', () => {
  it('can be read back unchanged, with commas, quotes, line breaks and any script', () => {
    const rows = [
      ['a,b', 'say "hi"', 'two\r\nlines'],
      ['', '电话 📞', 'مفتاح'],
    ];
    expect(parse(toCsv(['x', 'y', 'z'], rows), { bom: true })).to.deep.equal([['x', 'y', 'z'], ...rows]);
  });

  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', ' =1', '\u200E=1', '＝1']) {
    it(`doesn't let ${JSON.stringify(text)} be a formula`, () => {
      expect(parse(toCsv(['x'], [[text]]), { bom: true })).to.deep.equal([['x'], [`'${text}`]]);
    });
  }

  for (const text of ['x;=1', 'x\t=1', '\t=1', 'x; +1', 'x;\u200E-1', 'x;"=1"', 'x\n=1', '"\r\n;@SUM(A1)', '=1;=1', 'x;＝1']) {
    for (const delimiter of [';', '\t']) {
      it(`doesn't let ${JSON.stringify(text)} become a formula if cells are separated by ${JSON.stringify(delimiter)}`, () => {
        // Splits the text as spreadsheets do: only a quote at the start of a cell matters.
        const cells = toCsv(['x', 'y'], [['a', text]])
          .split(/\r\n|\n|\r/)
          .flatMap((line) => line.split(delimiter));
        for (const cell of cells) expect(cell).not.to.match(/^[\s\p{Cf}"]*[=+\-@＝＋－＠]/u);
      });
    }
  }

  it('puts only one apostrophe in front of a formula, after all tabs and line breaks before it', () => {
    expect(parse(toCsv(['x'], [['x\n\n\t =1']]), { bom: true })).to.deep.equal([['x'], ["x\n\n\t' =1"]]);
  });

  it('leaves a semicolon unchanged if no formula follows it', () => {
    const text = 'Tel; Fax; 10-12 h; a=b';
    expect(parse(toCsv(['x'], [[text]]), { bom: true })).to.deep.equal([['x'], [text]]);
  });

  it('starts with a byte order mark for Excel', () => {
    expect(toCsv(['x'], []).codePointAt(0)).to.equal(0xfeff);
  });
});
