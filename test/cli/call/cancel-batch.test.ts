import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { mountDisk } from '../../support/commands.ts';
import { callFiles, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call cancel, for many calls', () => {
  const its = sharedIntegrator();
  const { phones, file, savePhones, place, states, listRuns, newestRun, cancelRun, cancelRunHere, allCancelled } = callFiles(its);

  it('cancels every call of a run and reports each once, also when repeated, and keeps the run from being discarded', async () => {
    const numbers = phones(120);
    await place(savePhones(numbers));
    const { code, stdout, stderr } = await cancelRun();
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain('Cancelled 120 calls.');
    const results = ndjson(stdout);
    expect(results.map(({ status }) => status)).to.deep.equal(allCancelled(120));
    expect(new Set(results.map(({ line }) => line)).size).to.equal(120);
    expect(await states(numbers)).to.deep.equal(allCancelled(120));
    expect((await listRuns())[0]).to.include({ calls: 120, placed: 120, cancelled: 120 });
    expect((await its.home.run(['call', 'runs', 'discard', await newestRun()])).code).to.equal(5);
    its.network.seen.length = 0;
    const again = await cancelRun();
    expect(ndjson(again.stdout)).to.have.deep.members(results);
    expect(its.network.seen).to.deep.equal([]);
  });

  it('reports calls that were already dialed, and exits with 5', async () => {
    const numbers = phones(3);
    await place(savePhones(numbers));
    await its.direct.storage.database
      .write('calls')
      .where({ phone: numbers[1] ?? '' })
      .update({ state: 'dialing' });
    const { code, stdout, stderr } = await cancelRun('--json');
    expect(code).to.equal(5);
    expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '').error).to.include({ code: 'already-dialed' });
    expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.have.deep.members([
      [2, 'cancelled'],
      [3, 'too-late'],
      [4, 'cancelled'],
    ]);
  });

  it('keeps a cancelled file from being placed or resumed without --again, but not its corrected version', async () => {
    const [wrong = '', ...right] = phones(3);
    await place(savePhones([wrong, ...right]));
    await cancelRun();
    const same = await place(savePhones([wrong, ...right]));
    expect([same.code, same.stderr.includes('was cancelled')]).to.deep.equal([5, true]);
    expect((await its.home.run(['call', 'resume'])).stderr).to.contain('Nothing to resume.');
    expect((await place(savePhones(right))).code).to.equal(0);
    expect((await states(right)).toSorted()).to.deep.equal(['cancelled', 'cancelled', 'queued', 'queued']);
    expect((await place(savePhones([wrong, ...right]), '--again')).code).to.equal(0);
    expect((await states([wrong])).toSorted()).to.deep.equal(['cancelled', 'queued']);
  });

  it("doesn't cancel an earlier call that has the same request ID as a rejected line", async () => {
    const [other = '', ...numbers] = phones(3);
    await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', other, '--request-id', 'batch-taken']);
    expect((await place(file(`phone,requestId\n${numbers[0]},batch-own\n${numbers[1]},batch-taken\n`))).code).to.equal(5);
    const { code, stdout } = await cancelRunHere();
    expect([code, ndjson(stdout).map(({ line, status }) => [line, status])]).to.deep.equal([0, [[2, 'cancelled']]]);
    expect(await states([other])).to.deep.equal(['queued']);
  });

  it("reports a call that the core doesn't have once, even if the run is incomplete", async () => {
    const numbers = phones(2);
    const body = JSON.stringify({ type: 'urn:callkey:problems#do-not-call', title: 'x', status: 403, detail: 'On a list.' });
    its.network.faults.push('pass', { status: 403, body });
    await place(savePhones(numbers), '--concurrency', '1');
    await its.direct.storage.database.write('calls').whereIn('phone', numbers).delete();
    const { code, stdout, stderr } = await cancelRunHere();
    expect([code, ndjson(stdout).map(({ line, status }) => [line, status])], stderr).to.deep.equal([6, [[2, 'not-found']]]);
  });

  it("continues when it's run again after it was killed", async () => {
    const numbers = phones(60);
    await place(savePhones(numbers));
    const held = Promise.withResolvers<void>();
    its.network.seen.length = 0;
    its.network.faults.push(...Array.from({ length: 20 }, () => 'pass' as const), ...Array.from({ length: 8 }, () => held.promise));
    const cancelling = its.home.start(['call', 'cancel', '--run', await newestRun()]);
    await until(() => its.network.seen.length === 28);
    cancelling.child.kill('SIGKILL');
    await cancelling.ended;
    held.resolve();
    its.network.seen.length = 0;
    const { code, stdout } = await cancelRun();
    expect(code).to.equal(0);
    expect(ndjson(stdout)).to.have.length(60);
    expect(its.network.seen.length).to.be.within(40, 59);
    expect(await states(numbers)).to.deep.equal(allCancelled(60));
  });

  it('finishes the requests in flight after Ctrl-C, and says how to continue', async () => {
    await place(savePhones(phones(30)));
    const held = Promise.withResolvers<void>();
    its.network.seen.length = 0;
    its.network.faults.push(...Array.from({ length: 8 }, () => held.promise));
    const run = await newestRun();
    const cancelling = its.home.start(['call', 'cancel', '--run', run]);
    await until(() => its.network.seen.length === 8);
    cancelling.child.kill('SIGINT');
    await cancelling.printed(/Finishing/);
    held.resolve();
    const { signal, stdout, stderr } = await cancelling.ended;
    expect([signal, ndjson(stdout).length]).to.deep.equal(['SIGINT', 8]);
    expect(stderr).to.contain(`Cancelled 8 calls. To continue, run callkey call cancel --run ${run}.`);
  });

  it('shows on a terminal how many calls were cancelled, too late to cancel, and never placed', async () => {
    const numbers = phones(4);
    its.network.faults.push('pass', 'pass', { status: 401 });
    await place(savePhones(numbers), '--concurrency', '1');
    await its.direct.storage.database
      .write('calls')
      .where({ phone: numbers[0] ?? '' })
      .update({ state: 'dialing' });
    const { stderr } = await cancelRunHere(undefined, true);
    expect(stderr)
      .to.contain('line 2: too late')
      .and.contain('3 of 3')
      .and.contain('Cancelled 1 call; 1 too late, because they were already dialed, 1 never placed.');
    expect((await states(numbers)).toSorted()).to.deep.equal(['cancelled', 'dialing']);
  });

  it('cancels and reports every call even if two commands cancel the same run at the same time', async () => {
    const numbers = phones(40);
    await place(savePhones(numbers));
    const both = await Promise.all([cancelRunHere(), cancelRunHere()]);
    expect(both.map(({ code, stdout }) => [code, new Set(ndjson(stdout).map(({ line }) => line)).size])).to.deep.equal([
      [0, 40],
      [0, 40],
    ]);
    expect(await states(numbers)).to.deep.equal(allCancelled(40));
    expect((await listRuns())[0]).to.include({ cancelled: 40 });
  });

  it("cancels every call even if its journal can't be written, and says so (needs root to mount a disk)", async function () {
    const state = mountDisk(this, 'size=96k');
    try {
      const numbers = phones(60);
      expect((await place(savePhones(numbers), '--state', state)).code).to.equal(0);
      const { stdout } = await its.home.run(['call', 'runs', '--json', '--state', state]);
      const cancel = ['call', 'cancel', '--run', JSON.parse(stdout).runs[0].run, '--state', state];
      for (let size = 65_536; size >= 1; size /= 2) fillDisk(join(state, `ballast-${size}`), size);
      const { code, stdout: results, stderr } = await its.home.run(cancel);
      expect([code, ndjson(results).length], stderr).to.deep.equal([0, 60]);
      expect(stderr).to.match(
        /Couldn't write the journal .*the disk is full\. callkey will still cancel the calls.*\nCancelled 60 calls\./,
      );
      expect(await states(numbers)).to.deep.equal(allCancelled(60));
    } finally {
      execFileSync('umount', ['-l', state]);
    }
  });

  it('cancels every call even if no one reads its results, and says if they were lost', async () => {
    const numbers = phones(100);
    await place(savePhones(numbers));
    const cancel = ['call', 'cancel', '--run', await newestRun()];
    const closed = its.home.start(cancel);
    closed.child.stdout?.destroy();
    expect((await closed.ended).code).to.equal(0);
    expect(await states(numbers)).to.deep.equal(allCancelled(100));
    const { code, stderr } = await its.home.start(cancel, { stdout: '/dev/full' }).ended;
    expect([code, stderr]).to.deep.equal([
      1,
      "error: Couldn't write the results: the disk is full. Cancelled 100 calls. To get the results, run the same command again. It won't place a call twice.\n",
    ]);
  });

  it('requires exactly one of --last, --run, --from and an ID', async () => {
    for (const options of [
      ...[
        [],
        ['--last', '--run', 'x'],
        ['--last', '--contact', 'x'],
        ['--from', 'x', '--request-id', 'y'],
        ['--last', '--columns', 'phone=x'],
      ],
      ...[
        ['--contact', 'a b'],
        ['--request-id', 'ä'],
      ],
    ])
      expect((await its.home.run(['call', 'cancel', its.tenants.campaign.id, ...options])).code, String(options)).to.equal(2);
    expect((await its.home.run(['call', 'cancel', '--run', 'nothing'])).code).to.equal(6);
  });
});

/** Writes until the disk has no room for this many bytes. */
function fillDisk(path: string, size: number): void {
  try {
    for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
  } catch {
    // The disk is full.
  }
}
