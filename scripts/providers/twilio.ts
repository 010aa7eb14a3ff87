// Places the core's calls with Twilio, and connects who answers to a voice agent's WebSocket. core/docs/providers/twilio.md
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Outcome, OutcomeState } from '#contract/dialer.ts';
import { ask, serve, setting } from './handoffs.ts';

const account = setting('TWILIO_ACCOUNT_SID');
const token = setting('TWILIO_AUTH_TOKEN');
const from = setting('TWILIO_FROM');
const stream = setting('TWILIO_STREAM_URL');
/** Where Twilio reaches this program. */
const publicUrl = setting('PUBLIC_URL');
const calls = `${setting('TWILIO_API', 'https://api.twilio.com')}/2010-04-01/Accounts/${account}/Calls.json`;

const states: Record<string, OutcomeState> = {
  completed: 'completed',
  busy: 'busy',
  'no-answer': 'no_answer',
  failed: 'failed',
  canceled: 'failed',
};

/** Variables come from integrators: none may end an attribute and begin an instruction. */
const attribute = (text: string) => `"${text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)}"`;

function instructions(parameters: Record<string, string>): string {
  const all = Object.entries(parameters).map(([name, value]) => `<Parameter name=${attribute(name)} value=${attribute(value)}/>`);
  return `<Response><Connect><Stream url=${attribute(stream)}>${all.join('')}</Stream></Connect></Response>`;
}

/** https://www.twilio.com/docs/usage/security: the address, then each field and its value in the order of their names. */
function isSigned(signature: unknown, url: string, fields: URLSearchParams): boolean {
  const signed =
    url +
    [...fields]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flat()
      .join('');
  const expected = createHmac('sha1', token).update(signed).digest();
  const given = Buffer.from(String(signature), 'base64');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

serve({
  call({ handoffId, contact, variables }) {
    const body = new URLSearchParams({
      To: contact.phone,
      From: from,
      Twiml: instructions({ ...variables, handoffId }),
      // "completed" is sent however a call ends.
      StatusCallback: `${publicUrl}/outcomes?handoffId=${handoffId}`,
      StatusCallbackEvent: 'completed',
    });
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    return ask(calls, { headers: { Authorization: authorization }, body });
  },
  outcomeOf(headers, body, path): Outcome | null {
    const fields = new URLSearchParams(body);
    if (!isSigned(headers['x-twilio-signature'], publicUrl + path, fields)) throw new Error('not signed by Twilio');
    const handoffId = new URL(path, publicUrl).searchParams.get('handoffId') ?? '';
    const status = fields.get('CallStatus') ?? '';
    const state = states[status];
    const durationSeconds = Number(fields.get('CallDuration') ?? 0);
    return state ? { handoffId, state, detail: `Twilio: ${status}`, durationSeconds } : null;
  },
});
