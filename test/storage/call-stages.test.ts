import { expect } from 'chai';
import { handoffStages, isHandoffStage, type Stage, stagesBefore, toState, transitions } from '../../core/domain/calls/call-states.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import { required } from '../../core/storage/engine/database.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { cancelQueued, endUndialed, isAt } from '../../core/storage/queue/queue.ts';
import { claimedCall } from '../support/claimed-call.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { type DirectAccess, openDirect } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const columns = { firstAttemptAt: 'first_attempt_at', dialedAt: 'dialed_at', cancelledAt: 'cancelled_at', endedAt: 'ended_at' } as const;
const ending = { detail: null, endedAt: now, durationSeconds: null };

/** Returns a due call at this stage, as left by the events that lead to it. */
function rowAt(stage: Stage): CallRow {
  const attempted = stage !== 'queued';
  const hasEnded = stage !== 'queued' && !isHandoffStage(stage);
  return {
    ...{ contact_id: stage, campaign_id: 'g', account_id: 'a', request_id: stage, api_key_id: 'k', phone: '+493012345678', name: null },
    ...{
      time_zone: null,
      variables: null,
      not_before: null,
      not_after: null,
      placed_at: instant(1),
      cancelled_at: null,
      due_at: hasEnded ? null : now,
    },
    ...{ attempt: attempted ? 1 : 0, first_attempt_at: attempted ? instant(2) : null, provider: attempted ? 'webhook' : null },
    ...{
      state: toState(stage),
      handoff: isHandoffStage(stage) ? stage : attempted ? 'doubt' : null,
      dialed_at: stage === 'taken' ? instant(3) : null,
    },
    ...{ ended_at: hasEnded ? instant(4) : null, duration_seconds: null, detail: null, late_outcome_at: null },
    ...{ held_until: null, held_for: null, response_held_until: null, answered_by: null },
  };
}

const claimed = (contactId: string) => claimedCall({ contactId, requestId: contactId, firstAttemptAt: instant(2), leaseUntil: now });

describe('the SQL condition for stages', () => {
  it('matches the partial indexes for each stage', () => {
    expect([isAt('queued'), isAt('open', 'doubt'), isAt('retry', 'queued')]).to.deep.equal([
      `(state = 'queued')`,
      `((state = 'dialing' AND handoff IN ('open', 'doubt')))`,
      `(state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))`,
    ]);
  });
});

describe('a call in the database', () => {
  onEachDatabase((kind) => {
    let direct: DirectAccess;
    before(async () => {
      direct = await openDirect(await freshDatabase(kind));
      const { write } = direct.storage.database;
      const named = (id: string) => ({ id, name: id, created_at: instant(1) });
      await write('partners').insert(named('p'));
      await write('accounts').insert({ ...named('a'), partner_id: 'p' });
      await write('campaigns').insert({ ...named('g'), account_id: 'a' });
    });
    after(() => direct.close());

    type Event = (typeof transitions)[number]['event'];
    async function cause(event: Event, from: Stage, to: Stage): Promise<void> {
      const { dialing } = direct.ports.stores;
      const { database } = direct.storage;
      if (event === 'cancel') await cancelQueued(database, { ids: ['k'] }, now);
      else if (event === 'lapse') {
        await database.write('calls').update({ not_after: instant(now - 1) });
        await dialing.lapse(now);
      } else if (event === 'claim') await dialing.claim(1, 'webhook', now, instant(now + 1));
      else if (event === 'outcome') await dialing.recordOutcome(from, { state: 'busy', ...ending }, now);
      else if (event === 'forgotten') await dialing.endForgotten(instant(now + dialingLimits.life.toMillis() + 1));
      else if (event === 'taken') await dialing.settle(claimed(from), { event, to: 'taken', dialedAt: now, dueAt: now });
      else if ((event === 'not-taken' || event === 'answer-lost') && (to === 'retry' || to === 'doubt'))
        await dialing.settle(claimed(from), { event, to, at: now, dueAt: now });
      else if (event === 'block')
        await database.write.transaction((trx) => endUndialed(database, trx, [['g', from]], now, { state: 'blocked', detail: 'Blocked.' }));
      else if (event !== 'not-taken' && event !== 'answer-lost' && (to === 'failed' || to === 'unknown'))
        await dialing.settle(claimed(from), { event, to, ...ending });
    }

    for (const { event, from, to, notes } of transitions) {
      for (const stage of from) {
        const target: Stage = typeof to === 'string' ? to : 'busy';
        it(`moves from ${stage} to ${target} on ${event}, and is counted once if that ends it`, async () => {
          const { read, write } = direct.storage.database;
          const { compactCounts } = direct.ports.stores.callList;
          await compactCounts();
          for (const table of ['calls', 'call_counts'] as const) await write(table).delete();
          const before = rowAt(stage);
          await write('calls').insert(before);
          await cause(event, stage, target);
          const after = required((await read('calls').first()) ?? null, 'row');
          expect([after.state, isHandoffStage(target) ? after.handoff : after.due_at]).to.deep.equal([
            toState(target),
            isHandoffStage(target) ? target : null,
          ]);
          const noted = Object.entries(columns).filter(([, column]) => after[column] !== before[column]);
          expect(notes).to.include.members(noted.map(([note]) => note));
          for (const note of notes) expect(after[columns[note]], note).to.not.equal(null);
          await compactCounts();
          const counted = await read('call_counts').orderBy('calls').select('campaign_id', 'state', 'calls');
          const replaced = stage === 'unknown' ? [{ campaign_id: 'g', state: 'unknown', calls: -1 }] : [];
          expect(counted).to.deep.equal(
            isHandoffStage(target) ? [] : [...replaced, { campaign_id: 'g', state: toState(target), calls: 1 }],
          );
        });
      }
    }

    for (const event of ['cancel', 'lapse', 'block', 'claim', 'outcome', 'forgotten'] as const) {
      const others: Stage[] = ['queued', ...handoffStages, 'unknown', 'completed', 'cancelled', 'lapsed', 'blocked'];
      for (const stage of others.filter((other) => !stagesBefore(event).includes(other)))
        it(`isn't changed by ${event} at ${stage}`, async () => {
          const { read, write } = direct.storage.database;
          await write('calls').delete();
          await write('calls').insert(rowAt(stage));
          const row = () => read('calls').first('state', 'handoff', 'due_at', 'attempt', 'ended_at', 'cancelled_at', 'late_outcome_at');
          const before = await row();
          await cause(event, stage, stage);
          expect(await row()).to.deep.equal(before);
        });
    }
  });
});
