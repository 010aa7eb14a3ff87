import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import type { Turn } from '../../core/domain/fair-queue.ts';
import { ConsoleTurns, waitForNetworkTurn, waitForParseTurn } from '../../core/http/middleware/turns.ts';
import { rejection, useStillClock } from '../support/call-store.ts';
import { readProblem } from '../support/ports.ts';

/** The times are long enough for every test, except tests of a time limit, which shorten it. */
const ample = { search: 60_000, wait: 60_000, atOnce: 1, waitingOfUser: 3 };

function stage(limits: Partial<typeof ample> = {}) {
  const turns = new ConsoleTurns({ ...ample, ...limits });
  const log: string[] = [];
  const run = (session: string, name: string, work: (turn: Turn) => Promise<unknown> = async () => undefined, search = false) =>
    turns.run({ user: session[0] ?? '', session, search: search ? 'calls' : null, isGone: () => name === 'gone' }, async (turn) => {
      log.push(`${name} begins`);
      await work(turn);
      log.push(`${name} ends`);
    });
  return { run, log };
}

const pieces = (count: number, log: string[], name: string) => async (turn: Turn) => {
  for (let n = 1; n <= count; n++) {
    log.push(`${name} ${n}`);
    if (!(await turn.yieldTurn())) return;
  }
};

describe('turns to read a console list', () => {
  it('go to each waiting user once, however many sessions a user has', async () => {
    const { run, log } = stage();
    await Promise.all([run('a1', '1'), run('a2', '2'), run('a3', '3'), run('b', 'other')]);
    expect(log.filter((line) => line.endsWith('begins'))).to.deep.equal(['1 begins', 'other begins', '2 begins', '3 begins']);
  });

  it('give a second free slot only to a different user', async () => {
    const { run, log } = stage({ atOnce: 2 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = run('a', 'slow', () => promise);
    const same = run('a', 'same');
    await run('b', 'other');
    expect(log).to.deep.equal(['slow begins', 'other begins', 'other ends']);
    resolve();
    await Promise.all([slow, same]);
    expect(log.slice(3)).to.deep.equal(['slow ends', 'same begins', 'same ends']);
  });

  it('are passed on between the steps of a search if others are waiting', async () => {
    const { run, log } = stage();
    await Promise.all([run('a', 'search', pieces(3, log, 'search'), true), run('b', 'list')]);
    expect(log).to.deep.equal(['search begins', 'search 1', 'list begins', 'list ends', 'search 2', 'search 3', 'search ends']);
  });

  it('are taken from a search when its session starts another search, but not when that session reads a list or a different one starts a search', async () => {
    const { run, log } = stage();
    const older = run('a', 'older', pieces(3, log, 'older'), true);
    await Promise.all([
      older,
      run('a', 'list'),
      run('b', 'other', pieces(1, log, 'other'), true),
      run('a', 'newer', pieces(2, log, 'newer'), true),
    ]);
    expect(log.filter((line) => /\d/.test(line))).to.deep.equal(['older 1', 'other 1', 'newer 1', 'newer 2']);
  });

  it('are no longer given to a search whose time is up or whose client has disconnected', async () => {
    const { run, log } = stage({ search: 0 });
    await run('a', 'late', pieces(3, log, 'late'), true);
    await run('a', 'gone', pieces(3, log, 'gone'), true);
    expect(log).to.deep.equal(['late begins', 'late 1', 'late ends']);
  });

  describe('while time passes only in the test', () => {
    useStillClock();

    it('are no longer given to a search that has waited too long for its next turn', async () => {
      const { run, log } = stage({ search: 20 });
      const { promise, resolve } = Promise.withResolvers<void>();
      const search = run('a', 'search', pieces(3, log, 'search'), true);
      const slow = run('b', 'slow', () => promise);
      await setImmediate();
      mock.timers.tick(20);
      await search;
      expect(log).to.deep.equal(['search begins', 'search 1', 'slow begins', 'search ends']);
      resolve();
      await slow;
      await run('a', 'next');
    });
  });

  it('are refused to requests that have waited too long, and to requests beyond the limit', async () => {
    const { run } = stage({ wait: 1 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = run('a', 'slow', () => promise);
    expect(await readProblem(run('b', 'late'))).to.equal('unavailable: The server is busy with other requests.');
    const waiting = [1, 2, 3].map((n) => readProblem(run('a', `waiting ${n}`)));
    expect(await readProblem(run('a', 'too many'))).to.equal(
      'too-many-requests: Too many of your requests are waiting. Try again in 1 second.',
    );
    await Promise.all(waiting);
    resolve();
    await slow;
  });

  it('are released after a failure', async () => {
    const { run, log } = stage();
    await run('a', 'broken', () => Promise.reject(new Error('broken'))).catch(() => undefined);
    await run('a', 'next');
    expect(log).to.deep.equal(['broken begins', 'next begins', 'next ends']);
  });

  it('go to others while a request rests, which gets its turn back however long that takes', async () => {
    const { run, log } = stage({ wait: 1 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const resting = run('a', 'stop', (turn) => turn.rest(0));
    const slow = run('b', 'slow', () => promise);
    for (let n = 0; n < 9; n++) await readProblem(run('b', 'late'));
    resolve();
    await Promise.all([resting, slow]);
    expect(log).to.deep.equal(['stop begins', 'slow begins', 'slow ends', 'stop ends']);
  });
});

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
