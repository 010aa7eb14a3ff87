import { expect } from 'chai';
import { waitForParseTurn } from '../../core/http/parse-turns.ts';
import { rejection, stillClock, useStillClock } from '../support/batches.ts';

describe('turns to parse large bodies', () => {
  const tooMany = { code: 'unavailable', retryAfter: 2, message: 'Too many large requests are waiting. Try again shortly.' };
  const waitAll = (shares: readonly string[], order: string[] = []) =>
    shares.map((share) => rejection(waitForParseTurn(share).then(() => order.push(share))));

  useStillClock();

  it('rotate between keys, however many bodies one of them sends', async () => {
    const order: string[] = [];
    await Promise.all(waitAll(['flood', 'flood', 'flood', 'other'], order));
    expect(order).to.deep.equal(['flood', 'other', 'flood', 'flood']);
  });

  it('are refused to the key with the most waiting bodies if there are too many', async () => {
    const flood = waitAll(Array.from({ length: 1_000 }, () => 'flood'));
    const other = waitAll(['other']);
    expect(await flood[999]).to.deep.equal(tooMany);
    expect(await Promise.all([...flood.slice(0, 999), ...other])).to.deep.equal(Array.from({ length: 1_000 }, () => 'none'));
  });

  it('are refused to bodies that have waited for two seconds, so that a statement can still be sent in time', async () => {
    const early = waitAll(['flood', 'flood']);
    stillClock.now += 1_000;
    const later = waitAll(['flood']);
    stillClock.now += 1_001;
    expect(await Promise.all([...early, ...later])).to.deep.equal([tooMany, tooMany, 'none']);
  });
});
