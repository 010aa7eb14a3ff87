// Places calls through Asterisk's REST interface (ARI). Answered calls go to a dialplan context. See core/docs/providers/asterisk.md
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { isIdentifier } from '#contract/text/text.ts';
import { channelsSchema, eventSchema, followedChannels } from './asterisk-channels.ts';
import { ask, type CallResult, log, report, serve, setting, shortened } from './handoffs.ts';

const ari = setting('ARI_URL', 'http://127.0.0.1:8088/ari');
const credentials = `${setting('ARI_USER')}:${setting('ARI_PASSWORD')}`;
const headers = { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}`, 'Content-Type': 'application/json' };
/** For example, `PJSIP/{phone}@trunk`. */
const endpoint = setting('ARI_ENDPOINT');
/** A campaign's settings `agent` and `from` replace these two. */
const defaultContext = setting('ARI_CONTEXT', 'callkey');
/** The contexts that a campaign may choose. Partner users set it, and the dialplan has contexts that aren't meant for them. */
const contexts = new Set([defaultContext, ...setting('ARI_CONTEXTS', '').split(',')].map((context) => context.trim()));
const defaultCallerId = setting('ARI_CALLER_ID', '');
/** In seconds. */
const timeout = Number(setting('ARI_RING_SECONDS', '45'));

const channels = followedChannels();
let isFollowing = false;

/** Follows all channels, because the channels of hand-offs belong to the dialplan and not to an application. */
function follow(): void {
  const url = `${ari.replace(/^http/, 'ws')}/events?app=callkey&subscribeAll=true`;
  const socket = new WebSocket(url, { headers: { Authorization: headers.Authorization } });
  socket.addEventListener('open', () => {
    findChannels()
      .then(() => {
        isFollowing = socket.readyState === WebSocket.OPEN;
        if (isFollowing) log('following Asterisk');
      })
      .catch((error) => {
        log(`couldn't list the channels: ${error}`);
        socket.close();
      });
  });
  socket.addEventListener('message', ({ data }) => {
    try {
      const outcome = channels.handle(eventSchema.parse(JSON.parse(String(data))));
      if (outcome) report(outcome);
    } catch (error) {
      log(`couldn't read a message from Asterisk: ${error}`);
    }
  });
  socket.addEventListener('close', () => {
    isFollowing = false;
    setTimeout(1_000).then(follow);
  });
}

/** Finds calls that were placed before this program started, or before it lost its connection, and follows them. */
async function findChannels(): Promise<void> {
  const listed = channelsSchema.parse(await get('/channels'));
  const there = new Set<string>();
  // Skip channels that can't be hand-offs: Asterisk's own IDs contain a dot, and those of local channels' other ends a semicolon.
  for (const channel of listed.filter(({ id }) => isIdentifier(id))) {
    if (!channels.follows(channel.id) && !(await isHandoff(channel.id))) continue;
    channels.found(channel);
    there.add(channel.id);
  }
  for (const outcome of channels.missing(there)) report(outcome);
}

async function isHandoff(id: string): Promise<boolean> {
  const variable = await get(`/channels/${id}/variable?variable=CALLKEY_HANDOFF_ID`).catch(() => null);
  return typeof variable === 'object' && variable !== null && 'value' in variable && variable.value === id;
}

async function get(path: string): Promise<unknown> {
  const answer = await fetch(`${ari}${path}`, { headers: { Authorization: headers.Authorization }, signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.json();
}

/** Interprets the responses of Asterisk 22.10.1. */
function interpret(status: number, text: string): CallResult | null {
  // A call for this hand-off is already in progress, and another attempt would make a second one.
  if (status === 409 && text.includes('already exists')) return 'taken';
  // No channel was created, for example because the trunk isn't registered.
  if (status === 500 && text.includes('Allocation failed')) return { later: 'Allocation failed' };
  return null;
}

follow();
serve({
  async call({ handoffId, contact, variables, campaign: { settings } }) {
    // Without a connection to Asterisk's events, this program could miss the end of the call.
    if (!isFollowing) return { later: 'not connected to Asterisk' };
    const context = settings['agent'] || defaultContext;
    if (!contexts.has(context)) return { later: `ARI_CONTEXTS doesn't list the campaign's agent: ${shortened(context)}` };
    channels.expect(handoffId);
    // The prefix is needed because Asterisk would run a variable named SHELL(…) or FILE(…) as that function.
    const named = Object.entries(variables).filter(([name]) => /^\w+$/.test(name));
    const callerId = settings['from'] || defaultCallerId;
    const body = {
      ...{ endpoint: endpoint.replace('{phone}', contact.phone), context, extension: 's', priority: 1, channelId: handoffId, timeout },
      ...(callerId === '' ? {} : { callerId }),
      variables: Object.fromEntries([...named.map(([name, value]) => [`CALLKEY_${name}`, value]), ['CALLKEY_HANDOFF_ID', handoffId]]),
    };
    const result = await ask(`${ari}/channels`, { headers, body: JSON.stringify(body) }, interpret);
    if (result !== 'taken' && result !== 'unknown') channels.forget(handoffId);
    return result;
  },
});
