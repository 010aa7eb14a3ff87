import { renameSync } from 'node:fs';
import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { callFiles, keyRejected, onDoNotCallList, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call place --from, for lines that were already placed', () => {
  const its = sharedIntegrator();
  const { phone, createCsv, file, place, placeHere, calls, states, onceEach, listRuns } = callFiles(its);

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
    const skipSecond = () => its.network.faults.push('pass', onDoNotCallList);

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

  it('refuses a partly placed file that has changed since, unless --again is given', async () => {
    const path = file(createCsv(10));
    its.network.faults.push('pass', 'pass', { status: 401 });
    await place(path, '--concurrency', '1');
    its.network.seen.length = 0;
    file(createCsv(11));
    for (const args of [
      ['call', 'place', its.tenants.campaign.id, '--from', path],
      ['call', 'resume'],
    ]) {
      const { code, stderr } = await its.home.run(args);
      expect(code).to.equal(5);
      expect(stderr).to.match(/has changed since/);
    }
    expect(its.network.seen).to.deep.equal([]);
    expect((await place(path, '--again')).code).to.equal(0);
    expect((await its.home.run(['call', 'resume'])).stderr).to.match(/Nothing to resume/);
  });

  it('refuses an edited file if a proxy rejected a line that an earlier attempt may have placed', async () => {
    its.network.faults.push('pass', 'lose the response', { status: 409 });
    await placeHere(file(createCsv(2)), ['--concurrency', '1']);
    its.network.seen.length = 0;
    const { code, stderr } = await place(file(`phone,name\n${phone(9)},Eve\n${phone(1)},Ada 1`));
    expect(code, stderr).to.equal(5);
    expect(its.network.seen).to.deep.equal([]);
    file(createCsv(2));
    const resumed = await its.home.run(['call', 'resume']);
    expect([resumed.code, ndjson(resumed.stdout).length], resumed.stderr).to.deep.equal([0, 2]);
    expect(await calls()).to.deep.equal(onceEach(2));
  });

  it('refuses a placed file that was edited, even if its lines were moved, but accepts a file with only the new lines', async () => {
    const path = file(createCsv(3));
    await place(path);
    its.network.seen.length = 0;
    file(`var.x,name,phone\n,Eve,${phone(9)}\n,Ada 2,${phone(2)}\n`);
    for (const more of [[], ['--dry-run'], ['--skip-invalid']]) {
      const { code, stderr } = await place(path, ...more);
      expect(code, stderr).to.equal(5);
      expect(stderr).to.match(/has 1 line that was placed before: line 3 \(line 4 of .*\)\. Placing it again.*separate file.*--again/);
    }
    expect(its.network.seen).to.deep.equal([]);
    expect((await place(file(`phone,name\n${phone(9)},Eve\n`))).code).to.equal(0);
    expect(await calls()).to.deep.equal(onceEach(4));
    file(createCsv(3, 1));
    expect((await place(path, '--again')).code).to.equal(0);
    expect((await calls()).toSorted()).to.deep.equal([1, 1, 1, 2, 2]);
  });

  it('refuses lines that were already placed from any file, and sends nothing', async () => {
    await place(file(createCsv(3)));
    its.network.seen.length = 0;
    const extended = `${createCsv(3).trimEnd()}\n${phone(9)},Eve\n`;
    const others = [
      file(extended, 'copy.csv'),
      file(createCsv(2).replace('Ada 1', 'Someone else'), 'renamed.csv'),
      file(Buffer.from(`\ufeff${extended}`, 'utf16le'), 'unicode.csv'),
      file(extended.replaceAll(',', ';'), 'semicolons.csv'),
    ];
    for (const path of others) {
      const { code, stderr } = await place(path);
      expect(code, stderr).to.equal(5);
      expect(stderr).to.match(/placed before: line \d \(line \d of .*contacts\.csv/);
    }
    const piped = ['call', 'place', its.tenants.campaign.id, '--from', '-'];
    const spelled = { CALLKEY_SERVER: `${its.network.url.replace('http', 'HTTP')}/` };
    for (const environment of [{}, spelled]) {
      const { code, stderr } = await its.home.run(piped, { input: extended, environment });
      expect(code, stderr).to.equal(5);
      expect(stderr).to.match(/has 3 lines that were placed before/);
    }
    expect(its.network.seen).to.deep.equal([]);
    expect(await calls()).to.deep.equal(onceEach(3));
  });

  it('refuses lines that were placed with another address of the same server, but not the same file, whose lines the server recognizes', async () => {
    const environment = { CALLKEY_SERVER: its.network.url.replace('127.0.0.1', 'localhost') };
    const placeThere = (path: string) => its.home.run(['call', 'place', its.tenants.campaign.id, '--from', path], { environment });
    const path = file(createCsv(2));
    await place(path);
    expect((await placeThere(file(createCsv(3), 'extended.csv'))).code).to.equal(5);
    const { code, stdout, stderr } = await placeThere(path);
    expect([code, ndjson(stdout).map(({ replayed }) => replayed)], stderr).to.deep.equal([0, [true, true]]);
    expect(await calls()).to.deep.equal(onceEach(2));
  });

  it('refuses to resume a file if its remaining lines have been placed from another file since', async () => {
    const path = file(createCsv(3));
    its.network.faults.push('pass', keyRejected);
    await place(path, '--concurrency', '1');
    expect((await place(file(createCsv(1, 1), 'rest.csv'))).code).to.equal(0);
    its.network.seen.length = 0;
    const { code, stderr } = await its.home.run(['call', 'resume']);
    expect(code, stderr).to.equal(5);
    expect(its.network.seen, stderr).to.deep.equal([]);
    expect(stderr).to.match(/line 3 \(line 2 of .*rest\.csv/);
  });

  describe('if a command stopped before it received a response', () => {
    const placeInPart = async (answered: number) => {
      its.network.faults.push(...Array.from({ length: answered }, () => 'pass' as const), 'lose the response', keyRejected);
      await placeHere(file(createCsv(3)), ['--concurrency', '1']);
      expect(await calls()).to.have.length(answered + 1);
      its.network.seen.length = 0;
    };

    it('refuses a file that contains the line, and accepts one with lines that were never sent', async () => {
      await placeInPart(1);
      const { code, stderr } = await place(file(createCsv(2, 1), 'rest.csv'));
      expect(code, stderr).to.equal(5);
      expect(stderr).to.match(
        /has 1 line that was, or may have been, placed before: line 2 \(line 3 of .*contacts\.csv, .*, no response\)/,
      );
      expect(its.network.seen).to.deep.equal([]);
      expect((await place(file(createCsv(1, 2), 'rest.csv'))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(3));
    });

    it('refuses the edited file, and keeps the run so that its call can be cancelled, even if the key is refused in between', async () => {
      await placeInPart(0);
      // A refusal of the key doesn't say that the earlier request placed nothing.
      its.network.faults.push(keyRejected);
      expect((await its.home.run(['call', 'resume', '--concurrency', '1'])).code).to.equal(3);
      const path = file(createCsv(4));
      const { code, stderr } = await place(path);
      expect(code, stderr).to.equal(5);
      expect(stderr).to.contain('has changed since 1 of its 3 lines was placed or sent without a response, so placing it now could call');
      const { stdout } = await its.home.run(['call', 'runs']);
      expect((await its.home.run(['call', 'cancel', '--run', stdout.slice(0, 8)])).stdout).to.contain('"cancelled"');
      expect((await place(path)).code).to.equal(0);
      expect(await states([phone(0)])).to.have.members(['cancelled', 'queued']);
    });
  });
});
