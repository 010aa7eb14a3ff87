import { expect } from 'chai';
import { limits } from '#contract/limits.ts';
import { firstDayStart, groupByDay } from '../../core/domain/calls/days.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import { idCursors, toPage } from '../../core/domain/paging.ts';
import { errorCode, Problem } from '../../core/domain/problem.ts';
import { at } from '../support/clock.ts';

describe("a chart's days", () => {
  const days = ['2026-11-20', '2026-11-21'].map((day) => ({ day, from: at(`${day}T00:00:00Z`) }));
  const count = (time: string) => ({ quarterAt: at(time) });

  it("count their own events, and today's count also includes events from a clock that was ahead", () => {
    const counts = ['2026-11-19T23:45:00Z', '2026-11-20T00:00:00Z', '2026-11-20T23:45:00Z', '2026-11-29T00:00:00Z'].map(count);
    expect(groupByDay(days, counts)).to.deep.equal([
      { day: '2026-11-20', counts: counts.slice(1, 3) },
      { day: '2026-11-21', counts: counts.slice(3) },
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

describe('instant', () => {
  const latest = 8.64e15;

  it('accepts any value that a Date can hold', () => {
    expect([-latest, 0, latest].map(instant)).to.deep.equal([-latest, 0, latest]);
    expect(plus(instant(1_500), -500)).to.equal(1_000);
  });

  it("refuses a number that a Date can't hold", () => {
    for (const ms of [latest + 1, -latest - 1, Number.NaN])
      expect(() => instant(ms)).to.throw(RangeError, `${ms} isn't a valid timestamp.`);
  });
});

describe('a page', () => {
  const cursors = idCursors('numbers');
  const page = (count: number) =>
    toPage(
      cursors,
      limits.page,
      Array.from({ length: count }, (_, n) => n),
      String,
    );

  it("has no next page if all rows fit, even if it's empty or exactly full", () => {
    expect(page(0)).to.deep.equal({ items: [], nextCursor: null });
    expect(page(limits.page).nextCursor).to.equal(null);
    expect(page(limits.page).items).to.have.length(limits.page);
  });
  it("ends at its cursor, and doesn't include the extra row that shows that there is a next page", () => {
    const { items, nextCursor } = page(limits.page + 1);
    expect([items.length, cursors.read(nextCursor)]).to.deep.equal([limits.page, String(limits.page - 1)]);
  });
});
