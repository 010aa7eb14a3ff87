import { expect } from 'chai';
import { FairQueue, inOrder } from '../../core/domain/fair-queue.ts';
import { cheapPasswords } from '../support/ports.ts';

/** Returns the path of a network. The network `a/b` is a part of the network `a`. */
const toPath = (network: string) => network.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));

/** Creates a queue of attempts, each of which is represented by the name of its network. A wait ends when the test says that it's late. */
function createQueue(max: number | (() => number), limits: { inShare?: number; wait?: number } = {}) {
  const timers: (() => void)[] = [];
  const queue = new FairQueue({ waiting: typeof max === 'number' ? () => max : max, ...limits }, (run) => {
    timers.push(run);
    return { [Symbol.dispose]: () => void timers.splice(timers.indexOf(run), 1) };
  });
  let ended: string[] = [];
  /** Returns the attempts that end during this work. */
  const during = (work: () => void) => {
    ended = [];
    work();
    return ended;
  };
  const add = (network: string, name = network) =>
    during(() => queue.add(toPath(network), (result) => ended.push(result === 'turn' ? name : `${name} ${result}`)));
  const take = () => during(() => queue.startNext())[0] ?? null;
  let name = 0;
  return {
    ...{ queue, add, take },
    takeAll: () => Array.from({ length: queue.length }, take),
    /** Adds this many attempts, each from a different network that never retries. */
    flood(times: number) {
      for (let n = 0; n < times; n++) add(`stranger${++name}`);
    },
    endOldestWait: () => during(() => timers[0]?.()),
  };
}

