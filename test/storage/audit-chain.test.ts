import { expect } from 'chai';
import { verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import type { AuditChainStore } from '../../core/domain/ports.ts';
import { required } from '../../core/storage/engine/database.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { openOnce } from '../support/suites.ts';
import { openDirect } from '../support/tenants.ts';

describe('the audit chain in the database', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const direct = openOnce(async () => openDirect(await freshDatabase(kind), clock));
    let chain: AuditChainStore;
    let empty: { seq: number; hash: string };

    before(async () => {
      chain = direct.ports.stores.auditChain;
      const { seq, hash } = await chain.state();
      empty = { seq, hash };
    });
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      await events().delete();
      const { seq, hash } = empty;
      await direct.storage.database.write('audit_chain').update({ seq, hash, pruned_seq: seq, pruned_hash: hash });
    });

    const events = () => direct.storage.database.write('audit_events');
    const row = { actor_id: 'u', actor_name: 'Ada', action: 'a', subject_kind: 'partner' as const, subject_id: 's', subject_name: 'S' };
    const where = { account_id: 'c', partner_id: 'p', address: '192.0.2.1' };
    let total = 0;
    /** @returns the times of the events, which are a second apart */
    async function addEvents(count: number): Promise<number[]> {
      const instants = Array.from({ length: count }, (_, n) => plus(clock.now(), (n + 1) * 1_000));
      clock.advance({ seconds: count });
      // The identifiers are in order, like those of events from different milliseconds.
      await events().insert(
        instants.map((instant) => ({ id: `event-${String(++total).padStart(6, '0')}`, at: instant, ...row, ...where })),
      );
      return instants;
    }
    const seqs = async (after = 0, last = 1_000, limit = 1_000) => (await chain.read(after, last, limit)).map(({ seq }) => seq);

    it('contains each event once, oldest first', async () => {
      const instants = await addEvents(3);
      expect([await chain.state(), await chain.oldestAt()]).to.deep.equal([
        { ...empty, prunedSeq: empty.seq, prunedHash: empty.hash, unchained: 3, lastSeq: null },
        null,
      ]);
      expect([await chain.extend(), await chain.extend()]).to.deep.equal([3, 0]);
      const read = await chain.read(0, 1_000, 1_000);
      expect(read.map(({ seq, at: instant }) => [seq, instant])).to.deep.equal(instants.map((instant, n) => [n + 1, instant]));
      expect(await chain.state()).to.deep.equal({
        ...{ seq: 3, hash: read.at(-1)?.hash, unchained: 0, lastSeq: 3 },
        ...{ prunedSeq: empty.seq, prunedHash: empty.hash },
      });
      expect(await chain.oldestAt()).to.equal(instants[0]);
      expect((await verifyChain(chain, [])).faults).to.deep.equal([]);
    });

    it('hashes all fields of an event in a fixed order, so that earlier hashes still match', async () => {
      const id = '0190a0b0-0000-7000-8000-000000000000';
      await events().insert({ id, at: instant(1), ...row, ...where });
      await chain.extend();
      const [only] = await chain.read(0, 1, 1);
      expect(only?.fields).to.deep.equal([id, 1, 'u', 'Ada', 'a', 'partner', 's', 'S', 'c', 'p', '192.0.2.1']);
      expect(only?.hash).to.equal('33101dfa8ac5b4a79ac3f604c3b3deeca745001fb2461410cf5ecdcf6d06c247');
    });

    it('is continued from the event where it stopped', async () => {
      await addEvents(2);
      await chain.extend();
      await addEvents(201);
      expect(await chain.extend()).to.equal(201);
      expect([await seqs(), (await verifyChain(chain, [])).faults]).to.deep.equal([Array.from({ length: 203 }, (_, n) => n + 1), []]);
    });

    it("doesn't take the lock if there are no new events", async () => {
      await addEvents(1);
      await chain.extend();
      await direct.storage.database.write.transaction(async (trx) => {
        await trx('audit_chain').forUpdate().first();
        expect(await chain.extend()).to.equal(0);
      });
    });

    it('fails instead of starting over if its newest hash is missing', async () => {
      const message = (failing: Promise<unknown>) => failing.catch((error: Error) => error.message);
      await addEvents(1);
      await chain.extend();
      await addEvents(1);
      const { write } = direct.storage.database;
      const kept = required((await write('audit_chain').first()) ?? null, 'the chain');
      await write('audit_chain').delete();
      const missing = 'A database row is missing the chain.';
      expect([await message(chain.extend()), await message(chain.state())]).to.deep.equal([missing, missing]);
      await write('audit_chain').insert(kept);
    });

    it('is read in parts, from one number to another', async () => {
      await addEvents(5);
      await chain.extend();
      expect([await seqs(1, 4), await seqs(1, 4, 2), await seqs(5)]).to.deep.equal([[2, 3, 4], [2, 3], []]);
    });

    it('stops between two batches when its signal aborts', async () => {
      await addEvents(1);
      const aborted = AbortSignal.abort(new Error('Stop.'));
      expect(await chain.extend(aborted).catch((error) => error.message)).to.equal('Stop.');
      await chain.extend();
      expect(await chain.prune(1, aborted).catch((error) => error.message)).to.equal('Stop.');
    });

    it('is pruned up to a given event, and continues from there', async () => {
      const instants = await addEvents(4);
      await chain.extend();
      await addEvents(1);
      const [, second] = await chain.read(0, 2, 2);
      expect(await chain.prune(2)).to.equal(2);
      const { prunedSeq, prunedHash } = await chain.state();
      expect([await seqs(), prunedSeq, prunedHash, await chain.oldestAt()]).to.deep.equal([[3, 4], 2, second?.hash, instants[2]]);
      expect(await chain.prune(2)).to.equal(0);
      // Events that aren't chained aren't deleted.
      expect({ pruned: await chain.prune(4), left: (await events()).length }).to.deep.equal({ pruned: 2, left: 1 });
    });

    it('is pruned in small batches', async () => {
      await addEvents(300);
      await addEvents(201);
      await chain.extend();
      expect({ pruned: await chain.prune(501), last: (await chain.state()).prunedSeq }).to.deep.equal({ pruned: 501, last: 501 });
    });
  });
});
