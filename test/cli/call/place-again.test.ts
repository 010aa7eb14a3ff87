import { renameSync } from 'node:fs';
import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { callFiles, keyRejected, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call place --from, for lines that were already placed', () => {
  const its = sharedIntegrator();
  const { phone, createCsv, file, place, placeHere, calls, onceEach, listRuns } = callFiles(its);

  it('reports that all calls of a file were already placed, and places them again only with --again', async () => {
    const path = file(createCsv(10));
    await place(path);
    its.network.seen.length = 0;
    const second = await place(path);
    expect(second.code).to.equal(0);
    expect(second.stderr).to.match(/was already placed in full.*--again/);
    expect(ndjson(second.stdout).every(({ status, replayed }) => status === 'placed' && replayed === true)).to.equal(true);
    expect(its.network.seen).to.deep.equal([]);

    expect((await place(path, '--again')).code).to.equal(0);
    expect(await calls()).to.deep.equal(Array.from({ length: 10 }, () => 2));
  });

  it('says to repeat the command without --again if the results of an --again run were lost', async () => {
    const path = file(createCsv(2));
    // Both requests are under way before the first result can't be written.
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    its.network.faults.push(first.promise, second.promise);
    const args = ['call', 'place', its.tenants.campaign.id, '--from', path, '--again'];
    const { ended } = its.home.start(args, { stdout: '/dev/full' });
    await until(() => its.network.seen.length === 2);
    first.resolve();
    await until(async () => (await calls()).length === 1);
    second.resolve();
    const { stderr } = await ended;
    expect(stderr).to.contain("To get the results, run the same command without --again. It won't place a call twice.");
    expect(ndjson((await place(path)).stdout)).to.have.length(2);
    expect(await calls()).to.deep.equal(onceEach(2));
  });

  describe('after --again', () => {
    it('still refuses lines that an edited file had placed before', async () => {
      its.network.faults.push('pass', keyRejected);
      await place(file(createCsv(2)), '--concurrency', '1');
      expect((await place(file(createCsv(2, 10)), '--again')).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).stderr).to.contain('Nothing to resume');
      const { code, stderr } = await place(file(createCsv(1), 'other.csv'));
      expect([code, stderr.includes('that was placed before: line 2')], stderr).to.deep.equal([5, true]);
      expect(await calls()).to.deep.equal(onceEach(3));
    });

    it('keeps the run of a file that is still being placed, so that all of its calls can be cancelled', async () => {
      const held = Promise.withResolvers<void>();
      its.network.faults.push(held.promise);
      const path = file(createCsv(3));
      const placing = placeHere(path, ['--concurrency', '1']);
      await until(() => its.network.seen.length === 1);
      renameSync(file(createCsv(1, 10), 'new.csv'), path);
      expect((await place(path, '--again')).code).to.equal(0);
      held.resolve();
      expect((await placing).code).to.equal(0);
      const first = (await listRuns()).find(({ calls }: { calls: number }) => calls === 3);
      const { stdout } = await its.home.run(['call', 'cancel', '--run', first?.run ?? 'none']);
      expect(ndjson(stdout).map(({ status }) => status)).to.deep.equal(['cancelled', 'cancelled', 'cancelled']);
    });

    it('keeps the run of a file that was placed with other options', async () => {
      const path = file(`phone,notBefore\n${phone(0)},2099-07-01 09:00\n`);
      for (const options of [['Europe/Berlin'], ['Europe/Dublin', '--again']])
        expect((await place(path, '--zone', ...options)).code).to.equal(0);
      expect(await listRuns()).to.have.length(2);
    });
  });

  describe('if a line was skipped', () => {
    const body = JSON.stringify({ type: 'urn:callkey:problems#do-not-call', title: 'x', status: 403, detail: 'On a list.' });
    const skipSecond = () => its.network.faults.push('pass', { status: 403, body });

    it('says how to try only the skipped line again', async () => {
      const path = file(createCsv(3));
      for (const [more, advice] of [
        [[], 'To try them again, run the same command again.'],
        [['--again'], 'To try them again, run the same command without --again.'],
      ] as const) {
        skipSecond();
        expect((await place(path, '--concurrency', '1', ...more)).stderr).to.contain(advice);
      }
      expect((await place(path)).code).to.equal(0);
      expect((await calls()).toSorted()).to.deep.equal([1, 2, 2]);
    });

    it('says that there is nothing to resume, but continues the run if it is named, and only that one if a stopped --again run has the same file', async () => {
      const path = file(createCsv(3));
      skipSecond();
      expect((await place(path, '--concurrency', '1')).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).stderr).to.contain('Nothing to resume');
      const { stdout } = await its.home.run(['call', 'runs']);
      expect(stdout).to.contain('2 of 3 placed, finished');
      const name = stdout.slice(0, 8);
      its.network.faults.push('pass', keyRejected);
      await place(path, '--again', '--concurrency', '1');
      expect((await its.home.run(['call', 'resume', name])).code).to.equal(0);
      expect((await calls()).toSorted()).to.deep.equal([1, 1, 2]);
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal([2, 2, 2]);
    });
  });
});
