import { expect } from 'chai';
import {
  addressesProblem,
  callsPerDayProblem,
  changedLimits,
  lockOutWarning,
  summarizeLimits,
  toDraft,
} from '../../../desktop/renderer/state/api-keys.ts';
import { keyView } from '../../support/key-view.ts';

const key = keyView({ addresses: ['10.0.0.0/8', '192.0.2.7/32'], callsPerDay: 100, limitsVersion: 'v1' });

describe("the form for a key's limits", () => {
  it('sends only what was changed, with the version that it was based on', () => {
    const draft = toDraft(key);
    expect(draft).to.deep.equal({ addresses: '10.0.0.0/8\n192.0.2.7/32', callsPerDay: '100' });
    expect(changedLimits(key, draft)).to.equal(null);
    expect(changedLimits(key, { ...draft, addresses: ' ::ffff:10.0.0.0/104, 192.0.2.7 ' })).to.equal(null);
    expect(changedLimits(key, { ...draft, callsPerDay: '' })).to.deep.equal({ callsPerDay: null, limitsVersion: 'v1' });
    expect(changedLimits(key, { ...draft, callsPerDay: '10,000' })).to.deep.equal({ callsPerDay: 10_000, limitsVersion: 'v1' });
    expect(changedLimits(key, { ...draft, addresses: '' })).to.deep.equal({ addresses: null, limitsVersion: 'v1' });
    expect(changedLimits(key, { addresses: '2001:DB8::1', callsPerDay: '5' })).to.deep.equal({
      addresses: ['2001:db8::1/128'],
      callsPerDay: 5,
      limitsVersion: 'v1',
    });
  });

  it('names the address that is wrong', () => {
    expect(addressesProblem('10.0.0.0/8\n10.0.0.0/33')).to.equal('10.0.0.0/33: The prefix length must be at most 32.');
    expect(addressesProblem(Array.from({ length: 51 }, (_, n) => `192.0.2.${n}`).join(' '))).to.equal(
      'Enter at most 50 addresses and networks.',
    );
    expect(addressesProblem('')).to.equal(null);
  });

  it('accepts no daily call limit, or a whole number from 1 to 10,000,000', () => {
    for (const valid of ['', ' ', '1', '10000000', '1,000', '10.000.000']) expect(callsPerDayProblem(valid), valid).to.equal(null);
    for (const wrong of ['0', '-1', '1.5', '1,5', '1,0000', '1e3', 'x', '10000001'])
      expect(callsPerDayProblem(wrong), wrong).to.equal('Enter a whole number from 1 to 10,000,000, or leave it empty for no limit.');
  });

  it("warns if the list would refuse the client that used the key last, or if a proxy hides the clients' addresses", () => {
    const used = { lastUsedAddress: '192.0.2.7', ignoredProxy: undefined };
    expect(lockOutWarning('', used)).to.equal(null);
    expect(lockOutWarning('192.0.2.0/24', used)).to.equal(null);
    expect(lockOutWarning('10.0.0.0/8', used)).to.equal(
      'The key was last used from 192.0.2.7, which isn’t in this list. That client will be refused immediately.',
    );
    expect(lockOutWarning('10.0.0.0/8', { ...used, lastUsedAddress: null })).to.equal(null);
    expect(lockOutWarning('192.0.2.0/24', { ...used, ignoredProxy: '172.17.0.1' })).to.include('TRUSTED_PROXIES');
  });

  it('summarizes limits for the list', () => {
    expect(summarizeLimits(key)).to.equal('only from 2 networks, 100 calls per day');
    expect(summarizeLimits({ addresses: ['10.0.0.0/8'], callsPerDay: null })).to.equal('only from 10.0.0.0/8');
    expect(summarizeLimits({ addresses: null, callsPerDay: null })).to.equal('');
  });
});
