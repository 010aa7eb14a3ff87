import { expect } from 'chai';
import { pickRun, type RunRequest } from '../../cli/batch/choose-run.ts';
import { LineSet } from '../../cli/batch/long-file.ts';
import { plainReading } from '../../cli/batch/reading.ts';
import type { Run, RunHeader } from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { runHeader } from '../support/cli.ts';

const request: RunRequest = runHeader();
const run = (changes: Partial<RunHeader> = {}, completedAt: string | null = null): Run => ({
  header: runHeader(changes),
  file: '/runs/0123456789abcdef.jsonl',
  placed: new LineSet(),
  unsettled: new Map(),
  completedAt,
  endedAt: null,
  isCancelled: false,
});
const inPart = (changes: Partial<RunHeader>): Run => {
  const placed = new LineSet();
  placed.add(2);
  return { ...run(changes), placed };
};
const done = '2026-11-22T13:00:00.000Z';
const ended = (changes: Partial<RunHeader>): Run => ({ ...inPart(changes), endedAt: done });

describe('choosing the run for a file', () => {
  it('starts a new run if there are no earlier runs', () => {
    expect(pickRun([], request, false)).to.deep.equal({ replaced: [] });
  });

  it('resumes an unfinished run of the same file, campaign and server, even with --again', () => {
    const others = [run({ server: 'https://other' }), run({ campaignId: 'other' }), run({}, done)];
    const unfinished = run();
    expect(pickRun([...others, unfinished], request, false)).to.deep.equal({ continued: unfinished });
    expect(pickRun([...others, unfinished], request, true)).to.deep.equal({ continued: unfinished });
  });

  it('returns a finished run, unless --again is given', () => {
    const finished = run({}, done);
    expect(pickRun([finished], request, false)).to.deep.equal({ continued: finished });
    expect(pickRun([finished], request, true)).to.deep.equal({ replaced: [] });
  });

  it('continues a run that has ended without placing every line, unless --again is given or the run was already repeated with it', () => {
    const incomplete = ended({});
    expect(pickRun([incomplete], request, false)).to.deep.equal({ continued: incomplete });
    expect(pickRun([incomplete], request, true)).to.deep.equal({ replaced: [] });
    const repeated = run({ repetition: 'again' }, done);
    expect(pickRun([repeated, incomplete], request, false)).to.deep.equal({ continued: repeated });
  });

  it("refuses a file whose earlier version was partly placed, but with --again, replaces the earlier version's run", () => {
    const earlier = inPart({ content: 'before' });
    expect(() => pickRun([earlier], request, false))
      .to.throw(CallkeyError, /has changed since/)
      .with.property('kind', 'conflict');
    expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
  });

  it('refuses a file whose run was cancelled, even if only its header is left, unless --again is given', () => {
    const cancelled = { ...run(), isCancelled: true };
    expect(() => pickRun([cancelled], request, false))
      .to.throw(CallkeyError, /was cancelled/)
      .with.property('kind', 'conflict');
    expect(pickRun([cancelled], request, true)).to.deep.equal({ replaced: [] });
  });

  const otherwise = { ...plainReading, zone: 'Europe/Berlin' };
  for (const completedAt of [null, done]) {
    it(`refuses the same file with different reading options after it was placed ${completedAt ? 'completely' : 'partly'}, because the request IDs are the same`, () => {
      const earlier = { ...inPart({ path: '/moved.csv', reading: otherwise }), completedAt };
      expect(() => pickRun([earlier], request, false))
        .to.throw(CallkeyError, /--columns/)
        .with.property('kind', 'conflict');
      expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
    });
  }

  it('replaces the run of an earlier version if none of its calls were placed', () => {
    const earlier = run({ content: 'before' });
    expect(pickRun([earlier], request, false)).to.deep.equal({ replaced: [earlier] });
  });

  const harmless: [string, Run, Partial<RunRequest>][] = [
    ['the earlier version was completely placed', run({ content: 'before' }, done), {}],
    ['the earlier version was placed except for its invalid lines', run({ content: 'before', skipped: 1 }, done), {}],
    ["the earlier version has ended, although some lines weren't placed", ended({ content: 'before' }), {}],
    ['the file is at a different path', inPart({ content: 'before', path: '/other.csv' }), {}],
    ['both files came from standard input', inPart({ content: 'before', path: null }), { path: null }],
    [
      'the same file is read with different options, and every line has its own request ID',
      inPart({ reading: otherwise, ownRequestIds: true }),
      { ownRequestIds: true },
    ],
    ['every line of both files has its own request ID', inPart({ content: 'before', ownRequestIds: true }), { ownRequestIds: true }],
  ];
  for (const [what, earlier, changes] of harmless) {
    it(`starts a new run if ${what}`, () => {
      expect(pickRun([earlier], { ...request, ...changes }, false)).to.deep.equal({ replaced: [] });
    });
  }
});