describe('a fair queue', () => {
  it('serves networks in turn, and the parts of each network in turn', () => {
    const queue = createQueue(10);
    for (const network of ['a/1', 'a/1', 'a/2', 'a/1', 'b/1', 'b/1']) queue.add(network);
    expect(queue.takeAll()).to.deep.equal(['a/1', 'b/1', 'a/2', 'b/1', 'a/1', 'a/1']);
  });

  it('rejects the newest attempt from the largest part of the network with the most waiting attempts', () => {
    const queue = createQueue(5);
    for (const network of ['a/1', 'a/2', 'a/2', 'b', 'c']) queue.add(network);
    expect(queue.add('d')).to.deep.equal(['a/2 full']);
    expect(queue.add('e')).to.deep.equal(['a/2 full']);
    expect(queue.takeAll()).to.deep.equal(['a/1', 'b', 'c', 'd', 'e']);
  });

  it('compares networks with paths of different lengths, such as IPv4 and IPv6', () => {
    for (const [first, second, third] of [
      ['a/1', 'b/1/1', 'c/1'],
      ['a/1/1', 'b/1', 'c/1/1'],
    ] as const) {
      const queue = createQueue(2);
      for (const network of [first, second]) queue.add(network);
      expect(queue.add(third)).to.deep.equal([`${third} full`]);
      expect(queue.takeAll()).to.deep.equal([first, second]);
    }
  });

  it('serves a network that retries even if any number of networks that never retry are waiting', () => {
    const queue = createQueue(4);
    queue.flood(10);
    expect(queue.add('honest')).to.deep.equal(['honest full']);
    queue.take();
    queue.flood(1_000);
    expect(queue.add('honest')).not.to.deep.equal(['honest full']);
    queue.flood(1_000);
    const [one, two, three, four] = [queue.take(), queue.take(), queue.take(), queue.take()];
    expect([one, two, three, four]).to.deep.equal(['stranger2', 'stranger3', 'stranger4', 'honest']);
  });

  /** Returns in which turn a network is served if it and these other networks keep retrying. */
  function turnsUntilServed(others: readonly string[]): number {
    const queue = createQueue(4);
    for (const network of others) queue.add(network);
    for (let turns = 1; ; turns++) {
      queue.add('honest/1');
      if (queue.take() === 'honest/1') return turns;
      for (const network of others) queue.add(network);
    }
  }

  it('delays a network by at most K turns if K other networks keep retrying', () => {
    expect(turnsUntilServed(Array.from({ length: 50 }, (_, n) => `stranger${n}/1`))).to.equal(51);
  });

  it('delays other networks by only one turn, however many parts a network has', () => {
    expect(turnsUntilServed(Array.from({ length: 50 }, (_, n) => `stranger/${n}`))).to.be.at.most(2);
  });

  it("delays other users' known browsers by only one turn, however many browsers a user has", async () => {
    const passwords = cheapPasswords();
    const order: string[] = [];
    const check = (email: string, device: number) => {
      const find = async () => {
        order.push(email);
        return null;
      };
      return passwords.verify(find, 'a password', { email, address: '192.0.2.1', vouched: `device ${device}` });
    };
    const crowd = Array.from({ length: 20 }, (_, device) => check('eve@example.com', device));
    await Promise.all([...crowd, check('ada@example.com', 20)]);
    // Eve's first check starts before anyone waits, and then one of Eve's browsers has its turn before Ada's.
    expect(order.indexOf('ada@example.com')).to.equal(2);
  });

  it("doesn't give a network a second turn before networks that came earlier", () => {
    const queue = createQueue(2);
    for (const network of ['a/1', 'b', 'a/2']) queue.add(network);
    expect(queue.take()).to.equal('a/1');
    // An attempt from a/2 was rejected before b had its turn. But a/2 is a part of a, which has just had a turn, so b goes first.
    queue.add('a/2');
    expect(queue.takeAll()).to.deep.equal(['b', 'a/2']);
  });

  it('forgets the rejected networks when no one is waiting', () => {
    const queue = createQueue(1);
    for (const network of ['a', 'b']) queue.add(network);
    queue.takeAll();
    queue.add('c');
    expect(queue.add('b')).to.deep.equal(['b full']);
  });

  for (const [strangers, isRemembered] of [
    [19_999, true],
    [20_000, false],
  ] as const) {
    it(`${isRemembered ? 'remembers' : 'forgets'} a network after rejecting ${strangers} others`, () => {
      const queue = createQueue(2);
      for (const network of ['a', 'b']) queue.add(network);
      expect(queue.add('honest')).to.deep.equal(['honest full']);
      queue.flood(strangers);
      queue.take();
      queue.add('c');
      expect(queue.add('honest')).to.deep.equal([isRemembered ? 'c full' : 'honest full']);
    });
  }

  it('rejects more attempts when turns take longer', () => {
    let max = 4;
    const queue = createQueue(() => max);
    for (const network of ['a', 'b', 'c', 'd']) queue.add(network);
    max = 2;
    expect(queue.add('e')).to.deep.equal(['e full', 'd full', 'c full']);
    expect(queue.takeAll()).to.deep.equal(['a', 'b']);
  });

  it("keeps a network's attempts in order, and rejects its newest when the queue is full", () => {
    const queue = createQueue(3);
    for (const name of ['1', '2', '3']) queue.add('a', name);
    expect(queue.take()).to.equal('1');
    queue.add('a', '4');
    expect(queue.add('b')).to.deep.equal(['4 full']);
    expect(queue.takeAll()).to.deep.equal(['2', 'b', '3']);
    for (const name of ['1', '2', '3']) queue.add('a', name);
    queue.take();
    queue.add('c');
    expect(queue.add('d')).to.deep.equal(['3 full']);
  });

  it('remembers a network from its latest rejection on', () => {
    const queue = createQueue(2);
    for (const network of ['a', 'b']) queue.add(network);
    for (let n = 0; n < 2; n++) {
      expect(queue.add('honest')).to.deep.equal(['honest full']);
      queue.flood(15_000);
    }
    queue.take();
    queue.add('c');
    expect(queue.add('honest')).to.deep.equal(['c full']);
  });

  it("doesn't favor a network for its earlier attempts once it has had its turn", () => {
    const queue = createQueue(3);
    for (const network of ['a', 'b', 'c', 'x']) queue.add(network);
    queue.take();
    queue.add('x');
    for (let turn = 0; turn < 2_001; turn++) {
      queue.take();
      queue.flood(1);
    }
    // One attempt is still waiting, so the rush isn't over.
    for (let turn = 0; turn < 2; turn++) queue.take();
    for (const network of ['y', 'x']) queue.add(network);
    expect(queue.takeAll().slice(-2)).to.deep.equal(['y', 'x']);
  });

  it('refuses an attempt that has waited too long, and gives its place to another', () => {
    const queue = createQueue(2, { wait: 1 });
    for (const network of ['a', 'b']) queue.add(network);
    expect(queue.endOldestWait()).to.deep.equal(['a late']);
    expect([queue.add('c'), queue.takeAll()]).to.deep.equal([[], ['b', 'c']]);
    expect(queue.endOldestWait()).to.deep.equal([]);
  });

  it('limits how many of one share may wait, without affecting others', () => {
    const queue = createQueue(9, { inShare: 2 });
    for (const network of ['a', 'a']) queue.add(network);
    expect([queue.add('a'), queue.add('b')]).to.deep.equal([['a full'], []]);
  });

  it('skips shares that may not start now, and puts a share last on request', () => {
    const { queue, add, takeAll } = createQueue(9);
    for (const network of ['a', 'b', 'c', 'a']) add(network);
    expect([queue.startNext((name) => name !== 'a'), queue.startNext((name) => name === 'b')]).to.deep.equal(['b', null]);
    queue.putLast(['a']);
    expect(takeAll()).to.deep.equal(['c', 'a', 'a']);
  });

  it('gives a second queue one turn after so many of the first', () => {
    const [urgent, other] = [createQueue(9), createQueue(9)];
    const startNext = inOrder(urgent.queue, other.queue, 2);
    const started: string[] = [];
    for (const name of ['k1', 'k2', 'k3']) urgent.queue.add(['keys'], () => started.push(name));
    for (const name of ['o1', 'o2']) other.queue.add(['others'], () => started.push(name));
    while (startNext());
    expect(started).to.deep.equal(['k1', 'k2', 'o1', 'k3', 'o2']);
  });
});
