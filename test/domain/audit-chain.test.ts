import { expect } from 'chai';
import { operator } from '../../core/domain/audit.ts';
import { chainHash, pruneAudit, verifyChain } from '../../core/domain/audit-chain.ts';
import type { AuditEvent, ChainedEvent, Seal } from '../../core/domain/model.ts';
import type { AuditChainStore } from '../../core/domain/ports.ts';
import { at } from '../support/clock.ts';
import { fakePorts } from '../support/ports.ts';

/** A chain of so many events, as a store has it. A test changes what it tampers with. */
function chainOf(count: number, pruned = 0) {
  const events: ChainedEvent[] = [];
  const hashes = [''];
  for (let seq = 1; seq <= count; seq++) {
    const fields = [`e${seq}`, null, seq];
    const hash = chainHash(hashes[seq - 1] ?? '', seq, fields);
    hashes.push(hash);
    events.push({ seq, hash, at: seq, fields });
  }
  const state = { seq: count, hash: hashes[count] ?? '', prunedSeq: pruned, prunedHash: hashes[pruned] ?? '', unchained: 7 };
  const looks: number[] = [];
  const reads: number[] = [];
  const store: Pick<AuditChainStore, 'state' | 'read'> = {
    state: async () => {
      looks.push(state.seq);
      return { ...state };
    },
    read: async (after, last, limit) => {
      reads.push(limit);
      return kept.filter(({ seq }) => after < seq && seq <= last).slice(0, limit);
    },
  };
  let kept = events.slice(pruned);
  const keep = (rule: (event: ChainedEvent) => boolean) => {
    kept = kept.filter(rule);
  };
  const change = (seq: number, changed: Partial<ChainedEvent>) => {
    kept = kept.map((event) => (event.seq === seq ? { ...event, ...changed } : event));
  };
  const sealAt = (seq: number): Seal => ({ seq, hash: hashes[seq] ?? '' });
  const report = (known: Seal | null = null) => verifyChain(fakePorts({ stores: { auditChain: store } }).stores.auditChain, known);
  return { report, state, store, looks, reads, keep, change, sealAt };
}

describe('the hash of an audit event', () => {
  it('covers the event before, the number and every field', () => {
    // SHA-256 of `["before",2,"id",null,5]`, worked out apart from this code.
    expect(chainHash('before', 2, ['id', null, 5])).to.equal('ec19328e68afc1e683c328c6090f58d6962a13e24129d6d01f7aa7a0f3b366f0');
  });
});

