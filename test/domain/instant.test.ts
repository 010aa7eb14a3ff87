import { expect } from 'chai';
import { instant, plus } from '../../core/domain/instant.ts';

describe('instant', () => {
  const latest = 8.64e15;

  it('accepts any value that a Date can hold', () => {
    expect([-latest, 0, latest].map(instant)).to.deep.equal([-latest, 0, latest]);
    expect(plus(instant(1_500), -500)).to.equal(1_000);
  });

  it("refuses a number that a Date can't hold", () => {
    for (const ms of [latest + 1, -latest - 1, Number.NaN])
      expect(() => instant(ms)).to.throw(RangeError, `${ms} isn't a valid timestamp.`);
  });
});
