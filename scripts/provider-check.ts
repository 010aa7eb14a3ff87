// Checks a provider's adapter from the core's side: sends it signed hand-offs, waits for their outcomes, and explains what's missing. See
// core/docs/connecting-a-provider.md
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { request } from 'undici';
import { type Handoff, outcomeSchema } from '#contract/calls/dialer.ts';
import { readPhone } from '#contract/calls/phone.ts';
import { isSigned, isSigningSecret, sign } from '#contract/calls/signature.ts';
import { counted } from '#contract/text/count.ts';
import { parseJson } from '#contract/text/json.ts';
import { validate } from '#contract/validate.ts';
import { openConnections } from '../core/dialer/webhook.ts';

const usage = 'Usage: DIALER_SECRETS=whsec_… npm run provider-check -- URL [--phone +12025550123] [--port 8080] [--wait 60]';

function stop(message: string): never {
  process.stderr.write(`${message}\n${usage}\n`);
  process.exit(2);
}

function readSettings() {
  const options = {
    phone: { type: 'string', default: '+12025550123' },
    port: { type: 'string', default: '8080' },
    wait: { type: 'string', default: '60' },
  } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    return { ...values, url: positionals[0] ?? '' };
  } catch (error) {
    return stop(error instanceof Error ? error.message : String(error));
  }
}

const { url, phone: written, ...numbers } = readSettings();
const [port, wait] = [Number(numbers.port), Number(numbers.wait)];
const secrets = (process.env['DIALER_SECRETS'] ?? '').split(',');
const [secret = ''] = secrets;
if (!URL.canParse(url) || !/^https?:/.test(url)) stop('Specify the URL of your adapter, such as http://127.0.0.1:9000/.');
if (!secrets.every(isSigningSecret)) stop("Set DIALER_SECRETS to your adapter's secret: npm run admin -- dialer secret generates one.");
const read = readPhone(written, { country: undefined, accept: 'valid' });
if ('reason' in read) stop(`Invalid --phone: ${read.reason}`);
const { phone } = read;
if (!Number.isInteger(port) || port < 0 || port > 65_535) stop('--port must be a port number.');
if (!(wait > 0)) stop('--wait must be a number of seconds.');

let failures = 0;
function say(isRight: boolean, what: string, otherwise = ''): void {
  if (!isRight) failures++;
  process.stdout.write(isRight ? `ok     ${what}\n` : `FAIL   ${what}: ${otherwise}\n`);
}

const now = () => Math.floor(Date.now() / 1_000);
const connections = openConnections(5_000);

type Sent = { status: number } | { error: string };

async function send(handoff: Handoff, { by = secret, at = now() } = {}): Promise<Sent> {
  const body = JSON.stringify(handoff);
  const headers = { 'Content-Type': 'application/json', ...sign(handoff.handoffId, body, by, at) };
  try {
    const signal = AbortSignal.timeout(10_000);
    const answer = await request(url, { method: 'POST', headers, body, dispatcher: connections.dispatcher, reset: true, signal });
    await answer.body.dump();
    return { status: answer.statusCode };
  } catch (error) {
    const reason = connections.unsentReason(error);
    return { error: reason ?? 'no response within ten seconds, or the connection was lost: the core ends such a call as unknown' };
  }
}

const isTaken = (sent: Sent) => 'status' in sent && sent.status >= 200 && sent.status < 300;
/** Only a 401 is retried. With any other status, calls would fail if the adapter's clock or secret was wrong. */
const isRefused = (sent: Sent) => 'status' in sent && sent.status === 401;

function sayOf(sent: Sent, isRight: (sent: Sent) => boolean, what: string, advice: string): void {
  say(isRight(sent), what, `${'status' in sent ? `the response was ${sent.status}` : sent.error}. ${advice}`);
}

function createHandoff(contact = {}, variables: Record<string, string> = {}): Handoff {
  const id = randomUUID();
  const customer = { id: 'provider-check', name: 'Provider check' };
  return {
    ...{ handoffId: id, requestId: `provider-check-${id}`, contactId: id, campaignId: customer.id, placedAt: new Date().toISOString() },
    ...{ contact: { phone, ...contact }, variables },
    ...{ campaign: { ...customer, settings: {} }, account: customer, partner: customer },
  };
}

/** For each hand-off, the number of reports, and the states that they contained. */
const outcomes = new Map<string, { reports: number; states: Set<string> }>();