describe('a chain of audit events', () => {
  it('holds at one look, however many reads it takes, and has the seal of its newest event', async () => {
    const { report, looks, reads, sealAt } = chainOf(2_001);
    expect(await report()).to.deep.equal({ events: 2_001, unchained: 7, pruned: 0, seal: sealAt(2_001), faults: [] });
    expect([looks.length, reads]).to.deep.equal([1, [1_000, 1_000, 1_000, 1_000]]);
  });

  it('holds after its oldest events were pruned, and where it has none', async () => {
    expect(await chainOf(5, 3).report())
      .to.include({ events: 2, pruned: 3 })
      .and.deep.include({ faults: [] });
    expect(await chainOf(3, 3).report())
      .to.include({ events: 0, pruned: 3 })
      .and.deep.include({ faults: [] });
    expect(await chainOf(0).report()).to.deep.include({ events: 0, faults: [] });
  });

  for (const [what, tamper, faults] of [
    ['one is missing', ({ keep }) => keep(({ seq }) => seq !== 3), ['Event 3 is missing.']],
    ['some are missing', ({ keep }) => keep(({ seq }) => seq < 2 || seq > 3), ['Events 2 to 3 are missing.']],
    ['the newest is missing', ({ keep }) => keep(({ seq }) => seq < 5), ['Event 5 is missing.']],
    ['the newest are missing', ({ keep }) => keep(({ seq }) => seq < 4), ['Events 4 to 5 are missing.']],
    [
      'a field was changed',
      ({ change }) => change(3, { fields: ['e3', null, 4] }),
      ['Event 3 does not follow from the one before: one of the two was changed.'],
    ],
    [
      'a hash was changed',
      ({ change }) => change(3, { hash: 'another' }),
      [3, 4].map((seq) => `Event ${seq} does not follow from the one before: one of the two was changed.`),
    ],
    [
      'another chain was put in its place',
      ({ state }) => Object.assign(state, { hash: 'another' }),
      ['Event 5 is not the newest one that was chained.'],
    ],
  ] as [string, (chain: ReturnType<typeof chainOf>) => void, string[]][]) {
    it(`says so where ${what}`, async () => {
      const chain = chainOf(5);
      tamper(chain);
      expect((await chain.report()).faults).to.deep.equal(faults);
    });
  }

  it('must have the event that a seal was made of, and may go on after it', async () => {
    const { report, sealAt } = chainOf(5);
    const faultsWith = async (seal: Seal) => (await report(seal)).faults;
    expect([await faultsWith(sealAt(3)), await faultsWith(sealAt(5))]).to.deep.equal([[], []]);
    expect(await faultsWith({ seq: 3, hash: 'another' })).to.deep.equal(['Event 3 is not the one that the seal was made of.']);
    expect(await faultsWith({ seq: 9, hash: '' })).to.deep.equal(['The chain ends before the seal: events 6 to 9 are missing.']);
  });

  it('names twenty faults', async () => {
    const { report, keep } = chainOf(60);
    keep(({ seq }) => seq % 2 === 0);
    expect((await report()).faults).to.deep.equal(Array.from({ length: 20 }, (_, n) => `Event ${2 * n + 1} is missing.`));
  });

  it('is looked at again where its oldest events were pruned meanwhile', async () => {
    const chain = chainOf(5);
    const { prunedSeq, prunedHash } = chainOf(5, 2).state;
    const { read } = chain.store;
    chain.store.read = async (...asked) => {
      chain.keep(({ seq }) => seq > 2);
      const found = await read(...asked);
      Object.assign(chain.state, { prunedSeq, prunedHash });
      return found;
    };
    expect(await chain.report())
      .to.include({ events: 3, pruned: 2 })
      .and.deep.include({ faults: [] });
  });
});

describe('old audit events', () => {
  const now = at('2026-11-21T09:00:00Z');
  const day = 86_400_000;
  const prune = async (oldest: number | null, pruned = 3) => {
    const asked: unknown[] = [];
    const events: AuditEvent[] = [];
    const { signal } = new AbortController();
    const ports = fakePorts({
      stores: {
        auditChain: {
          oldestAt: async () => oldest,
          prune: async (...given) => {
            asked.push(...given);
            return pruned;
          },
        },
        activity: { record: async (event) => void events.push(event) },
      },
    });
    const result = await pruneAudit(ports, operator, 90, signal);
    return { result, asked, events, signal };
  };

  it('are pruned after so many days and one more, with an event', async () => {
    const { result, asked, events, signal } = await prune(now.minus({ days: 91 }).toMillis() - 1);
    expect([result, asked]).to.deep.equal([3, [now.minus({ days: 90 }), signal]]);
    expect(events).to.have.length(1);
    expect(events[0]).to.deep.include({
      ...{ action: 'audit.pruned', subject: { kind: 'audit-log', id: 'id1', name: '3 events' }, owningScope: null, actor: null },
    });
  });

  it('stay until the oldest is a day over, so that pruning leaves one event a day at most', async () => {
    for (const oldest of [null, now.toMillis() - 91 * day, now.toMillis()]) {
      const { result, asked, events } = await prune(oldest);
      expect([result, asked, events]).to.deep.equal([0, [], []]);
    }
  });

  it('leave no event where none were pruned', async () => {
    expect(await prune(0, 0)).to.deep.include({ result: 0, events: [] });
  });
});
