// Places the core's calls with Twilio, and connects the contact to a voice agent's WebSocket. See core/docs/providers/twilio.md
import { z } from 'zod';
import type { Outcome, OutcomeState } from '#contract/calls/dialer.ts';
import { ask, type CallResult, serve, setting, shortened } from './handoffs.ts';
import { isSignedByTwilio } from './signatures.ts';

const account = setting('TWILIO_ACCOUNT_SID');
const token = setting('TWILIO_AUTH_TOKEN');
const from = setting('TWILIO_FROM');
const stream = setting('TWILIO_STREAM_URL');
/** The address that Twilio uses to reach this program. */
const publicUrl = setting('PUBLIC_URL');
const calls = `${setting('TWILIO_API', 'https://api.twilio.com')}/2010-04-01/Accounts/${account}/Calls.json`;

const states: Record<string, OutcomeState> = {
  completed: 'completed',
  busy: 'busy',
  'no-answer': 'no_answer',
  failed: 'failed',
  canceled: 'failed',
};

/** Variables come from integrators, so they must not be able to end an attribute and start an instruction. */
const attribute = (text: string) => `"${text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)}"`;

function instructions(parameters: Record<string, string>): string {
  const all = Object.entries(parameters).map(([name, value]) => `<Parameter name=${attribute(name)} value=${attribute(value)}/>`);
  return `<Response><Connect><Stream url=${attribute(stream)}>${all.join('')}</Stream></Connect></Response>`;
}

/**
 * Twilio's error codes (twilio.com/docs/api/errors, as of 2026-11-23) that mean that no call was made, but another attempt may work,
 * because they're about the account or its number, not about this call. 10004 and 86008: too many calls at the same time. 21210 and 21212:
 * the number in TWILIO_FROM.
 */
const later: readonly number[] = [10004, 86008, 21210, 21212];
const errorSchema = z.object({ code: z.number() });

/** After a 500 (20500), the call must not be repeated, because according to Twilio it may have been made. */
function interpret(status: number, text: string): CallResult | null {
  if (status < 400 || status >= 500) return null;
  try {
    const { code } = errorSchema.parse(JSON.parse(text));
    return later.includes(code) ? { later: `${code} ${shortened(text)}` } : null;
  } catch {
    return null;
  }
}

serve({
  call({ handoffId, contact, variables }) {
    const body = new URLSearchParams({
      To: contact.phone,
      From: from,
      Twiml: instructions({ ...variables, handoffId }),
      // Twilio sends "completed" as an event, however the call ended.
      StatusCallback: `${publicUrl}/outcomes?handoffId=${handoffId}`,
      StatusCallbackEvent: 'completed',
    });
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const headers = { Authorization: authorization, 'Content-Type': 'application/x-www-form-urlencoded' };
    return ask(calls, { headers, body: body.toString() }, interpret);
  },
  readOutcome(headers, body, path): Outcome | null {
    const fields = new URLSearchParams(body);
    if (!isSignedByTwilio(token, headers['x-twilio-signature'], publicUrl + path, fields)) throw new Error('not signed by Twilio');
    const handoffId = new URL(path, publicUrl).searchParams.get('handoffId') ?? '';
    const status = fields.get('CallStatus') ?? '';
    const state = states[status];
    const durationSeconds = Number(fields.get('CallDuration') ?? 0);
    return state ? { handoffId, state, detail: `Twilio: ${status}`, durationSeconds } : null;
  },
});
