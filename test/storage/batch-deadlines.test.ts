import { mock } from 'node:test';
import { expect } from 'chai';
import { deadlines } from '../../core/domain/deadlines.ts';
import { ResultUnknown } from '../../core/domain/problem.ts';
import { controlled, rejection, stillClock, turns, useStillClock } from '../support/call-store.ts';

describe("a request's deadline", () => {
  useStillClock();

  const pass = async (time: number) => {
    stillClock.now += time;
    mock.timers.tick(time);
    await turns();
  };
  const late = {
    code: 'unavailable',
    retryAfter: 2,
    message: "The database didn't respond in time. Try again shortly, with the same request ID.",
  };
  /** Returns the state of each of these requests so far: waiting, its result, or the problem. */
  const settleAll = (...requests: Promise<unknown>[]) => {
    const outcomes: unknown[] = requests.map(() => 'waits');
    for (const [n, request] of requests.entries()) {
      const note = (outcome: unknown) => {
        outcomes[n] = outcome;
      };
      request.then(note, note);
    }
    return outcomes;
  };

  it('keeps the request out of a batch if there is no time left for a statement', async () => {
    const { ask, runs } = controlled();
    const outcomes = settleAll(ask(1, deadlines.statement), ask(2, deadlines.statement + 1));
    await turns();
    expect(outcomes[0]).to.include(late);
    expect([outcomes[1], runs.map(({ inputs }) => inputs)]).to.deep.equal(['waits', [[2]]]);
  });

  it("gives an expired request's place to a request with time left, and prevents a batch if no request has time left", async () => {
    const { ask, runs } = controlled({ size: 2 });
    const late = settleAll(ask(1, 0));
    await turns();
    expect(runs).to.deep.equal([]);
    const outcomes = settleAll(...[0, 0, deadlines.answer, deadlines.answer].map((left, n) => ask(n, left)));
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[2, 3]]);
    expect([late, outcomes].flat().filter((outcome) => outcome === 'waits')).to.have.length(2);
  });

  it('fails the request in the queue while the database hangs, but not requests with time left', async () => {
    const { ask, runs, finish } = controlled();
    const outcomes = settleAll(ask(1));
    await turns();
    const queued = settleAll(ask(2, deadlines.statement + 500), ask(3, deadlines.statement + 501));
    await pass(250);
    expect(queued).to.deep.equal(['waits', 'waits']);
    await pass(250);
    expect(queued[0]).to.include(late);
    expect(queued[1]).to.equal('waits');
    await finish(0);
    expect([outcomes, runs.map(({ inputs }) => inputs)]).to.deep.equal([['answer to 1'], [[1], [3]]]);
  });

  it('fails the request while its statement is running, and the statement continues', async () => {
    const { ask, finish } = controlled();
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2, deadlines.statement + 251));
    await turns();
    await pass(deadlines.statement);
    expect(outcomes).to.deep.equal(['waits', 'waits']);
    await pass(250);
    expect(outcomes[0]).to.include(late);
    await finish(0);
    expect(outcomes[1]).to.equal('answer to 2');
  });

  it("reports the request's change as unknown if it was sent, and lets others in the batch complete", async () => {
    const { ask, runs, finish } = controlled({ changes: true });
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2, deadlines.statement + 251));
    await turns();
    runs[0]?.send();
    await pass(deadlines.statement + 250);
    expect(outcomes[0]).to.be.instanceOf(ResultUnknown);
    await finish(0);
    expect(outcomes[1]).to.equal('answer to 2');
  });

  it("doesn't fail the other requests of a batch that is retried one by one", async () => {
    const { ask, runs, finish } = controlled({ changes: true, isSingleRowError: () => true });
    const soon = rejection(ask(1, 3_100));
    const later = ask(2);
    await turns();
    // Behind a pooler, a batch can fail like this: an invalid row is found before anything may be committed.
    runs[0]?.fail(new Error('bad row'));
    await turns();
    for (const { send } of runs.slice(1)) send();
    stillClock.now += 3_200;
    mock.timers.tick(250);
    await finish(2);
    expect(await soon).to.be.an.instanceOf(ResultUnknown);
    expect(await later).to.equal('answer to 2');
  });

  it("doesn't reject an unsent change while there is time left", async () => {
    const { ask, runs, finish } = controlled({ changes: true });
    const change = ask(1);
    await turns();
    mock.timers.tick(250);
    runs[0]?.send();
    await finish(0);
    expect(await change).to.equal('answer to 1');
  });

  it('fails the whole batch if it passes before a change is sent, and none of the batch is sent', async () => {
    const { ask, runs } = controlled({ changes: true });
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2));
    await turns();
    await pass(deadlines.statement + 250);
    for (const outcome of outcomes) expect(outcome).to.include(late);
    expect(runs[0]?.send).to.throw(late.message);
  });

  it('prevents sending a change if a wait for a lock could outlast it', async () => {
    const { ask, runs } = controlled({ changes: true });
    void ask(1, deadlines.lock + 1_000);
    void ask(2, deadlines.statement + 1).catch(() => undefined);
    await turns();
    stillClock.now += deadlines.statement - deadlines.lock;
    expect(runs[0]?.send).not.to.throw();
    stillClock.now += 2;
    expect(runs[0]?.send).to.throw(late.message);
  });

  it('is checked by a single timer while requests are waiting or running', async () => {
    const { ask, finish } = controlled();
    const timers = mock.method(globalThis, 'setTimeout');
    for (const n of [1, 2, 3]) void ask(n);
    await turns();
    expect(timers.mock.callCount()).to.equal(1);
    await pass(250);
    expect(timers.mock.callCount()).to.equal(2);
    await finish(0);
    await pass(250);
    await pass(250);
    expect(timers.mock.callCount()).to.equal(2);
    void ask(4);
    expect(timers.mock.callCount()).to.equal(3);
  });

  it('is still checked if the only request arrives just before a check', async () => {
    const { ask, finish } = controlled();
    void ask(1);
    await turns();
    await finish(0);
    const outcomes = settleAll(ask(2, deadlines.statement + 250));
    // This is still the same turn of the event loop, so the request's batch hasn't started.
    mock.timers.tick(250);
    await turns();
    await pass(deadlines.statement + 250);
    expect(outcomes[0]).to.include(late);
  });

  it('fails the request if it passes while the batch is retried one by one', async () => {
    const run = async (inputs: readonly unknown[]) => {
      stillClock.now += 10;
      throw new Error(`bad row among ${inputs.length}`);
    };
    const { ask } = controlled({ run, isSingleRowError: () => true });
    const outcomes = settleAll(...[5, 500].map((left, n) => ask(n, deadlines.statement + left)));
    await turns();
    expect(outcomes[0]).to.include(late);
    expect(outcomes[1]).to.have.property('message', 'bad row among 1');
  });
});
