import { hash } from 'node:crypto';
import type { OutcomeState } from '#contract/calls/dialer.ts';
import type { Conclusion } from '../domain/calls/call-states.ts';
import { plus } from '../domain/instant.ts';
import type { Clock, Provider } from '../domain/ports.ts';

/** The outcomes of a hundred calls. Each call lasts from `shortest` to `shortest + spread` seconds. */
const kinds: readonly { upTo: number; state: OutcomeState; detail: string; shortest: number; spread: number }[] = [
  { upTo: 62, state: 'completed', detail: 'Talked to the contact.', shortest: 20, spread: 100 },
  { upTo: 84, state: 'no_answer', detail: 'No one answered.', shortest: 25, spread: 10 },
  { upTo: 94, state: 'busy', detail: 'The line was busy.', shortest: 3, spread: 5 },
  { upTo: 100, state: 'failed', detail: "The number isn't in service.", shortest: 2, spread: 3 },
];

/**
 * Returns a provider that invents outcomes for demos and tests, without making any phone ring. A phone number always gets the same outcome
 * after the same time.
 */
export function simulatedProvider(clock: Clock): Provider {
  const outcomeOf = (phone: string) => {
    const digest = Number.parseInt(hash('sha256', phone, 'hex').slice(0, 12), 16);
    const kind = kinds.find(({ upTo }) => digest % 100 < upTo);
    const seconds = (kind?.shortest ?? 1) + (Math.floor(digest / 100) % (kind?.spread ?? 1));
    return { state: kind?.state ?? 'failed', detail: kind?.detail ?? null, seconds };
  };
  return {
    name: 'simulated',
    deduplicates: true,
    handOff: async (call) => ({ kind: 'taken', outcomeAt: plus(clock.now(), outcomeOf(call.phone).seconds * 1_000) }),
    conclude(call): Conclusion {
      const { state, detail, seconds } = outcomeOf(call.phone);
      return {
        state,
        detail: `Simulated: ${detail}`,
        endedAt: clock.now(),
        durationSeconds: state === 'completed' ? seconds : null,
      };
    },
  };
}
