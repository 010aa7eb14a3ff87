import { expect } from 'chai';
import { FairQueue } from '../../core/domain/sign-in/fair-queue.ts';
import { cheapPasswords } from '../support/passwords.ts';

/** Returns the path of a network. The network `a/b` is a part of the network `a`. */
const toPath = (network: string) => network.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));

/** Creates a queue of attempts, each of which is represented by the name of its network. */
function createQueue(max: number) {
  const queue = new FairQueue<string>(() => max);
  let name = 0;
  return {
    /** @returns the rejected attempt, if any */
    add: (network: string) => queue.add(toPath(network), network)[0] ?? null,
    takeAll(): string[] {
      const taken: string[] = [];
      for (let next = queue.take(); next !== null; next = queue.take()) taken.push(next);
      return taken;
    },
    /** Adds this many attempts, each from a different network that never retries. */
    flood(times: number) {
      for (let n = 0; n < times; n++) queue.add(toPath(`stranger${++name}`), `stranger${name}`);
    },
    take: () => queue.take(),
    remove: (network: string) => queue.remove(network),
  };
}

describe('the password check queue', () => {
  it('serves networks in the order in which they arrived', () => {
    const queue = createQueue(10);
    for (const network of ['a', 'b', 'c']) expect(queue.add(network)).to.equal(null);
    expect(queue.takeAll()).to.deep.equal(['a', 'b', 'c']);
  });

  it('serves networks in turn, and the parts of each network in turn', () => {
    const queue = createQueue(10);
    for (const network of ['a/1', 'a/1', 'a/2', 'a/1', 'b/1', 'b/1']) queue.add(network);
    expect(queue.takeAll()).to.deep.equal(['a/1', 'b/1', 'a/2', 'b/1', 'a/1', 'a/1']);
  });

  it('rejects the newest attempt from the largest part of the network with the most waiting attempts', () => {
    const queue = createQueue(5);
    for (const network of ['a/1', 'a/2', 'a/2', 'b', 'c']) queue.add(network);
    expect(queue.add('d')).to.equal('a/2');
    expect(queue.add('e')).to.equal('a/2');
    expect(queue.takeAll()).to.deep.equal(['a/1', 'b', 'c', 'd', 'e']);
  });

  it('rejects the newest attempt if all networks have the same number of waiting attempts', () => {
    const queue = createQueue(2);
    for (const network of ['a', 'b']) queue.add(network);
    expect(queue.add('c')).to.equal('c');
    expect(queue.takeAll()).to.deep.equal(['a', 'b']);
  });

  it('compares networks with paths of different lengths, such as IPv4 and IPv6', () => {
    for (const [first, second, third] of [
      ['a/1', 'b/1/1', 'c/1'],
      ['a/1/1', 'b/1', 'c/1/1'],
    ] as const) {
      const queue = createQueue(2);
      for (const network of [first, second]) queue.add(network);
      expect(queue.add(third)).to.equal(third);
      expect(queue.takeAll()).to.deep.equal([first, second]);
    }
  });

  it('serves a network that retries even if any number of networks that never retry are waiting', () => {
    const queue = createQueue(4);
    queue.flood(10);
    expect(queue.add('honest')).to.equal('honest');
    queue.take();
    queue.flood(1_000);
    expect(queue.add('honest')).not.to.equal('honest');
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
    expect(queue.add('b')).to.equal('b');
  });

  for (const [strangers, isRemembered] of [
    [19_999, true],
    [20_000, false],
  ] as const) {
    it(`${isRemembered ? 'remembers' : 'forgets'} a network after rejecting ${strangers} others`, () => {
      const queue = createQueue(2);
      for (const network of ['a', 'b']) queue.add(network);
      expect(queue.add('honest')).to.equal('honest');
      queue.flood(strangers);
      queue.take();
      queue.add('c');
      expect(queue.add('honest')).to.equal(isRemembered ? 'c' : 'honest');
    });
  }

  it('rejects more attempts when turns take longer', () => {
    let max = 4;
    const queue = new FairQueue<string>(() => max);
    for (const network of ['a', 'b', 'c', 'd']) queue.add([network], network);
    max = 2;
    expect(queue.add(['e'], 'e')).to.deep.equal(['e', 'd', 'c']);
    expect([queue.take(), queue.take(), queue.take()]).to.deep.equal(['a', 'b', null]);
  });

  it("keeps a network's attempts in order, and rejects its newest when the queue is full", () => {
    const queue = new FairQueue<number>(() => 3);
    for (const item of [1, 2, 3]) queue.add(['a'], item);
    expect(queue.take()).to.equal(1);
    queue.add(['a'], 4);
    expect(queue.add(['b'], 5)).to.deep.equal([4]);
    expect([queue.take(), queue.take(), queue.take()]).to.deep.equal([2, 5, 3]);
    for (const item of [1, 2, 3]) queue.add(['a'], item);
    queue.take();
    queue.add(['c'], 4);
    expect(queue.add(['d'], 5)).to.deep.equal([3]);
  });

  it('remembers a network from its latest rejection on', () => {
    const queue = createQueue(2);
    for (const network of ['a', 'b']) queue.add(network);
    for (let n = 0; n < 2; n++) {
      expect(queue.add('honest')).to.equal('honest');
      queue.flood(15_000);
    }
    queue.take();
    queue.add('c');
    expect(queue.add('honest')).to.equal('c');
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

  it('gives the place of a withdrawn attempt to another attempt', () => {
    const queue = createQueue(2);
    for (const network of ['a', 'b']) queue.add(network);
    expect(queue.remove('a')).to.equal(true);
    expect(queue.remove('a')).to.equal(false);
    expect([queue.add('c'), queue.takeAll()]).to.deep.equal([null, ['b', 'c']]);
  });
});
