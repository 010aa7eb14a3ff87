import { execFileSync } from 'node:child_process';
import fs, { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { restoreSqlite } from '../../core/admin/database/restore-sqlite.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createPartner } from '../../core/domain/directory/directory.ts';
import { adminOn, mountDisk } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { openDirect } from '../support/tenants.ts';

describe('admin restore', () => {
  describe('restoring a SQLite file', function () {
    this.timeout(120_000);
    let template: string;
    /** A backup of the database of which each test has a copy. */
    let file: string;
    let url: string;
    let filename: string;
    before(async () => {
      const original = await freshDatabase('sqlite');
      template = original.slice('sqlite:'.length);
      file = join(freshDirectory(), 'backup');
      await adminOn(original).json('partner', 'add', 'One');
      await adminOn(original).json('backup', file);
    });
    beforeEach(() => {
      filename = join(freshDirectory(), 'callkey.db');
      url = `sqlite:${filename}`;
      copyFileSync(template, filename);
    });

    /** Adds a partner that's only in the WAL, and leaves the files as a killed core does. */
    async function leaveWal(): Promise<void> {
      const direct = await openDirect(url);
      await createPartner(direct.ports, operator, 'Two');
      url = await freshDatabase('sqlite');
      const copy = url.slice('sqlite:'.length);
      for (const suffix of ['', '-wal']) copyFileSync(filename + suffix, copy + suffix);
      await direct.close();
      filename = copy;
    }

    it('keeps the previous database with its WAL, and leaves no WAL next to the new database', async () => {
      await leaveWal();
      const { restored } = await adminOn(url).json('restore', file);
      expect(readdirSync(dirname(filename)).filter((name) => /-(wal|shm|journal)$|restoring/.test(name))).to.deep.equal([]);
      expect(statSync(filename).mode & 0o777).to.equal(0o600);
      expect((await adminOn(`sqlite:${restored.before}`).json('check')).ok).to.equal(true);
      const direct = await openDirect(`sqlite:${restored.before}`);
      const partners = await direct.storage.database.read('partners').orderBy('name').pluck('name');
      await direct.close();
      expect(partners).to.deep.equal(['One', 'Two']);
    });

    it("replaces a damaged database, and says that it can't list which keys and users are active again", async () => {
      writeFileSync(filename, 'no database at all '.repeat(1000));
      const answer = await adminOn(url).json('restore', file);
      expect([answer.revokedApiKeys, answer.deletedUsers]).to.deep.equal([null, null]);
      expect(readFileSync(answer.restored.before, 'utf8')).to.contain('no database at all');
      expect((await adminOn(url).json('check')).ok).to.equal(true);
      writeFileSync(filename, 'no database at all '.repeat(1000));
      const { code, stdout } = await adminOn(url).admin(['restore', file, '--revoke-again']);
      expect(code).to.equal(1);
      expect(stdout).to.match(/whether their queued calls were cancelled\. .+ key revoke --cancel-queued-calls ID/);
    });

    it('keeps each previous database, even after several restores in one second', async () => {
      const now = new Date('2026-11-22T03:09:50.123Z');
      const names: (string | null)[] = [];
      for (let n = 0; n < 3; n++) names.push((await restoreSqlite(filename, file, now)).before);
      const first = `${filename}.before-restore-20261122T030950Z`;
      expect(names).to.deep.equal([first, `${first}-2`, `${first}-3`]);
      for (const name of names) expect((await adminOn(`sqlite:${name}`).json('check')).ok).to.equal(true);
    });

    it('works on a file system without hard links', async () => {
      const { linkSync } = fs;
      fs.linkSync = () => {
        throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
      };
      syncBuiltinESMExports();
      try {
        const { before } = await restoreSqlite(filename, file, new Date());
        expect((await adminOn(`sqlite:${before}`).json('check')).ok).to.equal(true);
        const missing = join(freshDirectory(), 'callkey.db');
        await restoreSqlite(missing, file, new Date());
        for (const each of [filename, missing]) expect((await adminOn(`sqlite:${each}`).json('check')).ok).to.equal(true);
      } finally {
        fs.linkSync = linkSync;
        syncBuiltinESMExports();
      }
    });

    it('moves aside the WAL of a missing database', async () => {
      await leaveWal();
      const moved = join(freshDirectory(), 'callkey.db');
      copyFileSync(`${filename}-wal`, `${moved}-wal`);
      await adminOn(`sqlite:${moved}`).json('restore', file);
      expect(existsSync(`${moved}-wal`)).to.equal(false);
      expect((await adminOn(`sqlite:${moved}`).json('check')).ok).to.equal(true);
    });

    it("exits with 1 if the disk is full, and not with 5, which means that the database can't be reached (needs root to mount a disk)", async function () {
      const directory = mountDisk(this, 'size=64k');
      try {
        const { code, stderr } = await adminOn(`sqlite:${join(directory, 'callkey.db')}`).admin(['restore', file]);
        expect(code, stderr).to.equal(1);
        expect(stderr).to.contain('the disk is full');
      } finally {
        execFileSync('umount', ['-l', directory]);
      }
    });

    it("says whether the backup doesn't exist or isn't a file", async () => {
      const folder = freshDirectory();
      const missing = await adminOn(url).admin(['restore', join(folder, 'missing')]);
      expect([missing.code, missing.stderr]).to.deep.equal([2, `error: ${folder}/missing doesn't exist. Specify the path of a backup.\n`]);
      const other = await adminOn(url).admin(['restore', folder]);
      expect([other.code, other.stderr]).to.deep.equal([2, `error: ${folder} isn't a file. Specify the path of a backup.\n`]);
    });

    it('refuses a backup that is a database in use, since its WAL may contain more, or that is the target itself', async () => {
      const other = await freshDatabase('sqlite');
      const core = await startCoreHere(other);
      await adminOn(other).json('partner', 'add', 'Elsewhere');
      const live = await adminOn(url).admin(['restore', other.slice('sqlite:'.length)]);
      await core.close();
      const itself = await adminOn(url).admin(['restore', filename]);
      expect(live.code).to.equal(2);
      expect(live.stderr).to.include('in use').and.to.include('admin -- backup');
      expect(itself.code).to.equal(2);
      expect(itself.stderr).to.include('itself');
    });
  });
});
