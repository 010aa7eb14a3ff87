import { execFile, execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { cliMain, ndjson } from '../support/cli.ts';
import { mountDisk } from '../support/commands.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';

describe('callkey in its environment', () => {
  const its = sharedIntegrator();

  const placeArgs = (phone: string, ...more: string[]) => ['call', 'place', its.tenants.campaign.id, '--phone', phone, ...more];
  const callsTo = (phone: string) => its.direct.storage.database.read('calls').where({ phone });

  describe('a read-only home folder', () => {
    /** No one can create a folder there, not even root. */
    const readOnly = { HOME: '/dev/null' };

    it('makes the command exit with 1 before it sends anything, and say how to continue', async () => {
      const { code, stdout, stderr } = await its.home.run(placeArgs(somePhone()), { environment: readOnly });
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr)
        .to.match(/Nothing was sent\..*--state DIR.*--request-id/)
        .and.not.match(/^ {4}at /m);
      expect(its.network.seen).to.deep.equal([]);
    });

    it('also makes storing an alias or a key fail, and say what to do instead', async () => {
      for (const [args, says] of [
        [['campaign', 'alias', 'reminders', its.tenants.campaign.id], /part of the path isn't a folder\. .*campaign's ID/],
        [['key', 'set', '--insecure-storage'], /part of the path isn't a folder\. .*Or set CALLKEY_SERVER and either CALLKEY_API_KEY/],
      ] as const) {
        const { code, stderr } = await its.home.run([...args], { environment: readOnly, input: its.key });
        expect(code).to.equal(1);
        expect(stderr).to.match(says);
      }
    });

    it("is treated like an empty HOME: nothing is sent, and the current folder isn't used instead", async () => {
      const { code, stderr } = await its.home.run(placeArgs(somePhone()), { environment: { HOME: '' } });
      expect([code, its.home.files()], stderr).to.deep.equal([1, []]);
      expect(stderr).to.match(/Nothing was sent\..*--state DIR/);
    });

    it("still stops the command if --state isn't a usable folder", async () => {
      expect((await its.home.run(placeArgs(somePhone(), '--state', ''), { environment: readOnly })).code).to.equal(2);
      const file = join(its.home.directory, 'file');
      writeFileSync(file, '');
      const { code, stderr } = await its.home.run(placeArgs(somePhone(), '--state', file), { environment: readOnly });
      expect(code).to.equal(1);
      expect(stderr).to.match(/part of the path isn't a folder\. Nothing was sent/);
      expect(its.network.seen).to.deep.equal([]);
    });

    it("doesn't prevent checking a file with --dry-run", async () => {
      const path = join(its.home.directory, 'calls.csv');
      writeFileSync(path, `phone\n${somePhone()}\n`);
      const args = ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run'];
      const { code, stderr } = await its.home.run(args, { environment: readOnly });
      expect([code, stderr.includes('Would place 1 of 1 line')], stderr).to.deep.equal([0, true]);
    });

    it("doesn't prevent placing a call that has its own request ID", async () => {
      const args = placeArgs(somePhone(), '--request-id', 'no-journal');
      const { code, stderr } = await its.home.run(args, { environment: readOnly });
      expect(code, stderr).to.equal(0);
      expect(stderr).to.match(/cancel --last won't find this call/);
    });

    it("doesn't prevent placing calls, one at a time or from a file, if the state folder is elsewhere", async () => {
      const state = ['--state', join(its.home.directory, 'my state')];
      expect((await its.home.run(placeArgs(somePhone(), ...state), { environment: readOnly })).code).to.equal(0);
      expect(
        (await its.home.run(['call', 'cancel', its.tenants.campaign.id, '--last', ...state], { environment: readOnly })).code,
      ).to.equal(0);
      const path = join(its.home.directory, 'calls.csv');
      writeFileSync(path, `phone\n${somePhone()}\n${somePhone()}\n`);
      const args = ['call', 'place', its.tenants.campaign.id, '--from', path];
      const without = await its.home.run(args, { environment: readOnly });
      expect(without.code).to.equal(1);
      expect(without.stderr).to.match(/Nothing was sent\..*--state DIR/);
      its.network.faults.push('pass', { status: 401 });
      const stopped = await its.home.run([...args, '--concurrency', '1', '--rate', '50', ...state], { environment: readOnly });
      expect(stopped.stderr).to.contain(`To continue, run callkey call resume --concurrency 1 --rate 50 --state '${state[1]}'.`);
      expect((await its.home.run(['call', 'resume', ...state], { environment: readOnly })).code).to.equal(0);
    });
  });

  describe('a state folder', () => {
    const folder = (path: string) => mkdirSync(join(its.home.directory, path), { recursive: true });
    const only = (path: string) => its.home.files().find((file) => file.path.includes(path))?.path ?? '';

    it('makes the command exit with 2 if its path is relative to a deleted folder', async () => {
      const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"';
      const args = ['-c', script, process.execPath, cliMain, ...placeArgs(somePhone()), '--state', 'relative'];
      const options = { env: its.home.processEnvironment, cwd: its.home.directory };
      const { code, stderr } = await promisify(execFile)('sh', args, options).catch((error) => error);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.contain('--state: use an absolute path.');
    });

    it("that can't be read is reported, but doesn't block a call with its own request ID", async () => {
      await its.home.run(placeArgs(somePhone()));
      const last = only('/last/');
      rmSync(join(its.home.directory, last));
      folder(last);
      folder('.config/callkey/campaigns.json');
      const { code, stderr } = await its.home.run(placeArgs(somePhone(), '--request-id', 'unreadable'));
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain("cancel --last won't find this call: it is a folder.");
      const named = await its.home.run(['call', 'cancel', 'reminders', '--last']);
      expect(named.code).to.equal(1);
      expect(named.stderr).to.match(/Couldn't read .*campaigns\.json: it is a folder\./);
    });
  });

  describe('a full disk', () => {
    it("doesn't lose a call if the output can't be written: the command exits with 1 and says what was placed", async () => {
      const phone = somePhone();
      const { code, stderr } = await its.home.start(placeArgs(phone, '--json'), { stdout: '/dev/full' }).ended;
      expect(code).to.equal(1);
      const [{ error } = { error: undefined }] = ndjson(stderr);
      expect(error).to.include({ code: 'results-lost' });
      const [call] = await callsTo(phone);
      expect(stderr)
        .to.match(/the disk is full/)
        .and.contain(String(call?.['contact_id']))
        .and.not.match(/^ {4}at /m);
    });

    it("doesn't send a line if only a part of its entry fits into the journal (needs root to mount a disk)", async function () {
      const state = mountDisk(this, 'size=64k');
      try {
        const path = join(its.home.directory, 'calls.csv');
        writeFileSync(path, `phone\n${somePhone()}\n`);
        const place = () => its.home.run(['call', 'place', its.tenants.campaign.id, '--from', path, '--state', state]);
        its.network.faults.push({ status: 401 });
        expect((await place()).code).to.equal(3);
        const [journal = ''] = readdirSync(join(state, 'runs')).map((name) => join(state, 'runs', name));
        // Leaves a few bytes in the last page of memory that the journal has.
        appendFileSync(journal, '\n'.repeat(4_096 - (statSync(journal).size % 4_096) - 5));
        const copy = join(state, 'room-for-the-copy-of-the-file');
        writeFileSync(copy, Buffer.alloc(4_096));
        try {
          writeFileSync(join(state, 'ballast'), Buffer.alloc(128 * 1024));
        } catch {
          // The disk is full.
        }
        rmSync(copy);
        its.network.seen.length = 0;
        const { code, stderr } = await place();
        expect([code, its.network.seen.length], stderr).to.deep.equal([1, 0]);
        expect(stderr).to.match(/Couldn't write the journal .*the disk is full/);
      } finally {
        execFileSync('umount', ['-l', state]);
      }
    });
  });
});
