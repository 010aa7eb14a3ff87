import { expect } from 'chai';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { CsvReader, csvRow } from '#contract/files/csv.ts';

describe('reading CSV', () => {
  const special = fc.constantFrom('"', ',', ';', '\t', '\r', '\n', '\r\n', ' ', '=', '+', '-', '@', '="a"', '\u202a', 'é', '#', '|');
  const cell = fc
    .array(fc.oneof(special, fc.string({ maxLength: 3 })), { maxLength: 6 })
    .map((parts) => parts.join('').replaceAll("'", ''));
  const rows = fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });

  it('undoes exactly what our exports write, wherever the text is cut, and counts lines', () => {
    fc.assert(
      fc.property(rows, fc.array(fc.nat(), { maxLength: 8 }), (written, cuts) => {
        const texts = written.map(csvRow);
        const text = texts.join('');
        const reader = new CsvReader('file', ',');
        const ends = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].toSorted((a, b) => a - b);
        const read = ends.slice(1).flatMap((end, index) => reader.push(text.slice(ends[index], end)));
        read.push(...reader.end());
        expect(read.map(({ cells }) => cells)).to.deep.equal(written);
        expect(read.map((record) => record.text)).to.deep.equal(texts);
        const lines = (part: string) => part.split(/\r\n|\n|\r/).length - 1;
        expect(read.map(({ line }) => line)).to.deep.equal(texts.map((_, n) => 1 + lines(texts.slice(0, n).join(''))));
      }),
      { numRuns: 500 },
    );
  });
});

describe('writing CSV', () => {
  it('can be read back unchanged, with commas, quotes, line breaks and any script', () => {
    const rows = [
      ['a,b', 'say "hi"', 'two\r\nlines'],
      ['', '电话 📞', 'مفتاح'],
    ];
    expect(parse(rows.map(csvRow).join(''))).to.deep.equal(rows);
  });

  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', ' =1', '\u200E=1', '＝1']) {
    it(`doesn't let ${JSON.stringify(text)} be a formula`, () => {
      expect(parse(csvRow([text]))).to.deep.equal([[`'${text}`]]);
    });
  }

  for (const text of ['x;=1', 'x\t=1', '\t=1', 'x; +1', 'x;\u200E-1', 'x;"=1"', 'x\n=1', '"\r\n;@SUM(A1)', '=1;=1', 'x;＝1']) {
    for (const delimiter of [';', '\t']) {
      it(`doesn't let ${JSON.stringify(text)} become a formula if cells are separated by ${JSON.stringify(delimiter)}`, () => {
        // Splits the text as spreadsheets do: only a quote at the start of a cell matters.
        const cells = csvRow(['a', text])
          .split(/\r\n|\n|\r/)
          .flatMap((line) => line.split(delimiter));
        for (const cell of cells) expect(cell).not.to.match(/^[\s\p{Cf}"]*[=+\-@＝＋－＠]/u);
      });
    }
  }

  it('puts only one apostrophe in front of a formula, after all tabs and line breaks before it', () => {
    expect(parse(csvRow(['x\n\n\t =1']))).to.deep.equal([["x\n\n\t' =1"]]);
  });

  it('leaves a semicolon unchanged if no formula follows it', () => {
    const text = 'Tel; Fax; 10-12 h; a=b';
    expect(parse(csvRow([text]))).to.deep.equal([[text]]);
  });
});
