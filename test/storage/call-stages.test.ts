import { expect } from 'chai';
import { handoffStages, isHandoffStage, type Stage, stagesBefore, toState, transitions } from '../../core/domain/calls/call-states.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import { required } from '../../core/storage/engine/database.ts';
import type { CallRow } from '../../core/storage/engine/tables.ts';
import { cancelQueued, endUndialed, isAt } from '../../core/storage/queue/queue.ts';
import { claimedCall } from '../support/claimed-call.ts';
import { onEachDatabase } from '../support/databases.ts';
import { insertCalls, tenantsOnce } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const columns = { firstAttemptAt: 'first_attempt_at', dialedAt: 'dialed_at', cancelledAt: 'cancelled_at', endedAt: 'ended_at' } as const;
const ending = { detail: null, endedAt: now, durationSeconds: null };

/** Returns the columns of a due call at this stage, as left by the events that lead to it. */
function columnsAt(stage: Stage): Partial<CallRow> {
  const attempted = stage !== 'queued';
  const hasEnded = stage !== 'queued' && !isHandoffStage(stage);
  return {
    ...{ state: toState(stage), handoff: isHandoffStage(stage) ? stage : attempted ? 'doubt' : null, placed_at: instant(1) },
    ...{ attempt: attempted ? 1 : 0, first_attempt_at: attempted ? instant(2) : null, provider: attempted ? 'webhook' : null },
    ...{ dialed_at: stage === 'taken' ? instant(3) : null, due_at: hasEnded ? null : now, ended_at: hasEnded ? instant(4) : null },
  };
}

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
    const { direct, tenants } = tenantsOnce(kind);
    const claimed = (contactId: string) =>
      claimedCall({ contactId, requestId: contactId, campaignId: tenants.campaign.id, firstAttemptAt: instant(2), leaseUntil: now });

    type Event = (typeof transitions)[number]['event'];
    async function cause(event: Event, from: Stage, to: Stage): Promise<void> {
      const { dialing } = direct.ports.stores;
      const { database } = direct.storage;
      if (event === 'cancel') await cancelQueued(database, { ids: ['key'] }, now);
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
        await database.write.transaction((trx) =>
          endUndialed(database, trx, [[tenants.campaign.id, from]], now, { state: 'blocked', detail: 'Blocked.' }),
        );
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
          const row = async () => required((await read('calls').first()) ?? null, 'row');
          await insertCalls(direct, tenants, [stage], columnsAt(stage));
          const before = await row();
          await cause(event, stage, target);
          const after = await row();
          expect([after.state, isHandoffStage(target) ? after.handoff : after.due_at]).to.deep.equal([
            toState(target),
            isHandoffStage(target) ? target : null,
          ]);
          const noted = Object.entries(columns).filter(([, column]) => after[column] !== before[column]);
          expect(notes).to.include.members(noted.map(([note]) => note));
          for (const note of notes) expect(after[columns[note]], note).to.not.equal(null);
          await compactCounts();
          const counted = await read('call_counts').orderBy('calls').select('state', 'calls');
          const replaced = stage === 'unknown' ? [{ state: 'unknown', calls: -1 }] : [];
          expect(counted).to.deep.equal(isHandoffStage(target) ? [] : [...replaced, { state: toState(target), calls: 1 }]);
        });
      }
    }

    for (const event of ['cancel', 'lapse', 'block', 'claim', 'outcome', 'forgotten'] as const) {
      const others: Stage[] = ['queued', ...handoffStages, 'unknown', 'completed', 'cancelled', 'lapsed', 'blocked'];
      for (const stage of others.filter((other) => !stagesBefore(event).includes(other)))
        it(`isn't changed by ${event} at ${stage}`, async () => {
          const { read, write } = direct.storage.database;
          await write('calls').delete();
          await insertCalls(direct, tenants, [stage], columnsAt(stage));
          const row = () => read('calls').first('state', 'handoff', 'due_at', 'attempt', 'ended_at', 'cancelled_at', 'late_outcome_at');
          const before = await row();
          await cause(event, stage, stage);
          expect(await row()).to.deep.equal(before);
        });
    }
  });
});
