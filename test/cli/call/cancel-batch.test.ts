import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { untilAborted } from '../../support/clock.ts';
import { mountDisk } from '../../support/commands.ts';
import { ask } from '../../support/http.ts';
import { callFiles, keyRejected, onDoNotCallList, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call cancel, for many calls', () => {
  const its = sharedIntegrator();
  const {
    phone,
    phones,
    file,
    savePhones,
    place,
    placeHere,
    started,
    states,
    listRuns,
    newestRun,
    cancelRun,
    cancelRunHere,
    allCancelled,
  } = callFiles(its);
  const statuses = (stdout: string) => ndjson(stdout).map(({ status }) => status);

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

  it('cancels a run at the server where it was placed, even if another one is configured now', async () => {
    await place(savePhones(phones(1)));
    its.network.seen.length = 0;
    await its.home.run(['call', 'cancel', '--run', await newestRun()], { environment: { CALLKEY_SERVER: its.core.url } });
    expect(its.network.seen).to.have.length(1);
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
    its.network.faults.push('pass', onDoNotCallList);
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
    const { stderr } = await cancelRunHere(undefined, { isTTY: true });
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
  it('also cancels the calls whose responses a killed command never saw', async () => {
    const numbers = phones(40);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(...Array.from({ length: 10 }, () => 'pass' as const), held.promise, held.promise, 'lose the response');
    const placing = started(savePhones(numbers), '--concurrency', '4');
    await until(() => its.network.seen.length >= 20);
    placing.child.kill('SIGKILL');
    await placing.ended;
    held.resolve();
    // Every request that reached the network is placed, even if it got there just before the kill.
    const seen = () => new Set(its.network.seen.map(({ body }) => JSON.parse(body).contact.phone));
    await until(async () => (await states(numbers)).length === seen().size);
    const { code, stdout } = await cancelRunHere();
    expect(code).to.equal(0);
    const placed = (await states(numbers)).length;
    expect(await states(numbers)).to.deep.equal(allCancelled(placed));
    expect(statuses(stdout).filter((status) => status === 'cancelled')).to.have.length(placed);
  });

  for (const status of [404, 409]) {
    it(`doesn't believe a proxy's ${status}, and cancels the call when it's run again`, async () => {
      const numbers = phones(1);
      its.network.faults.push('lose the response', { status: 401 });
      await placeHere(savePhones(numbers));
      its.network.faults.push({ status, body: '<html>' });
      const { code, stdout, stderr } = await cancelRunHere();
      expect([code, stdout], stderr).to.deep.equal([status === 404 ? 6 : 5, '']);
      expect(stderr).to.contain("the response isn't from a Callkey core").and.contain('To continue, run callkey call cancel --run');
      expect((await cancelRunHere()).code).to.equal(0);
      expect(await states(numbers)).to.deep.equal(['cancelled']);
    });
  }

  it('stops a command that is still placing the run', async () => {
    const numbers = phones(40);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(...Array.from({ length: 10 }, () => 'pass' as const), held.promise);
    const placing = placeHere(savePhones(numbers), ['--concurrency', '1']);
    await until(() => its.network.seen.length === 11);
    // The line that is being sent arrives after the first attempt to cancel it.
    const cancelled = await cancelRunHere(async (milliseconds) => {
      if (milliseconds === 0) return;
      held.resolve();
      await placing;
    });
    const { code, stderr } = await placing;
    expect({ placed: code, cancelled: cancelled.code }).to.deep.equal({ placed: 5, cancelled: 0 });
    // The line that was about to be sent isn't reported, because it never reached the core.
    expect(statuses(cancelled.stdout)).to.deep.equal(allCancelled(11));
    expect(stderr).to.contain('was cancelled').and.not.contain('callkey call resume');
    expect(await states(numbers)).to.deep.equal(allCancelled(11));
  });

  it('keeps a command that waits for its next attempt from placing the call', async () => {
    const numbers = phones(1);
    its.network.faults.push({ status: 503 });
    let cancelled = '';
    const placed = await placeHere(savePhones(numbers), [], async (milliseconds, signal) => {
      cancelled = (await cancelRunHere()).stdout;
      await untilAborted(milliseconds, signal);
    });
    expect([placed.code, statuses(cancelled)], placed.stderr).to.deep.equal([5, ['not-placed']]);
    expect(await states(numbers)).to.deep.equal([]);
    // So the call can be placed from a corrected file.
    expect((await placeHere(savePhones([...numbers, phone(9)]))).code).to.equal(0);
  });

  it('cancels a call that an earlier command may have placed, even if another command was about to send it again', async () => {
    const numbers = phones(2);
    its.network.faults.push(onDoNotCallList, 'lose the response', keyRejected);
    await placeHere(savePhones(numbers), ['--concurrency', '1']);
    const cancel = ['call', 'cancel', '--run', await newestRun(), '--concurrency', '1'];
    // While the second line waits to be sent again, a command starts to cancel, but its key is refused.
    const resumed = await its.home.runHere(['call', 'resume', '--concurrency', '1', '--rate', '1'], async () => {
      its.network.faults.push(keyRejected);
      expect((await its.home.runHere(cancel)).code).to.equal(3);
    });
    expect(resumed.code, resumed.stderr).to.equal(5);
    await its.home.runHere(cancel);
    expect(await states(numbers)).to.deep.equal(allCancelled(2));
  });

  it("cancels the other calls that arrive after the cancelling command has ended if one of them can't be cancelled, and says so", async () => {
    const numbers = phones(2);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(...numbers.map(() => held.promise));
    const placing = placeHere(savePhones(numbers));
    await until(() => its.network.seen.length === 2);
    expect(statuses((await cancelRunHere()).stdout)).to.deep.equal(['not-placed', 'not-placed']);
    its.network.faults.push({ status: 409, body: '<html>' });
    held.resolve();
    const { stderr } = await placing;
    expect((await states(numbers)).toSorted(), stderr).to.deep.equal(['cancelled', 'queued']);
    expect(stderr).to.match(/while line \d was being sent, and callkey couldn't cancel its call: .* Run call cancel again\./);
  });

  it('reports a call as never placed only if it has not arrived after the longest attempt to send it', async () => {
    const numbers = phones(1);
    its.network.faults.push({ status: 401 });
    await placeHere(savePhones(numbers));
    const [late] = its.network.seen;
    let waited = 0;
    const { code, stdout } = await cancelRunHere(async (milliseconds) => {
      waited += milliseconds;
      // An attempt takes up to ten seconds.
      if (waited > 10_000) await ask('POST', its.core.url + late?.path, { key: its.key, raw: late?.body ?? '' });
    });
    expect([code, statuses(stdout)]).to.deep.equal([0, ['cancelled']]);
    expect(await states(numbers)).to.deep.equal(['cancelled']);
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
