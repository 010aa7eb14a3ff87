import { expect } from 'chai';
import { inChunks, inShortTransactions, required } from '../../core/storage/engine/database.ts';

describe('work in chunks', () => {
  it('is split into chunks of 500, in order', () => {
    const items = Array.from({ length: 1_001 }, (_, n) => n);
    const chunks = [...inChunks(items)];
    expect([chunks.map(({ length }) => length), chunks.flat()]).to.deep.equal([[500, 500, 1], items]);
    expect([[...inChunks([])], [...inChunks(items.slice(0, 500))].length]).to.deep.equal([[], 1]);
  });

  it('continues until a step does less work than its limit, and returns the total', async () => {
    const left = [10, 10, 9, 10];
    const sizes: number[] = [];
    const step = async (size: number) => {
      sizes.push(size);
      return left.shift() ?? 0;
    };
    expect([await inShortTransactions(step, 10), sizes]).to.deep.equal([29, [10, 10, 10]]);
  });

  it('stops between two steps when its signal aborts', async () => {
    const stop = new AbortController();
    let steps = 0;
    const step = async () => {
      steps++;
      stop.abort(new Error('Stop.'));
      return 10;
    };
    expect(await inShortTransactions(step, 10, stop.signal).catch((error) => error.message)).to.equal('Stop.');
    expect(steps).to.equal(1);
  });
});

describe('database columns', () => {
  it("must not be null if they're required", () => {
    expect(required(0, 'at')).to.equal(0);
    expect(() => required(null, 'at')).to.throw('A database row is missing at.');
  });
});
