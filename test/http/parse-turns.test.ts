import { mock } from 'node:test';
import { expect } from 'chai';
import { waitForNetworkTurn, waitForParseTurn } from '../../core/http/middleware/turns.ts';
import { rejection, useStillClock } from '../support/call-store.ts';

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
    mock.timers.tick(1_000);
    const later = waitAll(['flood']);
    mock.timers.tick(1_001);
    expect(await Promise.all([...early, ...later])).to.deep.equal([tooMany, tooMany, 'none']);
  });
});

describe('turns of requests without a key', () => {
  it('rotate between networks, so that a flood from one network delays only that network', async () => {
    const order: string[] = [];
    const flood = Array.from({ length: 9 }, (_, n) => `2001:db8::${n + 1}`);
    await Promise.all([...flood, '192.0.2.1'].map((address) => waitForNetworkTurn(address).then(() => order.push(address))));
    expect(order.indexOf('192.0.2.1')).to.equal(1);
  });
});
