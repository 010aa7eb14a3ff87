import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  deleteRun,
  newRepetition,
  openJournal,
  type Run,
  type RunHeader,
  readRuns,
  runName,
  startRun,
} from '../../cli/batch/run-journal.ts';
import type { Folders } from '../../cli/xdg.ts';
import { freshDirectory } from '../support/databases.ts';

const header: RunHeader = {
  version: 1,
  server: 'https://core',
  profile: 'default',
  campaignId: 'campaign',
  path: '/contacts.csv',
  content: 'digest',
  repetition: '',
  calls: 3,
  skipped: 0,
  ownRequestIds: false,
  startedAt: '2026-11-22T12:00:00.000Z',
};
const placed = { line: 2, contactId: 'contact', placedAt: '2026-11-22T12:00:01.000Z' };
const day = 24 * 60 * 60;

describe('the journals of runs', () => {
  let folders: Folders;
  beforeEach(() => {
    const directory = freshDirectory();
    folders = { config: join(directory, 'c'), data: join(directory, 'd'), state: join(directory, 's') };
  });
  const start = (changes: Partial<RunHeader> = {}) => startRun(folders, { ...header, ...changes });
  const write = (run: Run, ...entries: Parameters<ReturnType<typeof openJournal>['add']>[0][]) => {
    const journal = openJournal(run);
    for (const entry of entries) journal.add(entry);
    journal.close();
  };

  it('are none where nothing was ever placed', async () => {
    expect(await readRuns(folders)).to.deep.equal([]);
  });

  it('give back what was written: the header at the start, then each line, then the end', async () => {
    const run = await start();
    expect(await readRuns(folders)).to.deep.equal([run]);
    expect(run).to.deep.include({ header, completedAt: null, placed: new Map() });
    write(run, placed);
    write(run, { completedAt: '2026-11-22T12:00:02.000Z' });
    expect(await readRuns(folders)).to.deep.equal([{ ...run, placed: new Map([[2, placed]]), completedAt: '2026-11-22T12:00:02.000Z' }]);
  });

  it('are in the state folder, one a run, where only their user can read them', async () => {
    const { file } = await start();
    expect(file).to.match(/^.*\/s\/runs\/[0-9a-f]{32}\.jsonl$/);
    expect([statSync(file).mode & 0o777, statSync(join(folders.state, 'runs')).mode & 0o777]).to.deep.equal([0o600, 0o700]);
  });

  it('are named by the last eight digits before the ending', async () => {
    const run = await start();
    expect(runName(run)).to.equal(run.file.slice(0, -'.jsonl'.length).slice(-8));
  });

  it('are the same one for the same file, campaign, server and repetition, and otherwise another', async () => {
    const { file } = await start();
    expect((await start({ path: '/elsewhere', startedAt: '2026-11-23T12:00:00.000Z' })).file).to.equal(file);
    const others = await Promise.all([
      start({ content: 'x' }),
      start({ campaignId: 'x' }),
      start({ server: 'x' }),
      start({ repetition: 'x' }),
    ]);
    expect(new Set([file, ...others.map((other) => other.file)]).size).to.equal(5);
  });

  it('are read the newest first', async () => {
    const contents = ['2', '4', '1', '3'];
    for (const content of contents) await start({ content, startedAt: `2026-11-2${content}T12:00:00.000Z` });
    expect((await readRuns(folders)).map(({ header: { content } }) => content)).to.deep.equal(['4', '3', '2', '1']);
  });

  it('take in no other file of their folder', async () => {
    const run = await start();
    writeFileSync(`${run.file}.tmp`, readFileSync(run.file));
    writeFileSync(join(folders.state, 'runs', 'broken.jsonl'), '{');
    expect(await readRuns(folders)).to.deep.equal([run]);
  });

  it('keep an entry readable after one that a crash left half written', async () => {
    const run = await start();
    appendFileSync(run.file, '{"line":1,"conta');
    write(run, placed);
    expect([...((await readRuns(folders))[0]?.placed.keys() ?? [])]).to.deep.equal([2]);
  });

  it('are deleted ninety days after the last entry, and not before', async () => {
    const [kept, old] = [await start(), await start({ content: 'old' })];
    const seconds = Date.now() / 1_000;
    utimesSync(kept.file, seconds, seconds - 90 * day + 60);
    utimesSync(old.file, seconds, seconds - 90 * day - 60);
    expect(await readRuns(folders)).to.deep.equal([kept]);
    expect([kept, old].map(({ file }) => existsSync(file))).to.deep.equal([true, false]);
  });

  it('are deleted when a run is given up, even twice', async () => {
    const run = await start();
    await deleteRun(run);
    await deleteRun(run);
    expect(existsSync(run.file)).to.equal(false);
  });

  it('say so where their folder cannot be read', async () => {
    mkdirSync(folders.state, { recursive: true });
    writeFileSync(join(folders.state, 'runs'), '');
    expect(await readRuns(folders).catch((error) => error.code)).to.equal('ENOTDIR');
  });

  it('have another repetition for each --again', () => {
    expect(newRepetition())
      .to.match(/^[0-9a-f-]{36}$/)
      .and.not.equal(newRepetition());
  });
});
