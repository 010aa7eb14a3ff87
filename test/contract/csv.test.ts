import { expect } from 'chai';
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
