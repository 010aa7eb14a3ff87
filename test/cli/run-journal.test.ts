import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { plainReading } from '../../cli/batch/reading.ts';
import {
  callDigest,
  cancelJournalPath,
  cancelledLines,
  deleteRun,
  lineRequestId,
  openCancelJournal,
  openJournal,
  parseJournal,
  type Run,
  type RunHeader,
  placedLines as readPlacedLines,
  readRuns,
  runName,
  startRun,
} from '../../cli/batch/run-journal.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import type { Folders } from '../../cli/state/folders.ts';
import { freshFolders, runHeader as header } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';
import { openFilesIn } from '../support/hooks.ts';
import { until } from '../support/until.ts';

const done = '2026-11-22T13:00:00.000Z';
const call = 'digest';
const placed = (line: number) => ({ line, contactId: `contact-${line}`, placedAt: done, call });
const text = (...entries: object[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
const placedLines = (run: Run | undefined) => [1, 2, 3, 4, 5].filter((line) => run?.placed.has(line));
const seconds = (days: number) => days * 24 * 60 * 60;

describe('parsing a run journal', () => {
  const parse = (journal: string) => parseJournal('/runs/x.jsonl', Readable.from(journal.split('\n')));

  it('returns the header, the placed lines and the completion time', async () => {
    const run = await parse(text(header(), placed(2), placed(3), { completedAt: done }));
    expect(run).to.deep.include({ header: header(), file: '/runs/x.jsonl', completedAt: done });
    expect(placedLines(run)).to.deep.equal([2, 3]);
  });

  it('returns the time when a run with refused lines ended, unless they have been sent again since', async () => {
    const entries = [header(), { sent: 2, call }, placed(2), { sent: 3, call }, { refused: 3 }, { endedAt: done }];
    const parsed = await Promise.all([entries, [...entries, { sent: 3, call }]].map((journal) => parse(text(...journal))));
    expect(parsed.map((run) => [placedLines(run), run?.endedAt, run?.completedAt])).to.deep.equal([
      [[2], done, null],
      [[2], null, null],
    ]);
  });

  it('survives a half-written entry at any position', async () => {
    const run = await parse(`${text(header(), placed(2))}{"line":3,"conta\n${text(placed(4))}{"comple`);
    expect([placedLines(run), run?.completedAt]).to.deep.equal([[2, 4], null]);
  });

  it('returns no run without a complete header', async () => {
    expect(await parse('')).to.equal(undefined);
    expect(await parse(JSON.stringify(header()).slice(0, -5))).to.equal(undefined);
    expect(await parse(text({ ...header(), version: 2 }))).to.equal(undefined);
  });

  it('derives request IDs from the file, campaign, repetition and line, but not from the server, path or time', () => {
    const id = (changes: Partial<RunHeader> = {}, line = 2) => lineRequestId(header(changes), line);
    expect([id({ path: '/elsewhere' }), id({ server: 'https://other' }), id({ startedAt: done })]).to.deep.equal([id(), id(), id()]);
    // This ID must never change, because the core uses it to recognize calls that were already placed.
    expect(id()).to.equal('file-2106b594494171dabf83b8c77f2d994c-2');
    const others = [id({ content: 'other' }), id({ campaignId: 'other' }), id({ repetition: 'again' }), id({}, 3)];
    expect(new Set([id(), ...others]).size).to.equal(5);
  });
});

describe('run journals', () => {
  let folders: Folders;
  let runs: string;
  beforeEach(() => {
    folders = freshFolders();
    runs = join(folders.state, 'runs');
  });
  const start = (changes: Partial<RunHeader> = {}) => startRun(folders, header(changes));
  const write = (run: Run, ...entries: Parameters<ReturnType<typeof openJournal>['add']>[0][]) => {
    const journal = openJournal(run);
    for (const entry of entries) journal.add(entry);
    journal.close();
  };
  const onlyRun = async () => {
    const [run] = await readRuns(folders);
    return run;
  };

  it('return the written entries: the header first, then each line, then the end; before that, there are none', async () => {
    expect(await readRuns(folders)).to.deep.equal([]);
    const run = await start();
    expect(run).to.deep.include({ header: header(), completedAt: null });
    expect([run.placed.size, await readRuns(folders)]).to.deep.equal([0, [run]]);
    write(run, placed(2));
    write(run, { completedAt: done });
    const read = await onlyRun();
    expect([placedLines(read), read?.completedAt, read?.file]).to.deep.equal([[2], done, run.file]);
  });

  it('are stored in the state folder, one per run, readable only by their user', async () => {
    const run = await start();
    expect(run.file).to.match(/^.*\/s\/runs\/[0-9a-f]{32}\.jsonl$/);
    rmSync(run.file);
    write(run, placed(2));
    expect([statSync(run.file).mode & 0o777, statSync(runs).mode & 0o777]).to.deep.equal([0o600, 0o700]);
  });

  it('have a short name: the last eight digits of their file name', async () => {
    const run = await start();
    expect(runName(run)).to.equal(run.file.slice(0, -'.jsonl'.length).slice(-8));
  });

  it('have the same name only for the same file, reading options, campaign, server and repetition', async () => {
    const { file } = await start();
    expect((await start({ path: '/elsewhere', startedAt: done })).file).to.equal(file);
    const others: Partial<RunHeader>[] = [{ content: 'x' }, { campaignId: 'x' }, { server: 'x' }, { repetition: 'x' }];
    others.push({ reading: { ...plainReading, country: 'DE' } });
    const files = await Promise.all(others.map(async (other) => (await start(other)).file));
    expect(new Set([file, ...files]).size).to.equal(6);
  });

  it('are continued if another command has just started them, but replaced if their header is unreadable', async () => {
    const run = await start();
    write(run, placed(2));
    expect(placedLines(await start({ startedAt: done }))).to.deep.equal([2]);
    expect(await onlyRun()).to.deep.include({ header: header() });
    writeFileSync(run.file, '{"version":1,"ser');
    expect(placedLines(await start({ startedAt: done }))).to.deep.equal([]);
    expect(await onlyRun()).to.deep.include({ header: header({ startedAt: done }) });
  });

  it('are closed after writing', async () => {
    write(await start(), placed(2));
    await until(() => openFilesIn(runs).length === 0);
  });

  it('are read newest first', async () => {
    const contents = ['2', '4', '1', '3'];
    for (const content of contents) await start({ content, startedAt: `2026-11-2${content}T12:00:00.000Z` });
    expect((await readRuns(folders)).map((run) => run.header.content)).to.deep.equal(['4', '3', '2', '1']);
  });

  it('ignore other files in their folder', async () => {
    const run = await start();
    writeFileSync(`${run.file}.tmp`, readFileSync(run.file));
    writeFileSync(join(runs, 'broken.jsonl'), '{');
    expect(await readRuns(folders)).to.deep.equal([run]);
  });

  it('keep later entries readable if a crash left an entry half-written', async () => {
    const run = await start();
    appendFileSync(run.file, '{"line":1,"conta');
    write(run, placed(2));
    expect(placedLines(await onlyRun())).to.deep.equal([2]);
  });

  it('return each line once and the time of completion, even if there are thousands of lines', async () => {
    const run = await start({ calls: 2_000 });
    const lines = Array.from({ length: 2_000 }, (_, n) => n + 2);
    write(run, ...lines.map(placed), placed(2));
    const unfinished = await onlyRun();
    expect([unfinished?.placed.size, unfinished?.completedAt]).to.deep.equal([2_000, null]);
    write(run, { completedAt: done }, placed(3));
    const finished = await onlyRun();
    expect(finished).to.deep.include({ header: header({ calls: 2_000 }), completedAt: done });
    // Only the start and the end of a completed run's file are read, so its placed lines aren't known.
    expect(finished?.placed.size).to.equal(0);
    expect((await Readable.from(readPlacedLines(run)).toArray()).map(({ line }) => line)).to.deep.equal(lines);
  });

  it('show which lines may have been placed although no response arrived', async () => {
    const run = await start();
    write(run, { sent: 2, call }, { sent: 3, requestId: 'own', call }, { sent: 4, call }, { sent: 5, call }, { sent: 6, call });
    write(run, placed(2), { refused: 4 }, { unreached: 5 }, { sent: 5, call });
    const { unsettled } = (await onlyRun()) ?? run;
    const expected = [3, 5, 6].map((line) => [line, { requestId: line === 3 ? 'own' : lineRequestId(run.header, line), call }]);
    expect([...unsettled].toSorted()).to.deep.equal(expected);
  });

  it('are deleted ninety days after their last entry when another run starts, but never by reading', async () => {
    const [kept, old] = [await start(), await start({ content: 'old' })];
    const now = Date.now() / 1_000;
    utimesSync(kept.file, now, now - seconds(90) + 60);
    utimesSync(old.file, now, now - seconds(90) - 60);
    expect(await readRuns(folders)).to.have.deep.members([kept, old]);
    const next = await start({ content: 'new' });
    expect(await readRuns(folders)).to.have.deep.members([kept, next]);
    expect([kept, old].map(({ file }) => existsSync(file))).to.deep.equal([true, false]);
  });

  it('keep only their header ninety days after they were cancelled, unless they repeat a file', async () => {
    const [cancelled, repeated, recent] = [await start(), await start({ repetition: 'x' }), await start({ content: 'recent' })];
    const old = Date.now() / 1_000 - seconds(91);
    for (const run of [cancelled, repeated, recent]) {
      write(run, placed(2));
      const journal = await openCancelJournal(run);
      journal.add({ line: 2, status: 'cancelled' });
      journal.close();
      for (const path of run === recent ? [run.file] : [run.file, cancelJournalPath(run.file)]) utimesSync(path, old, old);
    }
    const next = await start({ content: 'new' });
    const found = new Map((await readRuns(folders)).map((run) => [run.file, run]));
    expect(new Set(found.keys())).to.deep.equal(new Set([cancelled, recent, next].map(({ file }) => file)));
    expect([placedLines(found.get(cancelled.file)), found.get(cancelled.file)?.isCancelled]).to.deep.equal([[], true]);
    expect([placedLines(found.get(recent.file)), (await cancelledLines(recent)).size]).to.deep.equal([[2], 1]);
  });

  it("cause an error that names the file and says what to do if one can't be read", async () => {
    const { file } = await start();
    rmSync(file);
    mkdirSync(file);
    const failure: unknown = await readRuns(folders).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(CallkeyError).and.include({ kind: 'failed', code: 'not-readable' });
    expect(String(failure)).to.contain(`Couldn't read ${file}: it is a folder. Nothing was sent. Specify a folder`);
  });

  it('identify a line by its content, whatever its request ID or the order of its variables', () => {
    const contact = { phone: '+493012345678', name: 'Ada' };
    const digest = callDigest({ contact, variables: { a: '1', b: '2' } });
    expect(digest).to.match(/^[0-9a-f]{20}$/);
    expect(callDigest({ requestId: 'own', contact, variables: { b: '2', a: '1' } })).to.equal(digest);
    expect(callDigest({ contact, notAfter: done })).to.equal(callDigest({ contact, notAfter: done.replace('.000', '') }));
    const others: PlaceCall[] = [
      { contact, variables: { a: '1', b: '3' } },
      { contact },
      { contact: { phone: contact.phone } },
      { contact: { ...contact, timeZone: 'Europe/Berlin' } },
      { contact, notBefore: done },
      { contact, notAfter: done },
    ];
    expect(new Set([digest, ...others.map(callDigest)]).size).to.equal(7);
  });

  it('are deleted when a run is discarded, and discarding it again is allowed', async () => {
    const run = await start();
    await deleteRun(run.file);
    await deleteRun(run.file);
    expect(existsSync(run.file)).to.equal(false);
  });

  it("say what to do if they can't be written, before and after a call is placed", async () => {
    mkdirSync(folders.state, { recursive: true });
    writeFileSync(runs, '');
    const failure: unknown = await start().catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(CallkeyError).and.include({ kind: 'failed', code: 'not-writable' });
    expect(failure)
      .to.have.property('message')
      .that.matches(/: part of the path isn't a folder\. Nothing was sent\. Specify a folder .*--state DIR\.$/);
    const run: Run = { ...(await startRun({ ...folders, state: freshDirectory() }, header())), file: join(runs, 'x.jsonl') };
    expect(() => openJournal(run)).to.throw(CallkeyError, `Couldn't write the journal ${run.file}: part of the path isn't a folder.`);
  });
});
