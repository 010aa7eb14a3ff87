import { expect } from 'chai';
import { cancelledCallSchema } from '#contract/calls/calls.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createCampaign } from '../../../core/domain/directory/directory.ts';
import { addNumbers } from '../../../core/domain/protection/do-not-call.ts';
import { CliHome, ndjson } from '../../support/cli.ts';
import { callFiles, sharedIntegrator, singleCalls } from '../../support/integrator.ts';
import { somePhone } from '../../support/tenants.ts';

describe('callkey call cancel', () => {
  const its = sharedIntegrator();
  const { place, cancel, answer } = singleCalls(its);

  it('rejects a response that belongs to another call', async () => {
    const other = {
      requestId: 'other',
      contactId: 'c',
      campaignId: its.tenants.campaign.id,
      state: 'cancelled',
      cancelledAt: '2026-11-21T09:00:00.000Z',
    };
    its.network.faults.push({ status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(other) });
    const { code, stdout, stderr } = await cancel('--request-id', 'mine');
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.contain("didn't come from a Callkey core");
  });

  for (const by of ['--contact', '--request-id', '--last']) {
    it(`cancels by ${by}, and can be repeated`, async () => {
      const placed = answer(await place(somePhone(), '--json'));
      const reference = by === '--last' ? [by] : [by, by === '--contact' ? placed.contactId : placed.requestId];
      const first = answer(await cancel(...reference, '--json'));
      expect(cancelledCallSchema.parse(first)).to.include({ requestId: placed.requestId, contactId: placed.contactId });
      expect(answer(await cancel(...reference, '--json'))).to.deep.equal(first);
    });
  }

  it('cancels the last placed call with --last, even if a later call was refused because of the daily call limit', async () => {
    const placed = answer(await place(somePhone(), '--json'));
    const type = 'urn:callkey:problems#too-many-calls';
    const body = JSON.stringify({ type, title: 'Too many calls today', status: 429, detail: 'This key has reached its limit.' });
    its.network.faults.push({ status: 429, headers: { 'Retry-After': '3600', 'Content-Type': 'application/problem+json' }, body });
    const { code, stderr } = await place(somePhone());
    expect([code, stderr.split('\n')[0]]).to.deep.equal([7, "error: This key has reached its limit. That's in 1 h."]);
    expect(answer(await cancel('--last', '--json'))).to.include({ requestId: placed.requestId });
  });

  it('refuses a request ID that would change the request path, and sends nothing', async () => {
    const { length } = its.network.seen;
    for (const command of [() => place(somePhone(), '--request-id', '..'), () => cancel('--request-id', '.')]) {
      const { code, stderr } = await command();
      expect(code).to.equal(2);
      expect(stderr).to.contain('but not "." or ".."');
    }
    expect(its.network.seen).to.have.length(length);
  });

  it('exits with 6 if no call was placed, and suggests --request-id', async () => {
    const { code, stderr } = await new CliHome(its.home.environment).run(['call', 'cancel', its.tenants.campaign.id, '--last']);
    expect(code).to.equal(6);
    expect(stderr).to.contain('--request-id');
  });

  describe('--from', () => {
    const { phones, file, savePhones, place, placeHere, states, allCancelled } = callFiles(its);
    const cancel = (path: string, ...more: string[]) => its.home.run(['call', 'cancel', its.tenants.campaign.id, '--from', path, ...more]);
    const save = (results: string) => file(results, 'results.ndjson');

    it('cancels the calls in the results, except lines that were never placed', async () => {
      const numbers = phones(3);
      const { stdout } = await place(savePhones(['12', ...numbers]), '--skip-invalid');
      const { code, stdout: cancelled } = await cancel(save(stdout));
      expect([code, ndjson(cancelled).map(({ status }) => status)]).to.deep.equal([0, allCancelled(3)]);
      expect(await states(numbers)).to.deep.equal(allCancelled(3));
    });

    it('cancels a call that was placed although a proxy then rejected the line', async () => {
      const [lost = '', rejected = ''] = phones(2);
      its.network.faults.push('lose the response', { status: 409 }, { status: 409 });
      const { stdout } = await placeHere(savePhones([lost, rejected]), ['--concurrency', '1']);
      const { code, stdout: results, stderr } = await cancel(save(stdout));
      expect(code, stderr).to.equal(0);
      expect(ndjson(results).map(({ line, status }) => [line, status])).to.have.deep.members([
        [1, 'cancelled'],
        [2, 'not-placed'],
      ]);
      expect(await states([lost, rejected])).to.deep.equal(['cancelled']);
    });

    it("accepts the placed file if some of its lines weren't placed", async () => {
      const numbers = phones(3);
      const path = savePhones(['12', ...numbers]);
      const entry = { accountId: its.tenants.account.id, reason: 'asked', timeZone: 'UTC' } as const;
      await addNumbers(its.direct.ports, operator, { ...entry, phones: numbers.slice(0, 1) });
      expect((await place(path, '--skip-invalid')).code).to.equal(0);
      const { code, stdout, stderr } = await cancel(path);
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('Cancelled 2 calls; 2 never placed.');
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.have.deep.members([
        [2, 'not-placed'],
        [3, 'not-placed'],
        [4, 'cancelled'],
        [5, 'cancelled'],
      ]);
    });

    it('cancels the calls of a file that was placed with --columns and --zone', async () => {
      const numbers = phones(2);
      const text = ['Mobile;Order;notBefore', ...numbers.map((number) => `${number};order-${number.slice(1)};2099-07-01 09:00`)].join('\n');
      const path = file(text);
      const columns = ['--columns', 'phone=Mobile,requestId=Order'];
      expect((await place(path, ...columns, '--zone', 'Europe/Berlin')).code).to.equal(0);
      const { code, stderr } = await cancel(path, ...columns);
      expect(code, stderr).to.equal(0);
      expect(await states(numbers)).to.deep.equal(allCancelled(2));
    });

    it('cancels nothing in another campaign, and says to check the campaign', async () => {
      const numbers = phones(2);
      const { stdout } = await place(savePhones(numbers));
      const other = await createCampaign(its.direct.ports, operator, 'Another', its.tenants.account.id);
      const { code, stderr } = await its.home.run(['call', 'cancel', other.id, '--from', save(stdout)]);
      expect([code, stderr.includes(`Check that these calls were placed in the campaign ${other.id}.`)]).to.deep.equal([6, true]);
      expect(await states(numbers)).to.deep.equal(['queued', 'queued']);
    });

    it('reports lines without an ID, cancels the others, and exits with 2', async () => {
      const numbers = phones(1);
      const { stdout } = await place(savePhones(numbers));
      const { code, stdout: results } = await cancel(save(`${stdout}{"contactId":"../x"}\nnonsense\n`));
      expect([
        code,
        ndjson(results)
          .map(({ status }) => status)
          .toSorted(),
      ]).to.deep.equal([2, ['cancelled', 'invalid', 'invalid']]);
    });
  });
});
