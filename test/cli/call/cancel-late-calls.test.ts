import { expect } from 'chai';
import { ndjson, untilAborted } from '../../support/cli.ts';
import { ask } from '../../support/http.ts';
import { callFiles, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call cancel, for many calls', () => {
  const its = sharedIntegrator();
  const { phone, phones, savePhones, placeHere, started, states, cancelRunHere, allCancelled } = callFiles(its);
  const statuses = (stdout: string) => ndjson(stdout).map(({ status }) => status);

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
