import { EventEmitter, once } from 'node:events';
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { CallkeyError } from '../../cli/client/errors.ts';
import { diskError, diskReason, inTurn, listIfExists, readIfExists, writeDurably } from '../../cli/state/durable-file.ts';
import { cliMain } from '../support/cli.ts';
import { fakeTiming } from '../support/clock.ts';
import { canTrace, runTraced } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { openFilesIn } from '../support/hooks.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { skip } from '../support/suites.ts';
import { somePhone } from '../support/tenants.ts';

const failure = (code: string) => Object.assign(new Error('x'), { code });
const rejection = (doing: Promise<unknown>): Promise<unknown> =>
  doing.then(
    () => 'none',
    (error) => error,
  );

describe('writing a file durably', () => {
  it('replaces the old file with one that only its owner can read, and leaves no temporary file behind', async () => {
    const folder = join(freshDirectory(), 'new', 'folder');
    for (const text of ['old', 'new']) await writeDurably(join(folder, 'file'), text);
    expect([readFileSync(join(folder, 'file'), 'utf8'), readdirSync(folder)]).to.deep.equal(['new', ['file']]);
    expect([folder, join(folder, 'file')].map((path) => statSync(path).mode & 0o777)).to.deep.equal([0o700, 0o600]);
  });

  it("leaves nothing behind if it can't replace the file, and says why and what to do", async () => {
    const folder = freshDirectory();
    const path = join(folder, 'file');
    mkdirSync(join(path, 'full'), { recursive: true });
    const error = await rejection(writeDurably(path, 'text', 'Name another.'));
    expect(error).to.be.instanceOf(CallkeyError).and.include({ kind: 'failed', code: 'not-writable' });
    expect(error)
      .to.have.property('message')
      .that.matches(/^Couldn't write \/.*\/file: it is a folder\. Name another\.$/);
    expect(readdirSync(folder)).to.deep.equal(['file']);
  });

  it("says so if the folder can't be created", async () => {
    const error = await rejection(writeDurably('/proc/callkey-test/folder/file', 'text'));
    expect(error).to.have.property('message', "Couldn't write /proc/callkey-test/folder/file: the folder can't be created.");
  });

  it('closes the new file whether or not it could replace the old file', async () => {
    const folder = freshDirectory();
    await writeDurably(join(folder, 'file'), 'text');
    await rejection(writeDurably(folder, 'text'));
    expect(openFilesIn(folder)).to.deep.equal([]);
  });
});

describe('commands that take turns', () => {
  const steps = new EventEmitter();
  const timing = fakeTiming(async () => {
    steps.emit('step');
    await nextTurn();
  });
  /** Waits until the other command has waited so often that it has noticed everything, unless something else happens before. */
  const otherWaits = async (orElse: () => boolean) => {
    for (let n = 0; n < 10 && !orElse(); n++) await once(steps, 'step');
  };

  /** Makes the first deletion last until the other command wants to delete the file, too. That one begins when the file is `replaced`. */
  function deleteSlowly(path: string, replaced: Promise<void>): () => void {
    const { rm } = fs;
    let deletions = 0;
    fs.rm = async (file, options) => {
      if (file === path && ++deletions === 1) await otherWaits(() => deletions > 1);
      else if (file === path) {
        steps.emit('step');
        await replaced;
      }
      await rm(file, options);
    };
    syncBuiltinESMExports();
    return () => {
      Object.assign(fs, { rm });
      syncBuiltinESMExports();
    };
  }

  it("don't change a file at the same time, even if several of them want to replace the lock of a killed one", async () => {
    const path = join(freshDirectory(), 'file');
    writeFileSync(`${path}.lock`, '');
    const entered = Promise.withResolvers<void>();
    const restore = deleteSlowly(`${path}.lock`, entered.promise);
    let [changes, changing, most] = [0, 0, 0];
    const change = async () => {
      most = Math.max(most, ++changing);
      entered.resolve();
      if (++changes === 1) await otherWaits(() => changes > 1);
      else steps.emit('step');
      changing--;
    };
    try {
      await Promise.all([inTurn(path, timing, change), inTurn(path, timing, change)]);
      expect([changes, most, readdirSync(dirname(path))]).to.deep.equal([2, 1, []]);
    } finally {
      restore();
    }
  });
});

describe('the reason for a disk error', () => {
  for (const [code, reason, problem] of [
    ['ENOSPC', 'the disk is full', 'disk-full'],
    ['EDQUOT', 'the disk quota is exceeded', 'disk-full'],
    ['EROFS', 'the file system is read-only', 'not-writable'],
    ['EACCES', 'permission denied', 'not-writable'],
    ['EPERM', 'permission denied', 'not-writable'],
    ['ENOENT', "the folder can't be created", 'not-writable'],
    ['EISDIR', 'it is a folder', 'not-writable'],
    ['ENOTDIR', "part of the path isn't a folder", 'not-writable'],
    ['EEXIST', "part of the path isn't a folder", 'not-writable'],
    ['XENOSPC', 'x', 'not-writable'],
    ['ENOSPC2', 'x', 'not-writable'],
  ] as const) {
    it(`is "${reason}" for ${code}`, () => {
      const cause = failure(code);
      expect(diskError(cause, "Couldn't write it")).to.include({ code: problem, cause, message: `Couldn't write it: ${reason}.` });
    });
  }

  it('is the original message of an error that has no code', () => {
    expect([diskReason(new Error('odd')), diskReason('odd')]).to.deep.equal(['odd', 'odd']);
    const known = new CallkeyError('usage', 'known');
    expect(diskError(known, "Couldn't write it")).to.equal(known);
    expect(diskReason(known)).to.equal('known');
    expect(diskReason(new CallkeyError('failed', "Couldn't write it", { cause: failure('ENOSPC') }))).to.equal('the disk is full');
  });
});

describe('reading a file that may be missing', () => {
  it('returns the content, or nothing if the file is missing or its folder is a file', async () => {
    const folder = freshDirectory();
    writeFileSync(join(folder, 'file'), 'text');
    expect([await readIfExists(join(folder, 'file')), await listIfExists(folder)]).to.deep.equal(['text', ['file']]);
    for (const path of [join(folder, 'none'), join(folder, 'file', 'none')])
      expect([await readIfExists(path), await listIfExists(path)]).to.deep.equal([undefined, []]);
  });

  it("fails if the file exists but can't be read", async () => {
    const folder = freshDirectory();
    const error = await rejection(readIfExists(folder, 'Move it.'));
    expect(error)
      .to.be.instanceOf(CallkeyError)
      .and.include({ kind: 'failed', code: 'not-readable', message: `Couldn't read ${folder}: it is a folder. Move it.` });
    symlinkSync('loop', join(folder, 'loop'));
    expect(await rejection(listIfExists(join(folder, 'loop'))))
      .to.have.property('message')
      .that.matches(/loop: ELOOP.* Fix its permissions, or move it\.$/);
  });
});

describe('files written by a command', function () {
  this.timeout(30_000);
  const its = sharedIntegrator();

  it('are synced to disk, with every folder created for them, before the command exits', async function () {
    if (!canTrace()) skip(this, 'strace is missing, or may not trace');
    const { directory, environment } = its.home;
    const file = join(directory, 'calls.csv');
    writeFileSync(file, `phone\n${somePhone()}\n`);
    const state = join(directory, 'a new folder', 'in a new folder');
    for (const which of [
      ['--phone', somePhone()],
      ['--from', file],
    ]) {
      const args = ['call', 'place', its.tenants.campaign.id, ...which, '--state', state];
      const { code, calls } = await runTraced(cliMain, args, { env: { ...environment, HOME: directory }, directory });
      const synced = calls.flatMap(({ name, paths }, n) => (/sync$/.test(name) ? [{ path: paths[0], n }] : []));
      const unsynced = calls.flatMap(({ name, paths: [from = '', to = from] }, n) => {
        if (/sync$/.test(name) || !to.startsWith(state.slice(0, directory.length + 1))) return [];
        const isFolderSynced = synced.some((sync) => sync.path === dirname(to) && sync.n > n);
        const isFileSynced = name === 'mkdir' || synced.some((sync) => sync.path === from && sync.n < n);
        return isFolderSynced && isFileSynced ? [] : [`${name} ${to}`];
      });
      expect([code, unsynced]).to.deep.equal([0, []]);
      expect(calls.filter(({ name }) => name.startsWith('rename'))).not.to.deep.equal([]);
    }
    const journal = globSync(join(state, 'runs', '*.jsonl'));
    expect(journal).to.have.length(1);
  });
});
