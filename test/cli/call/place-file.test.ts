import { join } from 'node:path';
import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { addNumbers } from '../../../core/domain/protection/do-not-call.ts';
import { ndjson } from '../../support/cli.ts';
import { callFiles, keyRejected, sharedIntegrator } from '../../support/integrator.ts';

describe('callkey call place --from', () => {
  const its = sharedIntegrator();
  const { phone, createCsv, file, place, calls, onceEach, own, listRuns } = callFiles(its);

  describe('reading', () => {
    it("says that it's reading from the terminal, and how to finish", async function () {
      // Ctrl-D ends the input.
      const { code, text } = await its.home.onTerminal(this, ['call', 'place', its.tenants.campaign.id, '--from', '-'], '\x04');
      expect(code, text).to.equal(2);
      expect(text).to.contain('Press Ctrl-D to finish.');
    });

    it('reports every invalid line with its number and the reason, and sends nothing', async () => {
      const text = [
        'phone,name,requestId',
        `${phone(1)},Ada,a`,
        '12,Bob,b',
        `${phone(2)},"Two\nlines",c`,
        `${phone(3)},Cy,d,e`,
        `${phone(4)},,a`,
      ];
      const { code, stdout, stderr } = await place(file(text.join('\n')));
      expect(code).to.equal(2);
      expect(stderr.split('\n').filter((line) => line.startsWith('line '))).to.deep.equal([
        'line 3: contact.phone: Must be a phone number in E.164 format, such as +493012345678.',
        'line 4: contact.name: Must not contain control characters.',
        'line 6: This line has 4 cells, but the header has 3.',
        'line 7: requestId: Line 2 has the same request ID.',
      ]);
      expect(stderr).to.match(/4 of 5 lines .* Nothing was sent.*--skip-invalid/);
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.deep.equal([3, 4, 6, 7].map((line) => [line, 'invalid']));
      expect(its.network.seen).to.deep.equal([]);
    });

    it('resumes a file with its original reading options, and refuses other options', async () => {
      its.network.faults.push('pass', { status: 401 });
      const path = file(`Mobile;Ort\n030 ${phone(1).slice(5)};Köln\n030 ${phone(2).slice(5)};Köln\n`);
      await place(path, '--columns', 'phone=Mobile', '--country', 'DE', '--concurrency', '1');
      const otherwise = await place(path, '--columns', 'phone=Mobile', '--country', 'AT');
      expect([otherwise.code, otherwise.stderr]).to.satisfy(([code, text]: [number, string]) => code === 5 && text.includes('--columns'));
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(2));
    });

    it("doesn't use more memory for a long file than for a short file", async () => {
      const variables = ['a', 'b', 'c', 'd', 'e'];
      const notes = variables.map(() => 'x'.repeat(1_000)).join();
      const lines = Array.from({ length: 10_000 }, (_, n) => `+4930${10_000_000 + n},own-${n},${notes}`);
      const path = file([`phone,requestId,${variables.map((name) => `var.${name}`).join()}`, ...lines].join('\n'));
      const args = ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run'];
      // The lines would take 50 MB, and the command itself needs about 20 MB. With less memory, it would mostly collect garbage.
      const { code, stderr } = await its.home.start(args, { environment: { NODE_OPTIONS: '--max-old-space-size=60' }, stdout: '/dev/null' })
        .ended;
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('Would place 10,000 of 10,000 lines');
    });

    it("exits with 2 if the file doesn't exist or the rate is invalid", async () => {
      expect((await place(join(its.home.directory, 'none.csv'))).code).to.equal(2);
      for (const option of ['--concurrency', '--rate']) expect((await place(file(createCsv(1)), option, '0')).code).to.equal(2);
      // With two calls a month apart, the delay would be too long for a Node.js timer, which would then fire immediately.
      expect((await place(file(createCsv(1)), '--rate', '0.0000003')).code).to.equal(2);
    });
  });

  describe('placing', () => {
    it('places two identical lines as two calls', async () => {
      await place(file(`phone\n${phone(1)}\n${phone(1)}\n`));
      expect(await calls()).to.deep.equal([2]);
    });

    it('reports a line that the core rejects, continues with the next line, and retries only the rejected line on the next run', async () => {
      await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone(90), '--request-id', `taken-${own()}`]);
      const path = file(`phone,requestId\n${phone(1)},x-${own()}\n${phone(2)},taken-${own()}\n${phone(3)},y-${own()}\n`);
      const { code, stdout, stderr } = await place(path);
      expect(code).to.equal(5);
      expect(ndjson(stdout).find(({ line }) => line === 3)).to.include({ status: 'refused', code: 'request-id-conflict' });
      expect(stderr).to.match(/line 3: rejected/);
      its.network.seen.length = 0;
      expect((await place(path)).code).to.equal(5);
      expect(its.network.seen).to.have.length(1);
    });

    it('skips numbers on the do-not-call list, counts them separately, and succeeds', async () => {
      const entry = { accountId: its.tenants.account.id, reason: 'asked', timeZone: 'UTC' } as const;
      await addNumbers(its.direct.ports, operator, { ...entry, phones: [phone(2)] });
      const { code, stdout, stderr } = await place(file(createCsv(3, 1)));
      expect(code, stderr).to.equal(0);
      const results = ndjson(stdout).toSorted((a, b) => Number(a['line']) - Number(b['line']));
      expect(results.map(({ status }) => status)).to.deep.equal(['placed', 'skipped', 'placed']);
      expect(results[1]).to.include({ line: 3, code: 'do-not-call' });
      expect(stderr).to.contain('Skipped 1 line: 1 do-not-call.');
    });

    it("stops immediately with 4 if the campaign is refused, even if other lines wait for a retry, and continues once it's accepted", async () => {
      const path = file(createCsv(20));
      // These waits would take longer than this test may.
      const busy = { status: 503, headers: { 'Retry-After': '60' } };
      its.network.faults.push('pass', busy, busy, busy, { status: 403 });
      const stopped = await place(path, '--concurrency', '4');
      expect(stopped.code).to.equal(4);
      expect(stopped.stderr).to.match(/callkey call resume/);
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(20));
    });

    it("doesn't store phone numbers or names", async () => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(createCsv(5)));
      const kept = its.home.files().filter(({ path }) => path !== 'contacts.csv');
      expect(kept.map(({ path }) => path).join()).to.contain('runs/');
      // The space after the name can't be in a folder's random name.
      for (const { path, text } of kept)
        expect(text, path).not.to.contain(phone(1).slice(4)).and.not.contain('Ada ').and.not.contain(its.key);
    });

    it('makes cancel --last fail, because a file contains several calls', async () => {
      await place(file(createCsv(2)));
      expect((await its.home.run(['call', 'cancel', its.tenants.campaign.id, '--last'])).code).to.equal(2);
    });
  });

  describe('with --dry-run', () => {
    it("sends nothing, doesn't need a key, and reports which lines it would place and skip", async () => {
      const path = file(`phone,name\n${phone(1)},Ada\n12,Bob\n${phone(2)},\n`);
      const { code, stdout, stderr } = await its.home.run(
        ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run', '--skip-invalid'],
        { environment: { CALLKEY_API_KEY: '' } },
      );
      expect(code, stderr).to.equal(0);
      const results = ndjson(stdout);
      expect(results.map(({ line, status, contact }) => [line, status, contact])).to.deep.equal([
        [3, 'invalid', undefined],
        [2, 'would-place', { phone: phone(1), name: 'Ada' }],
        [4, 'would-place', { phone: phone(2) }],
      ]);
      expect(stderr).to.match(/Would place 2 of 3 lines .*Nothing was sent/);
      expect((await place(path, '--dry-run')).code).to.equal(2);
      expect(its.network.seen).to.deep.equal([]);

      const placed = ndjson((await place(path, '--skip-invalid')).stdout).filter(({ status }) => status === 'placed');
      expect(new Set(placed.map(({ requestId }) => requestId))).to.deep.equal(
        new Set(results.flatMap(({ requestId }) => (requestId ? [requestId] : []))),
      );
    });

    it('reports which lines were already placed, and leaves the run unchanged', async () => {
      const path = file(createCsv(3));
      its.network.faults.push('pass', { status: 401 });
      await place(path, '--concurrency', '1');
      const kept = its.home.files();
      const { code, stdout, stderr } = await place(path, '--dry-run');
      expect([code, ndjson(stdout).map(({ status }) => status)]).to.deep.equal([0, ['placed-before', 'would-place', 'would-place']]);
      expect(stderr).to.match(/Would place 2 of 3 lines .*Skipped because already placed: 1\./);
      expect(its.home.files()).to.deep.equal(kept);
    });
  });

  describe('runs', () => {
    const stopped = async (name: string, from: number, ...more: string[]) => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(createCsv(5, from), name), '--concurrency', '1', ...more);
    };

    it('are listed newest first, each with its number of placed calls', async () => {
      expect((await its.home.run(['call', 'runs'])).stdout).to.contain('No files have been placed');
      await place(file(createCsv(3), 'whole.csv'));
      await stopped('part.csv', 50);
      const runs: { run: string; path: string; calls: number; placed: number; completedAt: string | null }[] = await listRuns();
      expect(
        runs.map(({ path, calls, placed, completedAt }) => [path.split('/').at(-1), calls, placed, completedAt === null]),
      ).to.deep.equal([
        ['part.csv', 5, 1, true],
        ['whole.csv', 3, 3, false],
      ]);
      expect((await its.home.run(['call', 'runs'])).stdout)
        .to.contain(runs[0]?.run)
        .and.contain('1 of 5 placed');
    });

    it("can't be resumed after they're discarded, and their calls aren't placed again", async () => {
      await stopped('part.csv', 0);
      const [{ run }] = await listRuns();
      const { code, stdout } = await its.home.run(['call', 'runs', 'discard', run]);
      expect([code, stdout]).to.satisfy(([code, text]: [number, string]) => code === 0 && text.includes("aren't cancelled"));
      expect((await its.home.run(['call', 'resume'])).stderr).to.contain('Nothing to resume');
      expect((await place(join(its.home.directory, 'part.csv'))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
      expect((await its.home.run(['call', 'runs', 'discard', 'none'])).code).to.equal(6);
    });

    it('that were started with --again can be discarded, with a warning that their contacts can then be called again', async () => {
      await stopped('part.csv', 0, '--again');
      const [{ run }] = await listRuns();
      expect((await its.home.run(['call', 'runs', 'discard', run])).stdout).to.match(/with --again, those contacts will be called again/);
    });
  });

  it('suggests commands with the state folder and the profile that the user has specified', async () => {
    const state = ['--state', join(its.home.directory, 'state')];
    for (const name of ['one.csv', 'two.csv']) {
      its.network.faults.push('pass', keyRejected);
      await place(file(createCsv(2, name === 'one.csv' ? 0 : 50), name), '--concurrency', '1', ...state);
    }
    const staging = ['--profile', 'staging'];
    for (const [args, options, ...suggestions] of [
      [['call', 'resume'], state, 'call resume RUN'],
      [['call', 'runs', 'discard', 'none'], state, 'call runs'],
      [['call', 'cancel', its.tenants.campaign.id, '--last'], state, 'call runs', 'call cancel --run RUN'],
      [['campaign', 'forget', 'none'], staging, 'campaign list'],
      [['campaign', 'list'], staging, 'campaign alias NAME ID'],
    ] as const) {
      const { stdout, stderr } = await its.home.run([...args, ...options]);
      for (const suggestion of suggestions) expect(stdout + stderr).to.contain(`callkey ${suggestion} ${options.join(' ')}`);
    }
  });

  describe('and then callkey call resume', () => {
    it('resumes a run only at the server where it started', async () => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(createCsv(5)), '--concurrency', '1');
      expect((await its.home.run(['call', 'resume', '--server', its.core.url])).code).to.equal(2);
      expect((await its.home.run(['call', 'resume'], { environment: { CALLKEY_SERVER: its.core.url } })).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
    });

    it("doesn't repeat the warnings about the file, but reports its invalid lines to programs", async () => {
      its.network.faults.push('pass', keyRejected);
      const path = file(`phone,name\n${phone(1)},Ada\n${phone(1)},Bob\n12,\n`);
      const { stderr: warned } = await place(path, '--columns', 'phone=phone', '--skip-invalid', '--concurrency', '1');
      expect(warned).to.match(/Ignored columns: name\..*same phone number as line 2.*line 4: .*1 of 3 lines in .* is invalid\. Skipping/s);
      expect(warned).to.contain('1 line with the same phone number as an earlier line.');
      const { code, stdout, stderr } = await its.home.run(['call', 'resume']);
      expect([code, stderr]).to.deep.equal([0, 'Resuming: 1 of 2 lines already placed.\n2 of 2 lines placed.\n']);
      expect(ndjson(stdout).map(({ status }) => status)).to.deep.equal(['invalid', 'placed', 'placed']);
    });

    it("asks which run to resume if several were stopped, and accepts the run's name", async () => {
      for (const name of ['one.csv', 'two.csv']) {
        its.network.faults.push('pass', { status: 401 });
        await place(file(createCsv(5, name === 'one.csv' ? 0 : 50), name), '--concurrency', '1');
      }
      const { code, stderr } = await its.home.run(['call', 'resume']);
      expect(code).to.equal(2);
      const name = /^(\w{8}) {2}.*one\.csv/m.exec(stderr)?.[1] ?? '';
      expect((await its.home.run(['call', 'resume', name])).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(10));
      expect((await its.home.run(['call', 'resume', name])).code).to.equal(6);
    });

    it('says to place the same standard input again if the run read from it', async () => {
      its.network.faults.push('pass', { status: 401 });
      const input = createCsv(5);
      const args = ['call', 'place', its.tenants.campaign.id, '--from', '-'];
      await its.home.run(args, { input });
      const { code, stderr } = await its.home.run(['call', 'resume']);
      expect(code).to.equal(2);
      expect(stderr).to.contain('--from -');
      expect((await its.home.run(args, { input })).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
    });
  });
});
