// Places the core's calls with Twilio, and connects the contact to a voice agent's WebSocket. See core/docs/providers/twilio.md
import { z } from 'zod';
import type { AnsweredBy, Outcome, OutcomeState } from '#contract/calls/dialer.ts';
import { parseJson } from '#contract/text/json.ts';
import { ask, type CallResult, serve, setting, shortened } from './handoffs.ts';
import { isSignedByTwilio } from './signatures.ts';

const account = setting('TWILIO_ACCOUNT_SID');
const token = setting('TWILIO_AUTH_TOKEN');
/** A campaign's settings `from` and `agent` replace these two. */
const defaultFrom = setting('TWILIO_FROM');
const defaultAgent = setting('TWILIO_STREAM_URL');
/** Twilio charges for detection. */
const detectsMachines = setting('TWILIO_MACHINE_DETECTION', 'on') !== 'off';
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

function instructions(stream: string, parameters: Record<string, string>): string {
  const all = Object.entries(parameters).map(([name, value]) => `<Parameter name=${attribute(name)} value=${attribute(value)}/>`);
  return `<Response><Connect><Stream url=${attribute(stream)}>${all.join('')}</Stream></Connect></Response>`;
}

/**
 * Twilio's error codes (twilio.com/docs/api/errors, as of 2026-11-23) that mean that no call was made, but another attempt may work,
 * because they're about the account or its number, not about this call. 10004 and 86008: too many calls at the same time. 22005: a day of
 * calls is waiting. 21210 and 21212: the number to call from.
 */
const later: readonly number[] = [10004, 86008, 22005, 21210, 21212];
const errorSchema = z.object({ code: z.number() });

/** After a 500 (20500), the call must not be repeated, because according to Twilio it may have been made. */
function interpret(status: number, text: string): CallResult | null {
  if (status < 400 || status >= 500) return null;
  const { code } = errorSchema.safeParse(parseJson(text)).data ?? {};
  return code !== undefined && later.includes(code) ? { later: `${code} ${shortened(text)}` } : null;
}

/** Twilio detects who answered during the call, and reports it before it reports the end. */
const answerers = new Map<string, AnsweredBy>();
const maxAnswerers = 10_000;

function rememberAnswerer(handoffId: string, answerer: string): void {
  const [oldest] = answerers.keys();
  if (oldest !== undefined && answerers.size >= maxAnswerers) answerers.delete(oldest);
  answerers.set(handoffId, answerer === 'human' ? 'person' : /^(machine|fax)/.test(answerer) ? 'machine' : 'unknown');
}

serve({
  call({ handoffId, contact, variables, campaign: { settings } }) {
    const callback = `${publicUrl}/outcomes?handoffId=${handoffId}`;
    const body = new URLSearchParams({
      To: contact.phone,
      From: settings['from'] || defaultFrom,
      Twiml: instructions(settings['agent'] || defaultAgent, { ...variables, handoffId }),
      // Twilio sends "completed" as an event, however the call ended.
      StatusCallback: callback,
      StatusCallbackEvent: 'completed',
      // The contact and the agent talk while Twilio detects who answered.
      ...(detectsMachines ? { MachineDetection: 'Enable', AsyncAmd: 'true', AsyncAmdStatusCallback: callback } : {}),
    });
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const headers = { Authorization: authorization, 'Content-Type': 'application/x-www-form-urlencoded' };
    return ask(calls, { headers, body: body.toString() }, interpret);
  },
  readOutcome(headers, body, path): Outcome | null {
    const fields = new URLSearchParams(body);
    if (!isSignedByTwilio(token, headers['x-twilio-signature'], publicUrl + path, fields)) throw new Error('not signed by Twilio');
    const handoffId = new URL(path, publicUrl).searchParams.get('handoffId') ?? '';
    const answerer = fields.get('AnsweredBy');
    if (answerer) rememberAnswerer(handoffId, answerer);
    const status = fields.get('CallStatus') ?? '';
    const state = states[status];
    if (!state) return null;
    const answeredBy = answerers.get(handoffId);
    answerers.delete(handoffId);
    const durationSeconds = Number(fields.get('CallDuration') ?? 0);
    return { handoffId, state, detail: `Twilio: ${status}`, durationSeconds, ...(state === 'completed' ? { answeredBy } : {}) };
  },
});
