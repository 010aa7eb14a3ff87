import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  callDurationMs,
  combineCampaigns,
  describeAnswered,
  describeDetail,
  outcomesByDay,
  percentages,
  stack,
} from '../../../desktop/renderer/state/calls.ts';

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

  it('rounds each share to a whole percentage, so equal counts have equal ones', () => {
    expect(percentages([1, 1, 1])).to.deep.equal(['33%', '33%', '33%']);
    expect(percentages([10, 1, 1])).to.deep.equal(['83%', '8%', '8%']);
    expect(percentages([1, 17])).to.deep.equal(['6%', '94%']);
    expect(percentages([0, 0])).to.deep.equal(['0%', '0%']);
  });

  it('shows a small share as less than one percent, not as zero', () => {
    expect(percentages([2, 1_432, 0])).to.deep.equal(['<1%', '100%', '0%']);
  });
});

describe('the bars of a chart', () => {
  const tokens = readFileSync(new URL('../../../desktop/renderer/styles/tokens.css', import.meta.url), 'utf8');
  const colors = (token: string) => new RegExp(`--${token}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(tokens)?.slice(1) ?? [];
  const luminance = (color: string) => {
    const channels = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255);
    const [red = 0, green = 0, blue = 0] = channels.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  for (const token of ['accent', 'unanswered', 'danger', 'undialed', 'bar']) {
    it(`have a contrast of at least 3 to the page in light and dark colors, such as --${token}`, () => {
      const contrasts = colors(token).map((color, theme) => {
        const both = [luminance(color), luminance(colors('ground')[theme] ?? '')];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
      });
      expect(contrasts).to.have.length(2);
      for (const contrast of contrasts) expect(contrast).to.be.at.least(3);
    });
  }
});

describe("a day's outcomes", () => {
  it('are counted in groups', () => {
    const states = { completed: 7, no_answer: 2, busy: 1, failed: 3, unknown: 1, cancelled: 4, lapsed: 1, queued: 5, dialing: 2 };
    expect(outcomesByDay({ dialerTrouble: null, days: [{ day: '2026-11-21', states }] })).to.deep.equal([
      { day: '2026-11-21', counts: [7, 3, 4, 5, 7] },
    ]);
  });

  it('say how many people and machines answered, in all campaigns, unless nothing is known', () => {
    const states = { completed: 1_500 };
    const describe = (...all: readonly (Partial<Record<'person' | 'machine' | 'unknown', number>> | undefined)[]) => {
      const campaigns = all.map((answeredBy, n) => ({ id: String(n), states, ...(answeredBy && { answeredBy }) }));
      return describeAnswered(combineCampaigns({ dialerTrouble: null, days: [{ day: '2026-11-21', campaigns }] }).days);
    };
    expect(describe({ person: 800, machine: 30 }, undefined, { person: 400, unknown: 2 })).to.equal('Person 1,200, machine 30');
    expect(describe({ machine: 30 })).to.equal('Machine 30');
    expect([describe(), describe(undefined), describe({ unknown: 4 })]).to.deep.equal(['', '', '']);
  });
});

describe("a call's duration", () => {
  const dialedAt = '2026-11-21T12:00:00.000Z';

  it('is the time from dialing until the call ended', () => {
    expect(callDurationMs({ dialedAt, endedAt: '2026-11-21T12:02:16.000Z' })).to.equal(136_000);
  });

  it("is unknown for a call that wasn't dialed or hasn't ended", () => {
    expect(callDurationMs({ dialedAt: null, endedAt: dialedAt })).to.equal(null);
    expect(callDurationMs({ dialedAt, endedAt: null })).to.equal(null);
  });
});

describe('the detail of a cancelled call', () => {
  it('says that it was cancelled with a key, unless the record says something else or was erased', () => {
    const cancelled = { state: 'cancelled', contact: { phone: '+493012345678', name: null }, detail: null } as const;
    expect(describeDetail(cancelled)).to.equal('By a request with an API key.');
    expect(describeDetail({ ...cancelled, detail: 'The API key was revoked.' })).to.equal('The API key was revoked.');
    expect(describeDetail({ ...cancelled, contact: { phone: null, name: null } })).to.equal(null);
    expect(describeDetail({ ...cancelled, state: 'completed' })).to.equal(null);
  });
});
