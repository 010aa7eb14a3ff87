import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CliHome, type CliProcess, ndjson } from '../../support/cli.ts';
import { callFiles, sharedIntegrator } from '../../support/integrator.ts';

describe('callkey call place --from, which places each call exactly once,', () => {
  const its = sharedIntegrator();
  const { phone, phones, createCsv, file, place, placeHere, started, calls, states, onceEach, listRuns, cancelRunHere, allCancelled } =
    callFiles(its);

  it('survives lost and refused responses throughout the run', async () => {
    // Fewer faults than each line has attempts.
    for (let n = 0; n < 5; n++) its.network.faults.push('pass', 'lose the response', 'pass', 'pass', { status: 503 }, 'pass');
    const { code, stdout } = await placeHere(file(createCsv(60)));
    expect(code).to.equal(0);
    expect(ndjson(stdout)).to.have.length(60);
    expect(await calls()).to.deep.equal(onceEach(60));
  });

  it('survives a missing or truncated journal', async () => {
    const path = file(createCsv(30));
    its.network.faults.push(...Array.from({ length: 10 }, () => 'pass' as const), { status: 401 });
    await place(path);
    const runs = join(its.home.directory, '.local/state/callkey/runs');
    for (const name of readdirSync(runs)) appendFileSync(join(runs, name), '{"line":2,"conta');
    its.network.faults.push('pass', { status: 401 });
    await place(path);
    const { code } = await new CliHome(its.home.environment).run(['call', 'place', its.tenants.campaign.id, '--from', path]);
    expect(code).to.equal(0);
    expect((await place(path)).code).to.equal(0);
    expect(await calls()).to.deep.equal(onceEach(30));
  });

  it('survives two commands that place a file at the same time, and all of its calls can be cancelled', async () => {
    const path = file(createCsv(60));
    const both = await Promise.all([placeHere(path), placeHere(path)]);
    expect(both.map(({ code }) => code)).to.deep.equal([0, 0]);
    expect(await calls()).to.deep.equal(onceEach(60));
    expect(await listRuns()).to.have.length(1);
    expect((await cancelRunHere()).code).to.equal(0);
    expect(await states(phones(60))).to.deep.equal(allCancelled(60));
  });

  it("doesn't place any calls if the reader of its results goes away while the file is checked", async () => {
    const wrong = Array.from({ length: 5_000 }, () => '12,');
    const run = started(file(['phone,name', ...wrong, `${phone(1)},Ada`].join('\n')), '--skip-invalid');
    await run.printed(/"invalid"/);
    run.child.stdout?.destroy();
    expect(await run.ended).to.include({ code: 1 });
    expect(await calls()).to.deep.equal([]);
  });

  it('succeeds if the reader of its results goes away after the last line was placed', async () => {
    const run = started(file(createCsv(1)));
    run.child.stdout?.destroy();
    expect(await run.ended).to.include({ code: 0 });
    expect(await calls()).to.deep.equal(onceEach(1));
  });

  it('survives a series of faults, and after each fault every acknowledged call is in the database', async () => {
    const path = file(createCsv(120));
    const acknowledged = new Map<unknown, unknown>();
    const account = async (stdout: string) => {
      for (const { status, requestId, contactId } of ndjson(stdout.slice(0, stdout.lastIndexOf('\n') + 1)))
        if (status === 'placed') acknowledged.set(requestId, contactId);
      const rows: { request_id: string; contact_id: string }[] = await its.direct.storage.database
        .read('calls')
        .where('phone', 'like', `${phone(0).slice(0, -5)}%`);
      const storedCalls = new Map(rows.map(({ request_id, contact_id }) => [request_id, contact_id]));
      expect(storedCalls.size).to.equal(rows.length);
      for (const [requestId, contactId] of acknowledged) expect(storedCalls.get(String(requestId))).to.equal(contactId);
    };
    const full = await its.home.start(['call', 'place', its.tenants.campaign.id, '--from', path], { stdout: '/dev/full' }).ended;
    expect(full.code).to.equal(1);
    expect(full.stderr)
      .to.match(
        /^error: Couldn't write the results: the disk is full\. Stopped\. [\d,]+ of 120 lines placed\. To continue, run callkey call resume/,
      )
      .and.not.match(/^ {4}at /m);
    expect((await calls()).length).to.be.within(1, 50);
    const faults: { fault: (run: CliProcess) => unknown; ended: object; says: RegExp }[] = [
      { fault: ({ child }) => child.kill('SIGKILL'), ended: { signal: 'SIGKILL' }, says: /^Resuming: / },
      { fault: ({ child }) => child.kill('SIGTERM'), ended: { signal: 'SIGTERM' }, says: /placed\..*callkey call resume/s },
      {
        fault: ({ child }) => child.stdout?.destroy(),
        ended: { code: 1 },
        says: /The output pipe was closed.*of 120 lines placed\. To continue, run callkey call resume.*> results\.ndjson/,
      },
      { fault: () => its.network.faults.push({ status: 401 }), ended: { code: 3 }, says: /callkey call resume/ },
    ];
    for (const { fault, ended, says } of faults) {
      // Slow enough that lines are left, even if a busy machine is late with the fault.
      const run = started(path, '--rate', '10');
      await run.printed(/"replayed":false/);
      fault(run);
      const result = await run.ended;
      expect(result).to.include(ended);
      expect(result.stderr).to.match(says);
      await account(result.stdout);
      // Unless it's killed, a command finishes its requests, and reports each call that it has placed.
      if (result.signal === 'SIGTERM') expect(await calls()).to.deep.equal(onceEach(acknowledged.size));
    }
    const last = await its.home.run(['call', 'resume']);
    expect(last.code, last.stderr).to.equal(0);
    await account(last.stdout);
    expect(acknowledged.size).to.equal(120);
    expect(await calls()).to.deep.equal(onceEach(120));
  });
});
