import { simulatedOutcome } from '#contract/calls/simulated.ts';
import { plus } from '../domain/instant.ts';
import type { Clock, Provider } from '../domain/ports.ts';

/** Invents outcomes for demos and tests, without making any phone ring. The phone number's last digits decide. */
export function simulatedProvider(clock: Clock): Provider {
  return {
    name: 'simulated',
    deduplicates: true,
    handOff: async (call) => ({ kind: 'taken', outcomeAt: plus(clock.now(), simulatedOutcome(call.phone).seconds * 1_000) }),
    conclude(call) {
      const { state, detail, seconds } = simulatedOutcome(call.phone);
      return {
        state,
        detail: `Simulated: ${detail}`,
        endedAt: clock.now(),
        durationSeconds: state === 'completed' ? seconds : null,
      };
    },
  };
}
