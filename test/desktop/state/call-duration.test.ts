import { expect } from 'chai';
import { callDurationMs } from '../../../desktop/renderer/state/calls.ts';

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
