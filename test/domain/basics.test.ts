import { expect } from 'chai';
import { firstDayStart, groupByDay } from '../../core/domain/calls/days.ts';
import { errorCode, Problem } from '../../core/domain/problem.ts';
import { at } from '../support/clock.ts';

describe("a chart's days", () => {
  const days = ['2026-11-20', '2026-11-21'].map((day) => ({ day, from: at(`${day}T00:00:00Z`) }));
  const count = (instant: string) => ({ quarterAt: at(instant) });

  it("count their own events, and today's count also includes events from a clock that was ahead", () => {
    const [before, first, last, ahead] = [
      '2026-11-19T23:45:00Z',
      '2026-11-20T00:00:00Z',
      '2026-11-20T23:45:00Z',
      '2026-11-29T00:00:00Z',
    ].map(count);
    if (!before || !first || !last || !ahead) throw new Error('There must be four counts.');
    expect(groupByDay(days, [before, first, last, ahead])).to.deep.equal([
      { day: '2026-11-20', counts: [first, last] },
      { day: '2026-11-21', counts: [ahead] },
    ]);
  });

  it('start at the first instant of the first day', () => {
    expect([firstDayStart(days), firstDayStart([])]).to.deep.equal([days[0]?.from, 0]);
  });
});

describe('a problem', () => {
  it('is an error with the status of its code, and with a cause for the log', () => {
    const cause = new Error('The disk is full.');
    const problem = new Problem('unavailable', 'Try again.', { cause, retryAfter: 2 });
    expect(problem).to.include({ name: 'Problem', message: 'Try again.', code: 'unavailable', status: 503, cause, retryAfter: 2 });
    expect([problem.errors, problem.allow, new Problem('not-found', '').status]).to.deep.equal([undefined, undefined, 404]);
  });
});

describe("an error's code", () => {
  for (const [what, error, code] of [
    ['a system error', Object.assign(new Error(), { code: 'ENOENT' }), 'ENOENT'],
    ['an error with a numeric code', Object.assign(new Error(), { code: 5 }), ''],
    ['an error without a code', new Error(), ''],
    ["a value that isn't an error", { code: 'ENOENT' }, ''],
  ] as const) {
    it(`is ${JSON.stringify(code)} for ${what}`, () => expect(errorCode(error)).to.equal(code));
  }
});
