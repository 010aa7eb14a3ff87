import { join } from 'node:path';
import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { callFiles, keyRejected, sharedIntegrator } from '../../support/integrator.ts';

describe('callkey call place --from', () => {
  const its = sharedIntegrator();
  const { phone, createCsv, file, place, calls, onceEach, listRuns } = callFiles(its);

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
