import { expect } from 'chai';
import { simulatedProvider } from '../../core/dialer/simulated.ts';
import { instant } from '../../core/domain/instant.ts';
import type { ClaimedCall } from '../../core/domain/model.ts';
import { fakeClock } from '../support/clock.ts';

const callTo = (phone: string): ClaimedCall => ({
  ...{ contactId: 'c', requestId: 'r', campaignId: 'g', phone, name: null, timeZone: null, variables: {} },
  ...{ placedAt: instant(1), notBefore: null, notAfter: null, firstAttemptAt: instant(1), provider: 'simulated', attempt: 1 },
  ...{ handoff: 'open', leaseUntil: instant(30_000) },
});

describe('the simulated provider', () => {
  const clock = fakeClock();
  const provider = simulatedProvider(clock);
  /** The outcome of a call, and after how many seconds it ends. */
  const outcomeOf = async (phone: string) => {
    const taken = await provider.handOff(callTo(phone));
    const seconds = taken.kind === 'taken' && taken.outcomeAt !== undefined ? (taken.outcomeAt - clock.now()) / 1_000 : Number.NaN;
    return { ...provider.conclude(callTo(phone)), seconds };
  };
  const outcomes = () => Promise.all(Array.from({ length: 10_000 }, (_, n) => outcomeOf(`+4930${10_000_000 + n}`)));

  it('accepts every call, treats a repeated hand-off as the same call, and marks the call as simulated', async () => {
    expect(provider.name).to.equal('simulated');
    expect(provider.deduplicates).to.equal(true);
    expect(await outcomeOf('+493012345678')).to.deep.equal(await outcomeOf('+493012345678'));
  });

  for (const [state, count, detail, shortest, longest] of [
    ['completed', 6_121, 'Talked to the contact.', 20, 119],
    ['no_answer', 2_219, 'No one answered.', 25, 34],
    ['busy', 1_056, 'The line was busy.', 3, 7],
    ['failed', 604, "The number isn't in service.", 2, 4],
  ] as const) {
    it(`ends ${count} of ten thousand calls as ${state}, each within ${longest} seconds`, async () => {
      const found = (await outcomes()).filter((outcome) => outcome.state === state);
      expect(found).to.have.length(count);
      expect([Math.min(...found.map(({ seconds }) => seconds)), Math.max(...found.map(({ seconds }) => seconds))]).to.deep.equal([
        shortest,
        longest,
      ]);
      expect(new Set(found.map((outcome) => outcome.detail))).to.deep.equal(new Set([`Simulated: ${detail}`]));
      const lasted = found.every(({ durationSeconds, seconds }) => durationSeconds === (state === 'completed' ? seconds : null));
      expect([lasted, found[0]?.endedAt]).to.deep.equal([true, clock.now()]);
    });
  }
});
