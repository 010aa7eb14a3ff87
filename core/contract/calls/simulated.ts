import type { OutcomeState } from './dialer.ts';

/**
 * The simulated dialer's outcomes by a phone number's last two digits. A call ends `shortest` seconds after it's dialed, plus `step`
 * seconds for each unit of the third digit from the end. core/docs/rehearsing.md has the same table.
 */
export const simulatedOutcomes = [
  { from: 0, to: 61, state: 'completed', detail: 'Talked to the contact.', shortest: 20, step: 10 },
  { from: 62, to: 83, state: 'no_answer', detail: 'No one answered.', shortest: 25, step: 1 },
  { from: 84, to: 93, state: 'busy', detail: 'The line was busy.', shortest: 3, step: 1 },
  { from: 94, to: 99, state: 'failed', detail: "The number isn't in service.", shortest: 2, step: 1 },
] as const satisfies { from: number; to: number; state: OutcomeState; detail: string; shortest: number; step: number }[];

export function simulatedOutcome(phone: string) {
  const lastTwo = Number(phone.slice(-2));
  const third = Number(phone.at(-3));
  const outcome = simulatedOutcomes.find(({ to }) => lastTwo <= to) ?? simulatedOutcomes[0];
  return { state: outcome.state, detail: outcome.detail, seconds: outcome.shortest + third * outcome.step };
}
