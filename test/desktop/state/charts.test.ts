import { expect } from 'chai';
import { outcomesByDay, percentages, stack } from '../../../desktop/renderer/state/calls.ts';

describe('a chart of days', () => {
  it('scales its highest day to 100, and stacks each series on top of the previous series', () => {
    const { columns, total, highest } = stack([
      { day: '2026-11-20', counts: [30, 10] },
      { day: '2026-11-21', counts: [60, 20] },
    ]);
    expect(columns.map(({ segments }) => segments)).to.deep.equal([
      [
        { series: 0, from: 0, height: 37.5 },
        { series: 1, from: 37.5, height: 12.5 },
      ],
      [
        { series: 0, from: 0, height: 75 },
        { series: 1, from: 75, height: 25 },
      ],
    ]);
    expect([total, highest?.day]).to.deep.equal([120, '2026-11-21']);
  });

  it('shows even a single call among thousands, but nothing for a day without calls', () => {
    const { columns } = stack([
      { day: '2026-11-20', counts: [1] },
      { day: '2026-11-21', counts: [5_000] },
      { day: '2026-11-22', counts: [0] },
    ]);
    expect(columns.map(({ segments }) => segments.map(({ height }) => height))).to.deep.equal([[1.5], [100], []]);
  });

  it('has no highest day if there are no calls', () => {
    expect(stack([{ day: '2026-11-20', counts: [0] }])).to.include({ total: 0, highest: null });
  });

  it('rounds shares to whole percentages that add up to 100', () => {
    expect(percentages([1, 1, 1])).to.deep.equal(['34%', '33%', '33%']);
    expect(percentages([295, 435, 135, 135])).to.deep.equal(['30%', '44%', '13%', '13%']);
    expect(percentages([0, 0])).to.deep.equal(['0%', '0%']);
  });

  it('shows a small share as less than one percent, not as zero', () => {
    expect(percentages([2, 1_432, 0])).to.deep.equal(['<1%', '100%', '0%']);
  });
});

describe("a day's outcomes", () => {
  it('are counted in groups', () => {
    const states = { completed: 7, no_answer: 2, busy: 1, failed: 3, unknown: 1, cancelled: 4, lapsed: 1, queued: 5, dialing: 2 };
    expect(outcomesByDay({ dialerTrouble: null, days: [{ day: '2026-11-21', states }] })).to.deep.equal([
      { day: '2026-11-21', counts: [7, 3, 4, 5, 7] },
    ]);
  });
});
