// Places the core's calls through Asterisk's REST interface (ARI). Who answers goes to a dialplan context. core/docs/providers/asterisk.md
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { z } from 'zod';
import type { OutcomeState } from '#contract/dialer.ts';
import { ask, report, serve, setting } from './handoffs.ts';

const ari = setting('ARI_URL', 'http://127.0.0.1:8088/ari');
const credentials = `${setting('ARI_USER')}:${setting('ARI_PASSWORD')}`;
const headers = { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}`, 'Content-Type': 'application/json' };
/** Such as `PJSIP/{phone}@trunk`. */
const endpoint = setting('ARI_ENDPOINT');
const context = setting('ARI_CONTEXT', 'callkey');

const eventSchema = z.object({
  type: z.string(),
  timestamp: z.string(),
  channel: z.object({ id: z.string() }).optional(),
  cause: z.number().optional(),
  cause_txt: z.string().optional(),
});
type AriEvent = z.infer<typeof eventSchema>;

/** When the contact of a hand-off answered; null until then. A channel's id is that of its hand-off. */
const channels = new Map<string, number | null>();

/** Causes of Q.850 for who has not answered: 17 busy, 18 and 19 no answer, 21 rejected by the phone. */
const causes: Record<number, OutcomeState> = { 16: 'no_answer', 17: 'busy', 18: 'no_answer', 19: 'no_answer', 21: 'busy' };

async function handle({ type, timestamp, channel, cause = 0, cause_txt = '' }: AriEvent): Promise<void> {
  const id = channel?.id ?? '';
  const answeredAt = channels.get(id);
  if (answeredAt === undefined) return;
  if (type === 'StasisStart') {
    channels.set(id, Date.parse(timestamp));
    const body = JSON.stringify({ context, extension: 's', priority: 1 });
    await fetch(`${ari}/channels/${id}/continue`, { method: 'POST', headers, body });
  } else if (type === 'ChannelDestroyed') {
    channels.delete(id);
    const state = answeredAt === null ? (causes[cause] ?? 'failed') : 'completed';
    const durationSeconds = answeredAt === null ? 0 : Math.round((Date.parse(timestamp) - answeredAt) / 1_000);
    await report({ handoffId: id, state, detail: `Asterisk: ${cause} ${cause_txt}`.trim().slice(0, 500), durationSeconds });
  }
}

/** Follows all channels: one that has left for the dialplan is no longer the application's own. */
function follow(): void {
  const url = `${ari.replace(/^http/, 'ws')}/events?app=callkey&subscribeAll=true`;
  const socket = new WebSocket(url, { headers: { Authorization: headers.Authorization } });
  socket.addEventListener('open', () => process.stdout.write('following Asterisk\n'));
  socket.addEventListener('message', ({ data }) => {
    handle(eventSchema.parse(JSON.parse(String(data)))).catch((error) => process.stderr.write(`${error}\n`));
  });
  socket.addEventListener('close', () => setTimeout(1_000).then(follow));
}

follow();
serve({
  async call({ handoffId, contact, variables }) {
    channels.set(handoffId, null);
    // With the prefix: a variable named SHELL(…) or FILE(…) would run that function of Asterisk's.
    const named = Object.entries(variables).filter(([name]) => /^\w+$/.test(name));
    const asked = await ask(`${ari}/channels`, {
      headers,
      body: JSON.stringify({
        endpoint: endpoint.replace('{phone}', contact.phone),
        app: 'callkey',
        channelId: handoffId,
        timeout: 45,
        variables: Object.fromEntries([...named.map(([name, value]) => [`CALLKEY_${name}`, value]), ['CALLKEY_HANDOFF_ID', handoffId]]),
      }),
    });
    if (asked !== 'taken' && asked !== 'unknown') channels.delete(handoffId);
    return asked;
  },
});
