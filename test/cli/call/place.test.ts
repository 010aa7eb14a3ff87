import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { placedCallSchema } from '#contract/calls/calls.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { sharedIntegrator, singleCalls } from '../../support/integrator.ts';
import { createKey, signIn, somePhone } from '../../support/tenants.ts';

describe('callkey call place', () => {
  const its = sharedIntegrator();
  const { place, answer } = singleCalls(its);

  it('reads a national number with --country, and local times with --zone, and sends nothing with --dry-run', async () => {
    const args = ['--phone', '030 23125000', '--country', 'de', '--not-before', '2099-07-01 09:00', '--not-after', '2099-07-01T18:00:30'];
    const shown = ['--zone', 'Europe/Berlin', '--dry-run', '--json'];
    expect(answer(await its.home.run(['call', 'place', its.tenants.campaign.id, ...args, ...shown]))).to.deep.equal({
      ...{ status: 'would-place', campaignId: its.tenants.campaign.id, contact: { phone: '+493023125000' } },
      ...{ notBefore: '2099-07-01T07:00:00.000Z', notAfter: '2099-07-01T16:00:30.000Z' },
    });
    expect(its.network.seen).to.deep.equal([]);
  });

  it('exits with 3 if the key is rejected, and says where it came from: the environment, which overrides, or the profile that the option or the environment names', async () => {
    const unknown = makeKeyValue(randomBytes);
    const noKey = { CALLKEY_API_KEY: '' };
    const set = ['key', 'set', '--insecure-storage', '--profile', 'old'];
    expect((await its.home.run(set, { input: unknown, environment: noKey })).code).to.equal(0);
    const inFile = /It's in the file .*keys\/old@.*, for the profile old/;
    for (const [environment, profile, says] of [
      [
        { CALLKEY_API_KEY: unknown },
        ['--profile', 'old'],
        /CALLKEY_API_KEY, which overrides any stored key\. To use a stored key, unset CALLKEY_API_KEY\./,
      ],
      [noKey, ['--profile', 'old'], /old \(from --profile\)\. To replace it, run callkey key set --profile old\./],
      [{ ...noKey, CALLKEY_PROFILE: 'old' }, [], /old \(from CALLKEY_PROFILE\)\. To replace it, run callkey key set --profile old\./],
    ] as const) {
      const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), ...profile], {
        environment,
      });
      expect([code, says.test(stderr), stderr.includes(unknown.slice(12))], stderr).to.deep.equal([3, true, false]);
      if (environment.CALLKEY_API_KEY === '') expect(stderr).to.match(inFile);
    }
  });

  it('warns on standard error when the key expires soon', async () => {
    const day = new Date(Date.now() + 10 * 86_400_000).toISOString().slice(0, 10);
    const cookie = await signIn(its.core.url, 'ada@example.com');
    const { keyValue } = await createKey(its.core.url, cookie, 'Ending', { kind: 'custom', date: day });
    const { code, stdout, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), '--json'], {
      environment: { CALLKEY_API_KEY: keyValue },
    });
    expect([code, Object.keys(JSON.parse(stdout))], stderr).to.deep.equal([
      0,
      ['requestId', 'contactId', 'campaignId', 'state', 'placedAt', 'replayed'],
    ]);
    expect(stderr).to.match(/^The API key expires in (9|10) days, at \d{4}-\d\d-\d\dT[\d:.]+Z\./);
  });

  it('rejects a response that belongs to another request ID', async () => {
    const phone = somePhone();
    const other = {
      requestId: 'other',
      contactId: 'c',
      campaignId: its.tenants.campaign.id,
      state: 'queued',
      placedAt: '2026-11-21T09:00:00.000Z',
    };
    its.network.faults.push({ status: 202, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(other) });
    const { code, stdout, stderr } = await place(phone, '--request-id', 'mine');
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.contain("didn't come from a Callkey core");
  });

  it('places a call and prints it', async () => {
    const phone = somePhone();
    const options = ['--name', 'Ada Lovelace', '--time-zone', 'Europe/Berlin', '--var', 'orderNumber=4711', '--var', 'note=a=b'];
    const when = ['--not-before', '2026-11-21T09:00:00.000Z', '--not-after', '2099-11-21T18:00:00.000Z', '--request-id', 'order-4711'];
    const placed = answer(await place(phone, ...options, ...when, '--json'));
    expect({ ...placedCallSchema.parse(placed), replayed: false }).to.deep.equal(placed);
    expect(placed).to.include({ requestId: 'order-4711', campaignId: its.tenants.campaign.id, replayed: false });
    expect(JSON.parse(its.network.seen[0]?.body ?? '')).to.deep.equal({
      requestId: 'order-4711',
      contact: { phone, name: 'Ada Lovelace', timeZone: 'Europe/Berlin' },
      variables: { orderNumber: '4711', note: 'a=b' },
      notBefore: '2026-11-21T09:00:00.000Z',
      notAfter: '2099-11-21T18:00:00.000Z',
    });
  });

  it('suggests a cancel command with the same options, and that command works', async () => {
    const { code, stdout, stderr } = await place(somePhone(), '--request-id', '~x', '--profile', 'other');
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.contain('Request ID: ~x');
    const [, cancel = ''] = /^Cancel it with: callkey (.*)$/m.exec(stdout) ?? [];
    expect(cancel).to.equal(`call cancel ${its.tenants.campaign.id} --request-id '~x' --profile other`);
    expect((await its.home.run(cancel.replaceAll("'", '').split(' '))).code).to.equal(0);
  });

  const valid = ['--phone', '+493012345678'];
  for (const [what, options, says] of [
    ['an invalid phone number', ['--phone', '12'], '--phone: '],
    ['a missing phone number', [], '--phone'],
    ['a name with invisible characters', [...valid, '--name', 'Ada\u202e'], '--name: '],
    ['an invalid time zone', [...valid, '--time-zone', 'Mars/Olympus'], '--time-zone: '],
    ['a variable without a value', [...valid, '--var', 'x'], '--var x'],
    ['a variable named __proto__', [...valid, '--var', '__proto__=x'], '--var'],
    ['a duplicate variable', [...valid, '--var', 'x=1', '--var', 'x=2'], '--var'],
    ['a time without a zone', [...valid, '--not-before', 'tomorrow'], '--not-before: '],
    ['an abbreviation as a zone', [...valid, '--zone', 'BST', '--not-before', '2027-02-28T10:00'], 'such as Europe/London'],
    ['a request ID with a space', [...valid, '--request-id', 'a b'], '--request-id: '],
    ['both a phone number and a file', [...valid, '--from', 'x.csv'], '--from'],
    ['a file option with a single call', [...valid, '--skip-invalid'], '--from'],
    ['a concurrency for a single call', [...valid, '--concurrency', '8'], '--from'],
    ['a rate for a single call', [...valid, '--rate', '20'], '--from'],
    ['--from without a file name', ['--from', ''], '--from: specify a file'],
  ] as const) {
    it(`exits with 2 for ${what}, and sends nothing`, async () => {
      const { code, stdout, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, ...options]);
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(stderr).to.contain(says);
      expect(its.network.seen).to.deep.equal([]);
    });
  }

  it('exits with 2 if the campaign ID would change the request path', async () => {
    for (const campaign of ['..', '.', 'a/b', '%2e%2e', '']) {
      expect((await its.home.run(['call', 'place', campaign, '--phone', somePhone()])).code).to.equal(2);
    }
    expect(its.network.seen).to.deep.equal([]);
  });

  it('exits with 2 without a key, or if the key is mistyped', async () => {
    for (const mistyped of ['', its.key.slice(0, -1), `${its.key.slice(0, -1)}!`]) {
      const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone()], {
        environment: { CALLKEY_API_KEY: mistyped },
      });
      expect(code).to.equal(2);
      expect(stderr).not.to.contain(its.key.slice(0, 30));
    }
    expect(its.network.seen).to.deep.equal([]);
  });
});
