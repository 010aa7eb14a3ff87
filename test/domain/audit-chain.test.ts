import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { chainHash, pruneAudit, verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { instant } from '../../core/domain/instant.ts';
import type { AuditChainStore, ChainedEvent, Seal } from '../../core/domain/ports.ts';
import type { Problem } from '../../core/domain/problem.ts';
import { at } from '../support/clock.ts';
import { fakePorts } from '../support/ports.ts';

/**
 * Creates a fake store with a chain of this many events, which tests tamper with.
 *
 * @param pruned the number of deleted events
 * @param record the number of deleted events that the newest event records
 */
function createChain(count: number, pruned = 0, record = pruned, says: { action?: string; name?: string; of?: number } = {}) {
  const { action = 'audit.pruned', name = `1 to ${record}`, of = record } = says;
  const events: ChainedEvent[] = [];
  const hashes = [''];
  for (let seq = 1; seq <= count; seq++) {
    const recorded = ['x', 0, null, null, action, 'audit-log', hashes[of] ?? '', name];
    const fields = seq === count && record > 0 ? recorded : [`e${seq}`, null, seq];
    const hash = chainHash(hashes[seq - 1] ?? '', seq, fields);
    hashes.push(hash);
    events.push({ seq, hash, at: instant(seq), fields });
  }
  const state = {
    seq: count,
    hash: hashes[count] ?? '',
    prunedSeq: pruned,
    prunedHash: hashes[pruned] ?? '',
    unchained: 7,
    lastSeq: count,
  };
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
  const report = (...known: Seal[]) => verifyChain(fakePorts({ stores: { auditChain: store } }).stores.auditChain, known);
  return { report, state, store, looks, reads, keep, change, sealAt };
}

describe("an audit event's hash", () => {
  it("covers the previous event's hash, the event's number and all of its fields", () => {
    // SHA-256 of `["before",2,"id",null,5]`, computed independently.
    expect(chainHash('before', 2, ['id', null, 5])).to.equal('ec19328e68afc1e683c328c6090f58d6962a13e24129d6d01f7aa7a0f3b366f0');
  });
});

describe('verifying the audit chain', () => {
  it("reads a single snapshot, however many reads it needs, and returns the newest event's seal", async () => {
    const { report, looks, reads, sealAt } = createChain(2_001);
    expect(await report()).to.deep.equal({ events: 2_001, unchained: 7, pruned: 0, seal: sealAt(2_001), faults: [] });
    expect([looks.length, reads]).to.deep.equal([1, [1_000, 1_000, 1_000, 1_000]]);
  });

  it('succeeds after old events were pruned, and with no events at all', async () => {
    expect(await createChain(5, 3).report())
      .to.include({ events: 2, pruned: 3 })
      .and.deep.include({ faults: [] });
    // The deletion was interrupted: its event names a higher number.
    expect(await createChain(5, 2, 3).report())
      .to.include({ events: 3, pruned: 2 })
      .and.deep.include({ faults: [] });
    expect(await createChain(0).report()).to.deep.include({ events: 0, faults: [] });
  });

  for (const [what, tamper, faults] of [
    ['an event is missing', ({ keep }) => keep(({ seq }) => seq !== 3), ['Event 3 is missing.']],
    ['several events are missing', ({ keep }) => keep(({ seq }) => seq < 2 || seq > 3), ['Events 2 to 3 are missing.']],
    ['the newest event is missing', ({ keep }) => keep(({ seq }) => seq < 5), ['Event 5 is missing.']],
    [
      'an event was added by hand after the end',
      ({ state }) => Object.assign(state, { lastSeq: 9 }),
      ['Event 9 is after the end of the chain, 5: it was added by hand, or the stored end was modified.'],
    ],
    ['the newest events are missing', ({ keep }) => keep(({ seq }) => seq < 4), ['Events 4 to 5 are missing.']],
    [
      'a field was changed',
      ({ change }) => change(3, { fields: ['e3', null, 4] }),
      ["Event 3 doesn't match the one before it: one of the two was modified."],
    ],
    [
      'a hash was changed',
      ({ change }) => change(3, { hash: 'another' }),
      [3, 4].map((seq) => `Event ${seq} doesn't match the one before it: one of the two was modified.`),
    ],
    [
      'the chain was replaced',
      ({ state }) => Object.assign(state, { hash: 'another' }),
      ["Event 5 doesn't match the stored end of the chain: one of the two was modified."],
    ],
  ] as [string, (chain: ReturnType<typeof createChain>) => void, string[]][]) {
    it(`fails if ${what}`, async () => {
      const chain = createChain(5);
      tamper(chain);
      expect((await chain.report()).faults).to.deep.equal(faults);
    });
  }

  it('finds the event of a seal, even if newer events follow', async () => {
    const { report, sealAt } = createChain(5);
    const faultsWith = async (seal: Seal) => (await report(seal)).faults;
    expect([await faultsWith(sealAt(3)), await faultsWith(sealAt(5))]).to.deep.equal([[], []]);
    expect(await faultsWith({ seq: 3, hash: 'another' })).to.deep.equal(["Event 3 doesn't match the seal."]);
    expect(await faultsWith({ seq: 9, hash: '' })).to.deep.equal(['The chain ends before the seal: events 6 to 9 are missing.']);
  });

  it('requires that an event in the chain says which events were pruned', async () => {
    const byHand = 'Events 1 to 3 were deleted by hand: the chain has no record of an age-based deletion.';
    for (const record of [0, 2, 5]) expect((await createChain(5, 3, record).report()).faults).to.deep.equal([byHand]);
    const otherHash = createChain(5, 3);
    otherHash.state.prunedHash = 'another';
    expect((await otherHash.report()).faults).to.deep.equal([
      "Event 4 doesn't match the one before it: one of the two was modified.",
      byHand,
    ]);
    for (const says of [
      { action: 'partner.added' },
      { name: 'All' },
      { name: 'no 1 to 3' },
      { name: '1 to 3 or so' },
      { name: '1 to 2', of: 3 },
      { name: '1 to 3', of: 2 },
    ])
      expect((await createChain(5, 3, 3, says).report()).faults, JSON.stringify(says)).to.deep.equal([byHand]);
    expect((await createChain(15, 12, 12, { name: '10 to 12' }).report()).faults).to.deep.equal([]);
    expect((await createChain(3, 1, 0).report()).faults).to.deep.equal([byHand.replace('Events 1 to 3 were', 'Event 1 was')]);
    expect((await createChain(3, 3).report()).faults).to.deep.equal([byHand]);
  });

  it('accepts pruning only with a seal at least as new as the pruning event', async () => {
    const { report, sealAt } = createChain(6, 3);
    const faultsWith = async (...seals: Seal[]) => (await report(...seals)).faults;
    expect([await faultsWith(sealAt(6)), await faultsWith(sealAt(1), sealAt(6), sealAt(3))]).to.deep.equal([[], []]);
    for (const seq of [1, 3, 5]) {
      const [fault, ...more] = await faultsWith(sealAt(seq));
      expect(fault).to.match(/^Events 1 to 3 were deleted after the seal was made, according to event 6\..*newer seal/);
      expect(more).to.deep.equal([]);
    }
    expect(await faultsWith(sealAt(6), { seq: 3, hash: 'another' })).to.deep.equal(["Event 3 doesn't match the seal."]);
  });

  it('reports at most twenty faults', async () => {
    const { report, keep } = createChain(60);
    keep(({ seq }) => seq % 2 === 0);
    expect((await report()).faults).to.deep.equal(Array.from({ length: 20 }, (_, n) => `Event ${2 * n + 1} is missing.`));
  });

  it('starts again if old events were pruned in the meantime', async () => {
    const chain = createChain(5, 0, 2);
    const { prunedSeq, prunedHash } = createChain(5, 2).state;
    const { read } = chain.store;
    chain.store.read = async (...asked) => {
      chain.keep(({ seq }) => seq > 2);
      const events = await read(...asked);
      Object.assign(chain.state, { prunedSeq, prunedHash });
      return events;
    };
    expect(await chain.report())
      .to.include({ events: 3, pruned: 2 })
      .and.deep.include({ faults: [] });
  });
});

describe('pruning old audit events', () => {
  const now = at('2026-11-21T09:00:00Z');
  const day = 86_400_000;
  /** Prunes a chain whose events have these ages in days. */
  const prune = async (ages: number[], tamper: (chain: ReturnType<typeof createChain>) => void = () => undefined) => {
    const steps: unknown[] = [];
    const chain = createChain(ages.length);
    for (const [n, age] of ages.entries()) chain.change(n + 1, { at: instant(now - age * day) });
    tamper(chain);
    const { signal } = new AbortController();
    const ports = fakePorts({
      stores: {
        auditChain: {
          ...chain.store,
          extend: async (...given) => steps.push('extend', ...given),
          prune: async (...given) => steps.push('prune', ...given),
        },
        activity: { record: async ({ action, subject }) => void steps.push([action, subject]) },
      },
    });
    const failure = await pruneAudit(ports, operator.actor, 90, signal).then(
      () => null,
      (error: Problem) => [error.code, error.message],
    );
    return { steps, failure, signal, sealAt: chain.sealAt };
  };

  it('deletes old events up to the first recent one, after recording the last deleted event in the chain', async () => {
    const { steps, signal, sealAt } = await prune([100, 92, 90.1, 90, 91]);
    const subject = { kind: 'audit-log', id: sealAt(3).hash, name: '1 to 3' };
    expect(steps).to.deep.equal([['audit.pruned', subject], 'extend', signal, 'prune', 3, signal]);
    const all = await prune(Array.from({ length: 1_001 }, () => 100));
    expect(all.steps[0]).to.deep.equal(['audit.pruned', { kind: 'audit-log', id: all.sealAt(1_001).hash, name: '1 to 1001' }]);
    expect(all.steps.slice(-2)).to.deep.equal([1_001, all.signal]);
  });

  it('waits until the oldest event is a day overdue, so that it adds at most one event per day', async () => {
    for (const ages of [[], [91, 90.5], [1, 100]]) expect(await prune(ages)).to.deep.include({ steps: [], failure: null });
  });

  it("takes an event from a clock that was ahead to be as old as the events after it, and doesn't wait for its date", async () => {
    const ahead = Array.from({ length: 1_001 }, () => -400);
    for (const [ages, last] of [
      [[-400, 100, 1], 2],
      [[100, -400, -1, 95, 1], 4],
      [[100, -400, 1, 100], 1],
      [[100, ...ahead, 95], 1_003],
      [[100, ...ahead], 1],
    ] as const) {
      const { steps, signal } = await prune([...ages]);
      expect(steps.slice(-3), `${ages.slice(0, 3)}`).to.deep.equal(['prune', last, signal]);
    }
    for (const ages of [[-400], [-400, 1, 100], [-400, 90.5]]) expect((await prune(ages)).steps).to.deep.equal([]);
  });

  it('stops if an event is missing or was changed, so that the damage stays visible', async () => {
    for (const [tamper, seq] of [
      [({ keep }) => keep((event) => event.seq !== 1), 2],
      [({ change }) => change(2, { fields: ['e2', null, 3] }), 2],
    ] as [(chain: ReturnType<typeof createChain>) => void, number][]) {
      const { steps, failure } = await prune([100, 100, 100], tamper);
      expect([steps, failure]).to.deep.equal([
        [],
        [
          'conflict',
          `Old audit events weren't deleted, because their chain is broken before event ${seq}. Run: callkey-admin audit verify`,
        ],
      ]);
    }
  });
});
