import { expect } from 'chai';
import { simulatedProvider } from '../../core/dialer/simulated.ts';
import { claimedCall } from '../support/claimed-call.ts';
import { fakeClock } from '../support/clock.ts';

const callTo = (phone: string) => claimedCall({ phone, provider: 'simulated' });

describe('the simulated provider', () => {
  const clock = fakeClock();
  const provider = simulatedProvider(clock);
  /** Returns the outcome of a call, and after how many seconds it ends. */
  const simulate = async (phone: string) => {
    const taken = await provider.handOff(callTo(phone));
    const seconds = taken.kind === 'taken' && taken.outcomeAt !== undefined ? (taken.outcomeAt - clock.now()) / 1_000 : Number.NaN;
    return { ...provider.conclude(callTo(phone)), seconds };
  };

  it('accepts every call, treats a repeated hand-off as the same call, and marks the call as simulated', async () => {
    expect(provider.name).to.equal('simulated');
    expect(provider.deduplicates).to.equal(true);
    expect(await simulate('+493012345678')).to.deep.equal(await simulate('+493012345678'));
  });

  it("ends a call as the number's last digits specify, and reports a duration only if it was answered", async () => {
    expect(await simulate('+493023125300')).to.deep.equal({
      ...{ state: 'completed', detail: 'Simulated: Talked to the contact.', seconds: 50, durationSeconds: 50, endedAt: clock.now() },
    });
    expect(await simulate('+493023125390')).to.deep.equal({
      ...{ state: 'busy', detail: 'Simulated: The line was busy.', seconds: 6, durationSeconds: null, endedAt: clock.now() },
    });
  });
});
