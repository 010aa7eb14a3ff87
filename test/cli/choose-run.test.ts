import { expect } from 'chai';
import { pickRun, type RunRequest } from '../../cli/batch/choose-run.ts';
import { lineRequestId, parseJournal, type Run, type RunHeader } from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';

const request: RunRequest = {
  server: 'https://core',
  profile: 'default',
  campaignId: 'campaign',
  path: '/contacts.csv',
  content: 'digest',
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
  placed: new Map(),
  completedAt,
});
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

  const partly: [string, Run][] = [
    ['was placed in part', run({ content: 'before' })],
    ['was placed without its wrong lines', run({ content: 'before', skipped: 1 }, done)],
  ];
  for (const [what, earlier] of partly) {
    it(`is refused where an earlier version of the file ${what}, and replaces that run with --again`, () => {
      expect(() => pickRun([earlier], request, false))
        .to.throw(CallkeyError, /has changed since/)
        .with.property('kind', 'conflict');
      expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
    });
  }

  const harmless: [string, Run, Partial<RunRequest>][] = [
    ['the earlier version was placed whole', run({ content: 'before' }, done), {}],
    ['the file has another path', run({ content: 'before', path: '/other.csv' }), {}],
    ['both came from standard input', run({ content: 'before', path: null }), { path: null }],
    ['every line of both has a request id of its own', run({ content: 'before', ownRequestIds: true }), { ownRequestIds: true }],
  ];
  for (const [what, earlier, changes] of harmless) {
    it(`is a new one where ${what}`, () => {
      expect(pickRun([earlier], { ...request, ...changes }, false)).to.deep.equal({ replaced: [] });
    });
  }
});

describe('the journal of a run', () => {
  const line = (entry: object) => `${JSON.stringify(entry)}\n`;
  const placed = (n: number) => ({ line: n, contactId: `contact-${n}`, placedAt: done });

  it('gives back header, placed lines and end', () => {
    const read = parseJournal('/runs/x.jsonl', [header(), placed(2), placed(3), { completedAt: done }].map(line).join(''));
    expect(read).to.deep.include({ header: header(), completedAt: done });
    expect([...(read?.placed.keys() ?? [])]).to.deep.equal([2, 3]);
  });

  it('survives an entry that a crash left half written, wherever it is', () => {
    const text = `${line(header())}${line(placed(2))}{"line":3,"conta\n${line(placed(4))}{"comple`;
    const read = parseJournal('/runs/x.jsonl', text);
    expect([...(read?.placed.keys() ?? []), read?.completedAt]).to.deep.equal([2, 4, null]);
  });

  it('is no run without a whole header', () => {
    expect(parseJournal('/runs/x.jsonl', '')).to.equal(undefined);
    expect(parseJournal('/runs/x.jsonl', JSON.stringify(header()).slice(0, -5))).to.equal(undefined);
  });

  it('gives a line the same request id whatever the server, path or time, and another for another file, campaign or repetition', () => {
    const id = (changes: Partial<RunHeader> = {}, line = 2) => lineRequestId(header(changes), line);
    expect([id({ path: '/elsewhere' }), id({ server: 'https://other' }), id({ startedAt: done })]).to.deep.equal([id(), id(), id()]);
    expect(id()).to.match(/^file-[0-9a-f]{32}-2$/);
    const others = [id({ content: 'other' }), id({ campaignId: 'other' }), id({ repetition: 'again' }), id({}, 3)];
    expect(new Set([id(), ...others]).size).to.equal(5);
  });
});
