import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { memoryOver } from '../../scripts/bench/measure.ts';
import { computeOtherLoad, lowerLoad, parseStat, processTree, sumCpu } from '../../scripts/bench/processes.ts';
import { computeRatios, computeSpread, computeSpreads, fitSlope, slopeWithRange, withGoal } from '../../scripts/bench/spread.ts';
import { buildSections, fillIn, longFileSection, pages, poolersSection, rowTable, soakSection } from '../../scripts/bench/write.ts';

describe('the bench statistics', () => {
  it('return the median, or the mean of the two middle values', () => {
    expect(computeSpread([10, 2, 9])).to.deep.equal({ median: 9, min: 2, max: 10, values: [10, 2, 9] });
    expect(computeSpread([10, 2, 9, 4]).median).to.equal(6.5);
  });

  it('compare only values from the same round', () => {
    expect(computeRatios(computeSpread([1, 2, 3]), computeSpread([2, 4, 2])).values).to.deep.equal([0.5, 0.5, 1.5]);
  });

  it('fit a straight line', () => {
    expect(fitSlope([0, 1, 2, 3].map((x) => ({ x, y: 7 - 2 * x })))).to.be.closeTo(-2, 1e-9);
  });

  it('give a wide range for a slope that a single step caused', () => {
    const { slope, min, max } = slopeWithRange(Array.from({ length: 100 }, (_, x) => ({ x, y: x < 95 ? 0 : 100 })));
    expect(min).to.be.lessThan(slope / 2);
    expect(max).to.be.greaterThan(slope);
  });
});

describe("the bench's measurement of other load", () => {
  it("subtracts its own and the kernel's processes from the processor time", () => {
    const before = { at: 0, busy: 1_100, own: 520, stolen: 0 };
    // The processors were busy for 1 s, of which 0.7 s are the measured process's own and 0.05 s are the kernel's.
    const { others, stolen } = computeOtherLoad(before, { at: 1_000, busy: 2_100, own: 1_270, stolen: 50 });
    expect(others).to.be.closeTo(0.25, 1e-9);
    expect(stolen).to.be.closeTo(0.05, 1e-9);
  });

  it('is never below zero', () => {
    const before = { at: 0, busy: 0, own: 0, stolen: 0 };
    expect(computeOtherLoad(before, { at: 1_000, busy: 100, own: 200, stolen: 0 }).others).to.equal(0);
  });

  it('uses the smaller of two measurements, since either may be wrong', () => {
    expect(lowerLoad({ others: 0.9, stolen: 0.1 }, { others: 0.05, stolen: 0.2 })).to.deep.equal({ others: 0.05, stolen: 0.1 });
  });

  it('reads a process whose name has spaces and parentheses', () => {
    const text = '42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 11 22 33 44 20 0 1 0 100 0 0';
    expect(parseStat(text)).to.deep.equal({ pid: 42, parent: 7, cpu: 1_100 });
  });

  it('includes the children and grandchildren of a process', () => {
    const process = (pid: number, parent: number, cpu: number) => ({ pid, parent, cpu });
    const all = [process(1, 0, 1_000), process(5, 1, 10), process(6, 5, 20), process(7, 6, 40), process(8, 1, 500)];
    expect(sumCpu(processTree(5, all))).to.equal(70);
  });
});

describe("the pages with the bench's results", () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const stored = (name: string) => JSON.parse(read(`scripts/bench/results/${name}.json`));
  const page = 'Before.\n\n<!-- bench one -->\n\nold\n\n<!-- /bench -->\n\n<!-- bench two -->\n\nkept\n\n<!-- /bench -->\n';

  it('are changed only between the markers of a result', () => {
    const expected = page.replace('old', '| new |');
    expect(fillIn(page, { one: '| new |\n' })).to.equal(expected);
    expect(fillIn(expected, { one: '| new |\n' })).to.equal(expected);
  });

  it('quote the stored results', () => {
    const sections = {
      ...buildSections(stored('latest')),
      'soak-sqlite': soakSection(stored('soak-sqlite')),
      'long-file': longFileSection(stored('long-file')),
      poolers: poolersSection(stored('poolers')),
    };
    for (const page of pages) expect(fillIn(read(page), sections), page).to.equal(read(page));
  });

  it('have a cell for every column in each line of their tables', () => {
    const cells = (line: string) => line.match(/(?<!\\)\|/g)?.length;
    const uneven = Object.values(buildSections(stored('latest'))).flatMap((section) =>
      section.split('\n').filter((line, n, [head = '']) => n > 0 && line.startsWith('|') && cells(line) !== cells(head)),
    );
    expect(uneven).to.deep.equal([]);
  });

  it('show shares and times, and mark a result that misses its goal', () => {
    const load = { perSecond: 30_000.4, p50: 1, p99: 7.96, requests: 60_000, main: 1, rest: 1, postgres: 1, total: 3 };
    const [, , row] = rowTable([{ name: 'place', database: 'sqlite', ...computeSpreads([{ ...load, ratio: 0.5 }]) }]).split('\n');
    expect(row).to.equal('| place | SQLite | **0.50** | 0.50 to 0.50 | 30,000 | 8.0 ms (8.0 to 8.0) |');
    expect([withGoal('≥ 0.50', 0.5), withGoal('≥ 0.50', 0.49)]).to.deep.equal(['≥ 0.50', '≥ 0.50, **missed**']);
  });

  it('say whether the memory is flat in a soak test', () => {
    const hour = (rss: (minute: number) => number) =>
      Array.from({ length: 61 }, (_, minute) => ({ seconds: minute * 60, rss: rss(minute) }));
    const early = memoryOver(hour((minute) => (minute < 5 ? 100 + 10 * minute : 150)));
    expect(early).to.deep.include({ warmUpMinutes: 10, isFlat: true, peak: 150 });
    const leak = memoryOver(hour((minute) => 100 + minute / 2));
    expect(leak.slope).to.be.closeTo(30, 1e-6);
    expect(leak.isFlat).to.equal(false);
    const about = {
      at: '2026-01-02T00:00:00Z',
      commit: 'abc',
      machine: { processor: '' },
      database: 'sqlite' as const,
      peakPerSecond: 1,
      samples: [],
    };
    const section = soakSection({ ...about, otherLoad: { others: 0, stolen: 0 }, minutes: [], memory: leak });
    expect(section).to.contain('**not flat**').and.to.contain('30.0 MB per hour').and.to.contain('130 MB');
  });
});
