import { expect } from 'chai';
import { ndjson } from '../../support/cli.ts';
import { callFiles, sharedIntegrator } from '../../support/integrator.ts';
import { until } from '../../support/until.ts';

describe('callkey call cancel, for many calls', () => {
  const its = sharedIntegrator();
  const { phone, phones, savePhones, place, started, states, newestRun, cancelRun, allCancelled } = callFiles(its);

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
    const { code, stdout } = await cancelRun();
    expect(code).to.equal(0);
    const placed = (await states(numbers)).length;
    expect(await states(numbers)).to.deep.equal(allCancelled(placed));
    expect(ndjson(stdout).filter(({ status }) => status === 'cancelled')).to.have.length(placed);
  });

  for (const status of [404, 409]) {
    it(`doesn't believe a proxy's ${status}, and cancels the call when it's run again`, async () => {
      const numbers = phones(1);
      its.network.faults.push('lose the response', { status: 401 });
      await place(savePhones(numbers));
      its.network.faults.push({ status, body: '<html>' });
      const { code, stdout, stderr } = await cancelRun();
      expect([code, stdout], stderr).to.deep.equal([status === 404 ? 6 : 5, '']);
      expect(stderr).to.contain("the response isn't from a Callkey core").and.contain('To continue, run callkey call cancel --run');
      expect((await cancelRun()).code).to.equal(0);
      expect(await states(numbers)).to.deep.equal(['cancelled']);
    });
  }

  it('stops a command that is still placing the run', async () => {
    const numbers = phones(40);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(...Array.from({ length: 10 }, () => 'pass' as const), held.promise);
    const placing = started(savePhones(numbers), '--concurrency', '1');
    await until(() => its.network.seen.length === 11);
    const cancelling = its.home.start(['call', 'cancel', '--run', await newestRun()]);
    await until(() => its.network.seen.some(({ method }) => method === 'DELETE'));
    held.resolve();
    const [placed, cancelled] = await Promise.all([placing.ended, cancelling.ended]);
    expect({ placed: placed.code, cancelled: cancelled.code }).to.deep.equal({ placed: 5, cancelled: 0 });
    // The line that was about to be sent isn't reported, because it never reached the core.
    expect(ndjson(cancelled.stdout).map(({ status }) => status)).to.deep.equal(allCancelled(11));
    expect(placed.stderr).to.contain('was cancelled').and.not.contain('callkey call resume');
    expect(await states(numbers)).to.deep.equal(allCancelled(11));
  });

  it('keeps a command that waits for its next attempt from placing the call', async () => {
    const numbers = phones(1);
    its.network.faults.push({ status: 503, headers: { 'Retry-After': '1' } });
    const placing = started(savePhones(numbers));
    await until(() => its.network.seen.length === 1);
    // Otherwise, the next attempt would come first on a busy machine.
    placing.child.kill('SIGSTOP');
    const cancelling = cancelRun();
    await until(() => its.network.seen.some(({ method }) => method === 'DELETE'));
    placing.child.kill('SIGCONT');
    const placed = await placing.ended;
    expect(placed.code, placed.stderr).to.equal(5);
    expect(await states(numbers)).to.deep.equal([]);
    const { code, stdout } = await cancelling;
    expect([code, ndjson(stdout).map(({ status }) => status)]).to.deep.equal([0, ['not-placed']]);
    // So the call can be placed from a corrected file.
    expect((await place(savePhones([...numbers, phone(9)]))).code).to.equal(0);
  });

  it("cancels the other calls that arrive after the cancelling command has ended if one of them can't be cancelled, and says so", async () => {
    const numbers = phones(2);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(...numbers.map(() => held.promise));
    const placing = started(savePhones(numbers));
    await until(() => its.network.seen.length === 2);
    const cancelling = its.home.start(['call', 'cancel', '--run', await newestRun()]);
    await until(() => its.network.seen.filter(({ method }) => method === 'DELETE').length === 2);
    cancelling.child.kill('SIGKILL');
    await cancelling.ended;
    its.network.faults.push({ status: 409, body: '<html>' });
    held.resolve();
    const { stderr } = await placing.ended;
    expect((await states(numbers)).toSorted(), stderr).to.deep.equal(['cancelled', 'queued']);
    expect(stderr).to.match(/while line \d was being sent, and callkey couldn't cancel its call: .* Run call cancel again\./);
  });

  it('reports a call as never placed only if it has not arrived after the longest attempt to send it', async () => {
    const numbers = phones(1);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const placing = started(savePhones(numbers));
    await until(() => its.network.seen.length === 1);
    placing.child.kill('SIGKILL');
    await placing.ended;
    const cancelling = cancelRun();
    await until(() => its.network.seen.filter(({ method }) => method === 'DELETE').length === 3);
    held.resolve();
    const { code, stdout } = await cancelling;
    expect([code, ndjson(stdout).map(({ status }) => status)]).to.deep.equal([0, ['cancelled']]);
    expect(await states(numbers)).to.deep.equal(['cancelled']);
  });
});
