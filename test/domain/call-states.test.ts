import { expect } from 'chai';
import { callStates } from '#contract/calls.ts';
import {
  type CallEvent,
  handoffs,
  initialStage,
  isHandoff,
  type Stage,
  stageAfter,
  stagesBefore,
  stateOf,
  transitions,
  transitionsOf,
} from '../../core/domain/call-states.ts';

const events: CallEvent[] = [...new Set(transitions.map(({ event }) => event))];
const stages: Stage[] = [...callStates.filter((state) => state !== 'dialing'), ...handoffs];
const targetsOf = (stage: Stage): readonly Stage[] =>
  transitions
    .filter(({ from }) => from.some((one) => one === stage))
    .flatMap(({ to }): readonly Stage[] => (typeof to === 'string' ? [to] : to));

describe("a call's states", () => {
  for (const event of events.filter((one) => one !== 'outcome')) {
    for (const { from, to } of transitionsOf(event)) {
      for (const stage of from) {
        it(`${stage} becomes ${String(to)} by ${event}`, () => {
          expect(stageAfter(event, stage)).to.equal(to);
        });
      }
    }
    it(`no other stage has ${event}`, () => {
      for (const stage of stages.filter((one) => !stagesBefore(event).includes(one))) {
        expect(() => stageAfter(event, stage), stage).to.throw(`A call that is ${stage} has no ${event}.`);
      }
    });
  }

  it('an event has one result at each stage', () => {
    for (const event of events) expect(stagesBefore(event), event).to.have.length(new Set(stagesBefore(event)).size);
  });

  it('an outcome is taken at every stage of dialing, and at no other', () => {
    expect(stagesBefore('outcome')).to.have.members([...handoffs]);
  });

  it('a state that has ended is final', () => {
    const ended = stages.filter((stage) => stage !== initialStage && !isHandoff(stage));
    for (const stage of ended) expect(targetsOf(stage), stage).to.deep.equal([]);
  });

  it('every state is reached from queued', () => {
    const reached = new Set<Stage>([initialStage]);
    for (const stage of reached) for (const next of targetsOf(stage)) reached.add(next);
    expect([...new Set([...reached].map(stateOf))]).to.have.members([...callStates]);
  });

  it('only a queued call is cancelled or lapses', () => {
    expect([...stagesBefore('cancel'), ...stagesBefore('lapse')]).to.deep.equal(['queued', 'queued']);
  });

  it('a call that the provider may have ends as unknown, never as lapsed', () => {
    for (const stage of ['doubt', 'taken'] as const) expect(targetsOf(stage)).to.include('unknown').and.not.include('lapsed');
  });

  it('a call that the provider certainly does not have never ends as unknown', () => {
    for (const stage of ['queued', 'retry'] as const) expect(targetsOf(stage)).to.not.include('unknown');
  });
});
