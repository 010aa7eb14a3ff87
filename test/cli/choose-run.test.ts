import { expect } from 'chai';
import { pickRun, type RunRequest } from '../../cli/batch/choose-run.ts';
import { LineSet } from '../../cli/batch/line-numbers.ts';
import type { Run, RunHeader } from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';

const request: RunRequest = {
  server: 'https://core',
  profile: 'default',
  campaignId: 'campaign',
  path: '/contacts.csv',
  content: 'digest',
  reading: { columns: {}, country: null },
  calls: 3,
  skipped: 0,
  ownRequestIds: false,
};
const header = (changes: Partial<RunHeader> = {}): RunHeader => ({
  ...request,
  version: 1,
  repetition: '',
  startedAt: '2026-11-22T12:00:00.000Z',
  ...changes,
});
const run = (changes: Partial<RunHeader> = {}, completedAt: string | null = null): Run => ({
  header: header(changes),
  file: '/runs/0123456789abcdef.jsonl',
  placed: new LineSet(),
  completedAt,
});
const inPart = (changes: Partial<RunHeader>): Run => {
  const placed = new LineSet();
  placed.add(2);
  return { ...run(changes), placed };
};
const done = '2026-11-22T13:00:00.000Z';

describe('the run of a file', () => {
  it('is a new one where there is none', () => {
    expect(pickRun([], request, false)).to.deep.equal({ replaced: [] });
  });

  it('is the unfinished one of the same file in the same campaign at the same server, also with --again', () => {
    const others = [run({ server: 'https://other' }), run({ campaignId: 'other' }), run({}, done)];
    const unfinished = run();
    expect(pickRun([...others, unfinished], request, false)).to.deep.equal({ continued: unfinished });
    expect(pickRun([...others, unfinished], request, true)).to.deep.equal({ continued: unfinished });
  });

  it('is the finished one, unless with --again', () => {
    const finished = run({}, done);
    expect(pickRun([finished], request, false)).to.deep.equal({ continued: finished });
    expect(pickRun([finished], request, true)).to.deep.equal({ replaced: [] });
  });

  it('is refused where an earlier version of the file was placed in part, and replaces that run with --again', () => {
    const earlier = inPart({ content: 'before' });
    expect(() => pickRun([earlier], request, false))
      .to.throw(CallkeyError, /has changed since/)
      .with.property('kind', 'conflict');
    expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
  });

  const otherwise = { columns: {}, country: 'DE' };
  for (const completedAt of [null, done]) {
    it(`is refused where the same file was read otherwise and ${completedAt ? 'placed whole' : 'placed in part'}: its lines have the same request ids`, () => {
      const earlier = { ...inPart({ path: '/moved.csv', reading: otherwise }), completedAt };
      expect(() => pickRun([earlier], request, false))
        .to.throw(CallkeyError, /--columns/)
        .with.property('kind', 'conflict');
      expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
    });
  }

  it('replaces an earlier version of which nothing was placed', () => {
    const earlier = run({ content: 'before' });
    expect(pickRun([earlier], request, false)).to.deep.equal({ replaced: [earlier] });
  });

  const harmless: [string, Run, Partial<RunRequest>][] = [
    ['the earlier version was placed whole', run({ content: 'before' }, done), {}],
    ['the earlier version was placed but for its wrong lines', run({ content: 'before', skipped: 1 }, done), {}],
    ['the file has another path', inPart({ content: 'before', path: '/other.csv' }), {}],
    ['both came from standard input', inPart({ content: 'before', path: null }), { path: null }],
    [
      'the same file was read otherwise, and every line of both has a request id of its own',
      inPart({ reading: otherwise, ownRequestIds: true }),
      { ownRequestIds: true },
    ],
    ['every line of both has a request id of its own', inPart({ content: 'before', ownRequestIds: true }), { ownRequestIds: true }],
  ];
  for (const [what, earlier, changes] of harmless) {
    it(`is a new one where ${what}`, () => {
      expect(pickRun([earlier], { ...request, ...changes }, false)).to.deep.equal({ replaced: [] });
    });
  }
});
