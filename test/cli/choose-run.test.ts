import { Readable } from 'node:stream';
import { expect } from 'chai';
import { pickRun, type RunRequest } from '../../cli/batch/choose-run.ts';
import { LineSet } from '../../cli/batch/line-numbers.ts';
import {
  earlierLines,
  lineRequestId,
  openJournal,
  type PlacedLine,
  parseJournal,
  type Run,
  type RunHeader,
  readRuns,
  startRun,
} from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { freshDirectory } from '../support/databases.ts';

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

  const otherwise = { columns: {}, country: 'DE' };
  for (const completedAt of [null, done]) {
    it(`is refused where the same file was read otherwise and ${completedAt ? 'placed whole' : 'placed in part'}: its lines have the same request ids`, () => {
      const earlier = run({ path: '/moved.csv', reading: otherwise }, completedAt);
      expect(() => pickRun([earlier], request, false))
        .to.throw(CallkeyError, /--columns/)
        .with.property('kind', 'conflict');
      expect(pickRun([earlier], request, true)).to.deep.equal({ replaced: [earlier] });
    });
  }

  const harmless: [string, Run, Partial<RunRequest>][] = [
    ['the earlier version was placed whole', run({ content: 'before' }, done), {}],
    ['the file has another path', run({ content: 'before', path: '/other.csv' }), {}],
    ['both came from standard input', run({ content: 'before', path: null }), { path: null }],
    [
      'the same file was read otherwise, and every line of both has a request id of its own',
      run({ reading: otherwise, ownRequestIds: true }),
      { ownRequestIds: true },
    ],
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
  const parse = (text: string) => parseJournal('/runs/x.jsonl', Readable.from(text.split('\n')));
  const linesOf = (read: Run | undefined) => [1, 2, 3, 4, 5].filter((n) => read?.placed.has(n));

  it('gives back header, placed lines and end', async () => {
    const read = await parse([header(), placed(2), placed(3), { completedAt: done }].map(line).join(''));
    expect(read).to.deep.include({ header: header(), completedAt: done });
    expect(linesOf(read)).to.deep.equal([2, 3]);
  });

  it('survives an entry that a crash left half written, wherever it is', async () => {
    const read = await parse(`${line(header())}${line(placed(2))}{"line":3,"conta\n${line(placed(4))}{"comple`);
    expect([linesOf(read), read?.completedAt]).to.deep.equal([[2, 4], null]);
  });

  it('is no run without a whole header', async () => {
    expect(await parse('')).to.equal(undefined);
    expect(await parse(JSON.stringify(header()).slice(0, -5))).to.equal(undefined);
  });

  it('of an earlier version is read as one of a file without --columns and --country', async () => {
    const { reading: _, ...earlier } = header();
    expect((await parse(line(earlier)))?.header).to.deep.equal(header());
  });

  it('that is long tells its end, and every line of it once', async () => {
    const state = freshDirectory();
    const folders = { config: state, data: state, state };
    const begun = await startRun(folders, header({ calls: 2_000 }));
    const journal = openJournal(begun);
    for (let n = 2; n <= 2_001; n++) journal.add(placed(n));
    journal.add(placed(2));
    const [unfinished] = await readRuns(folders);
    expect([unfinished?.placed.size, unfinished?.completedAt]).to.deep.equal([2_000, null]);
    journal.add({ completedAt: done });
    journal.add(placed(3));
    journal.close();
    const [finished] = await readRuns(folders);
    expect(finished).to.deep.include({ header: header({ calls: 2_000 }), completedAt: done });
    const earlier: PlacedLine[] = await Readable.from(earlierLines(begun)).toArray();
    expect(earlier.map((entry) => entry.line)).to.deep.equal(Array.from({ length: 2_000 }, (_, n) => n + 2));
  });

  it('gives a line the same request id whatever the server, path or time, and another for another file, campaign or repetition', () => {
    const id = (changes: Partial<RunHeader> = {}, line = 2) => lineRequestId(header(changes), line);
    expect([id({ path: '/elsewhere' }), id({ server: 'https://other' }), id({ startedAt: done })]).to.deep.equal([id(), id(), id()]);
    expect(id()).to.match(/^file-[0-9a-f]{32}-2$/);
    const others = [id({ content: 'other' }), id({ campaignId: 'other' }), id({ repetition: 'again' }), id({}, 3)];
    expect(new Set([id(), ...others]).size).to.equal(5);
  });
});
