import { expect } from 'chai';
import { callDurationMs, describeDetail } from '../../../desktop/renderer/state/calls.ts';

describe("a call's duration", () => {
  const dialedAt = '2026-11-21T12:00:00.000Z';

  it('is the time from dialing until the call ended', () => {
    expect(callDurationMs({ dialedAt, endedAt: '2026-11-21T12:02:16.000Z' })).to.equal(136_000);
  });

  it("is unknown for a call that wasn't dialed or hasn't ended", () => {
    expect(callDurationMs({ dialedAt: null, endedAt: dialedAt })).to.equal(null);
    expect(callDurationMs({ dialedAt, endedAt: null })).to.equal(null);
  });
});

describe('the detail of a cancelled call', () => {
  it('says that it was cancelled with a key, unless the record says something else or was erased', () => {
    const cancelled = { state: 'cancelled', contact: { phone: '+493012345678', name: null }, detail: null } as const;
    expect(describeDetail(cancelled)).to.equal('By a request with an API key.');
    expect(describeDetail({ ...cancelled, detail: 'The API key was revoked.' })).to.equal('The API key was revoked.');
    expect(describeDetail({ ...cancelled, contact: { phone: null, name: null } })).to.equal(null);
    expect(describeDetail({ ...cancelled, state: 'completed' })).to.equal(null);
  });
});
