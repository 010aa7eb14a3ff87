import { expect } from 'chai';
import { cancelledCallSchema } from '#contract/calls/calls.ts';
import { CliHome } from '../../support/cli.ts';
import { sharedIntegrator, singleCalls } from '../../support/integrator.ts';
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
});