/** Accepts outcomes as the core does, but refuses the first report for each hand-off. */
const server = createServer(async (incoming, response) => {
  const body = await buffer(incoming);
  const header = (name: string) => String(incoming.headers[name] ?? '');
  if (incoming.method !== 'POST' || incoming.url !== '/dialer/outcomes') return response.writeHead(404).end();
  if (!isSigned(header, body, secrets, now())) {
    const advice = 'its signature is missing, wrong or older than five minutes. Sign "id.timestamp.body" with the secret';
    say(false, 'An outcome is signed', advice);
    return response.writeHead(401).end();
  }
  const checked = validate(outcomeSchema, parseJson(body.toString()) ?? null);
  if (!checked.ok) {
    say(false, 'Every outcome has valid fields', checked.errors.map(({ path, message }) => `${path} ${message}`).join('; '));
    return response.writeHead(422).end();
  }
  const outcome = outcomes.get(checked.data.handoffId);
  if (!outcome) {
    say(false, 'An outcome belongs to a hand-off that was sent', `${checked.data.handoffId} doesn't. Report the handoffId unchanged`);
    return response.writeHead(404).end();
  }
  outcome.states.add(checked.data.state);
  return response.writeHead(++outcome.reports === 1 ? 503 : 204).end();
});

async function checkHandoffs(): Promise<boolean> {
  const forged = await send(createHandoff(), { by: `whsec_${Buffer.alloc(32, 'x').toString('base64')}` });
  if ('error' in forged) {
    say(false, 'The adapter is reachable', forged.error);
    return false;
  }
  const forgers = 'Anyone who finds the address could make your adapter place calls. Respond with 401';
  sayOf(forged, isRefused, 'A hand-off with a wrong signature gets a 401', forgers);
  const stale = await send(createHandoff(), { at: now() - 600 });
  const replayers = 'Anyone who has recorded one could send it again. Respond with 401';
  sayOf(stale, isRefused, 'A hand-off signed ten minutes ago gets a 401', replayers);
  const plain = createHandoff();
  const name = 'Zoë "O’Neill" <&>';
  const variables = { orderNumber: '4711', größe: 'ß\n\t"\\</Say>', 'SHELL(true)': '', empty: '' };
  const whole = createHandoff({ name, timeZone: 'Europe/Berlin' }, variables);
  for (const handoff of [plain, whole]) outcomes.set(handoff.handoffId, { reports: 0, states: new Set() });
  const first = await send(plain);
  sayOf(first, isTaken, 'A hand-off is accepted', 'Respond with 2xx once you have the call');
  const twice = 'Respond with 2xx and make no second call, or leave DIALER_DEDUPLICATES unset';
  sayOf(await send(plain), isTaken, 'The same hand-off is accepted again', twice);
  const every = await send(whole);
  const fields = 'A hand-off may contain a name, a time zone and variables with any characters';
  sayOf(every, isTaken, 'A hand-off with every optional field is accepted', fields);
  return isTaken(first) || isTaken(every);
}

async function checkOutcomes(): Promise<void> {
  const deadline = performance.now() + wait * 1_000;
  const isWhole = () => [...outcomes.values()].every(({ reports }) => reports >= 2);
  while (!isWhole() && performance.now() < deadline) await setTimeout(50);
  for (const [index, { reports, states }] of [...outcomes.values()].entries()) {
    const which = index === 0 ? 'the repeated hand-off' : 'the hand-off with every field';
    const missing = `no report arrived at http://127.0.0.1:${port}/dialer/outcomes within ${wait} seconds`;
    say(reports > 0, `The outcome of ${which} is reported`, missing);
    if (reports === 0) continue;
    const once = "the first report got 503, and it wasn't repeated. Repeat a report until it gets 204";
    say(reports > 1, "It's reported again after the core couldn't accept it", once);
    const several = `${[...states].join(' and ')} were reported. One hand-off is one call, and has one outcome`;
    say(states.size === 1, 'Only one outcome is reported', several);
  }
}

server.listen(port, '127.0.0.1', async () => {
  const address = server.address();
  const at = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`;
  process.stdout.write(`checking ${url}, which reports outcomes to ${at}/dialer/outcomes and calls ${phone}\n`);
  if (await checkHandoffs()) await checkOutcomes();
  server.closeAllConnections();
  server.close();
  process.stdout.write(failures === 0 ? 'All checks passed.\n' : `${counted(failures, 'check')} failed.\n`);
  process.exitCode = failures === 0 ? 0 : 1;
});
server.on('error', (error) => stop(`Port ${port} can't be used: ${error.message}. Stop the core, or choose another --port.`));
