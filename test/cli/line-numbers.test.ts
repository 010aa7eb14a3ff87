import { expect } from 'chai';
import { FirstLines, LineSet } from '../../cli/batch/long-file.ts';

describe('collections of line numbers', () => {
  it('contain each added number once', () => {
    const set = new LineSet();
    const lines = [1, 2, 8, 9, 8191, 8192, 8193, 3_000_000, 8];
    for (const line of lines) set.add(line);
    expect(lines.every((line) => set.has(line))).to.equal(true);
    expect(set.size).to.equal(8);
    expect(set.has(3)).to.equal(false);
    expect(set.has(2_999_999)).to.equal(false);
    expect(set.has(30_000_000)).to.equal(false);
  });

  it('return the first line with the same fingerprint, like a Map, even for thousands of lines', () => {
    const firstLines = new FirstLines(20_000);
    const map = new Map<string, number>();
    for (let line = 1; line <= 20_000; line++) {
      // These resemble real phone numbers from one exchange: many, close together, and a quarter of them duplicates.
      const fingerprint = { high: 493_000_000_000 + ((line * 7) % 15_000) * 1024, low: line % 3 === 0 ? 1 : 0 };
      const key = `${fingerprint.high} ${fingerprint.low}`;
      expect(firstLines.add(fingerprint, line)).to.equal(map.get(key));
      if (!map.has(key)) map.set(key, line);
    }
    expect(map.size).to.be.lessThan(20_000);
  });
});
