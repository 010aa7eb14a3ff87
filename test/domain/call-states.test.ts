import { expect } from 'chai';
import { callStates } from '#contract/calls/calls.ts';
import {
  type CallEvent,
  handoffStages,
  initialStage,
  isHandoffStage,
  type Stage,
  stageAfter,
  stagesBefore,
  transitions,
} from '../../core/domain/calls/call-states.ts';

const events: CallEvent[] = [...new Set(transitions.map(({ event }) => event))];
const stages: Stage[] = [...callStates.filter((state) => state !== 'dialing'), ...handoffStages];
type Note = 'firstAttemptAt' | 'dialedAt' | 'cancelledAt' | 'endedAt';
const isEnded = (stage: Stage) => stage !== initialStage && !isHandoffStage(stage);

/** The transitions in the diagram of call-states.ts: for each event, the next stage by current stage. */
const moves: Record<Exclude<CallEvent, 'outcome'>, Partial<Record<Stage, Stage>>> = {
  cancel: { queued: 'cancelled', retry: 'cancelled' },
  lapse: { queued: 'lapsed', retry: 'lapsed' },
  block: { queued: 'blocked', retry: 'blocked' },
  claim: { queued: 'open', retry: 'open', open: 'doubt', doubt: 'doubt', taken: 'taken' },
  taken: { open: 'taken', doubt: 'taken' },
  'not-taken': { open: 'retry', doubt: 'doubt' },
  'answer-lost': { open: 'doubt', doubt: 'doubt' },
  rejected: { open: 'failed', doubt: 'failed' },
  'too-late': { open: 'failed', doubt: 'unknown' },
  'must-not-repeat': { open: 'unknown', doubt: 'unknown' },
  unreported: { taken: 'unknown' },
  forgotten: { queued: 'lapsed', retry: 'lapsed', open: 'unknown', doubt: 'unknown', taken: 'unknown' },
};

describe('the call states', () => {
  for (const [event, results] of Object.entries(moves) as [keyof typeof moves, Partial<Record<Stage, Stage>>][]) {
    for (const stage of stages) {
      const result = results[stage];
      if (result === undefined) continue;
      it(`move from ${stage} to ${result} on ${event}`, () => {
        expect(stageAfter(event, stage)).to.equal(result);
      });
    }
    it(`allow ${event} only at these stages: ${Object.keys(results).join(', ')}`, () => {
      for (const stage of stages.filter((one) => results[one] === undefined)) {
        expect(() => stageAfter(event, stage), stage).to.throw(`The event ${event} isn't allowed for a call in the stage ${stage}.`);
      }
    });
  }

  it('change only on the events in the diagram', () => {
    expect(events).to.have.members([...Object.keys(moves), 'outcome']);
  });

  it('have only one result per event and stage', () => {
    for (const event of events) expect(stagesBefore(event), event).to.have.length(new Set(stagesBefore(event)).size);
  });

  it('accept an outcome at every stage of dialing, and in place of unknown, but at no other stage', () => {
    expect(stagesBefore('outcome')).to.have.members([...handoffStages, 'unknown']);
  });

  for (const [instant, what, isNoted] of [
    ['endedAt', 'an event that ends a call', ({ event, to }) => event === 'outcome' || (typeof to === 'string' && isEnded(to))],
    ['dialedAt', 'an event that proves the provider has the call', ({ event }) => event === 'taken' || event === 'outcome'],
    ['cancelledAt', 'cancelling', ({ event }) => event === 'cancel'],
    ['firstAttemptAt', 'a claim that is the first attempt', ({ event, to }) => event === 'claim' && to === 'open'],
  ] as [Note, string, (transition: (typeof transitions)[number]) => boolean][]) {
    it(`set ${instant} only for ${what}`, () => {
      for (const transition of transitions) {
        const notes: readonly Note[] = transition.notes;
        expect(notes.includes(instant), JSON.stringify(transition)).to.equal(isNoted(transition));
      }
    });
  }
});
