// Places the core's calls with Retell AI, a platform that hosts the voice agent. See core/docs/providers/retell.md
import { z } from 'zod';
import type { Outcome, OutcomeState } from '#contract/calls/dialer.ts';
import { ask, serve, setting } from './handoffs.ts';
import { isSignedByRetell } from './signatures.ts';

const key = setting('RETELL_API_KEY');
/** A campaign's settings `from` and `agent` replace these two. */
const defaultFrom = setting('RETELL_FROM');
const defaultAgent = setting('RETELL_AGENT_ID');
const calls = `${setting('RETELL_API', 'https://api.retellai.com')}/v2/create-phone-call`;

const eventSchema = z.object({
  event: z.string(),
  call: z.object({
    metadata: z.object({ handoffId: z.string().optional() }).optional(),
    disconnection_reason: z.string().default('unknown'),
    duration_ms: z.number().optional(),
  }),
});

/** As of 2026-11-23 (docs.retellai.com/reliability/debug-call-disconnect). Any other reason is a failure. */
const states: Record<string, OutcomeState> = {
  user_hangup: 'completed',
  agent_hangup: 'completed',
  call_transfer: 'completed',
  inactivity: 'completed',
  max_duration_reached: 'completed',
  dial_busy: 'busy',
  user_declined: 'busy',
  dial_no_answer: 'no_answer',
  voicemail_reached: 'completed',
  ivr_reached: 'completed',
};
/** Other reasons don't say who answered. */
const machines = ['voicemail_reached', 'ivr_reached'];

serve({
  call: ({ handoffId, contact, variables, campaign: { settings } }) =>
    ask(calls, {
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        from_number: settings['from'] || defaultFrom,
        to_number: contact.phone,
        override_agent_id: settings['agent'] || defaultAgent,
        metadata: { handoffId },
        retell_llm_dynamic_variables: { ...variables, contact_name: contact.name ?? '' },
      }),
    }),
  readOutcome(headers, body): Outcome | null {
    if (!isSignedByRetell(key, headers['x-retell-signature'], body, Date.now())) throw new Error('not signed by Retell');
    const { event, call } = eventSchema.parse(JSON.parse(body));
    const handoffId = call.metadata?.handoffId;
    if (event !== 'call_ended' || handoffId === undefined) return null;
    const reason = call.disconnection_reason;
    const state = states[reason] ?? 'failed';
    const durationSeconds = Math.round((call.duration_ms ?? 0) / 1_000);
    const answeredBy = machines.includes(reason) ? 'machine' : 'unknown';
    const detail = `Retell: ${reason}`.slice(0, 500);
    return { handoffId, state, detail, durationSeconds, ...(state === 'completed' ? { answeredBy } : {}) };
  },
});
