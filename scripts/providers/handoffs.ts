// What the recipes of core/docs/providers share: they take hand-offs from the core, ask a provider to call, and report how the call ended.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { type Handoff, handoffSchema, type Outcome } from '#contract/dialer.ts';

/** `unknown`: nobody knows whether the provider calls. */
type Asked = 'taken' | 'later' | 'unknown' | { refused: string };

type Recipe = {
  /** Asks the provider to call. */
  call(handoff: Handoff): Promise<Asked>;
  /**
   * What the provider reports at POST /outcomes: null where the call goes on, or is not one of ours.
   *
   * @throws Error where the report is not signed by the provider
   */
  outcomeOf?(headers: IncomingHttpHeaders, body: string, path: string): Outcome | null;
};

export function setting(name: string, ifUnset?: string): string {
  const value = process.env[name] || ifUnset;
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}

const port = Number(setting('PORT', '9000'));
const core = setting('CALLKEY_SERVER', 'http://127.0.0.1:8080');
/** The newest first. */
const webhooks = setting('DIALER_SECRETS')
  .split(',')
  .map((secret) => new Webhook(secret));

const log = (line: string) => process.stdout.write(`${line}\n`);

/** Takes the core's hand-offs at `/`, and the provider's reports at `/outcomes`. */
export function serve({ call, outcomeOf }: Recipe): void {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const path = request.url ?? '/';
    let handoff: Handoff;
    try {
      if (path.startsWith('/outcomes') && outcomeOf) {
        const outcome = outcomeOf(request.headers, body, path);
        if (outcome) report(outcome);
        return response.writeHead(204).end();
      }
      handoff = verified(request.headers, body);
    } catch {
      return response.writeHead(401).end();
    }
    const asked = await call(handoff);
    log(`${handoff.handoffId}: ${typeof asked === 'string' ? asked : 'refused'}`);
    // No answer says that the call may be under way: the core never repeats it then, and nobody is called twice.
    if (asked === 'unknown') return response.destroy();
    if (asked === 'taken') return response.writeHead(202).end();
    return asked === 'later' ? response.writeHead(503).end() : response.writeHead(422).end(asked.refused);
  });
  server.listen(port, '127.0.0.1', () => {
    const address = server.address();
    log(`waiting for hand-offs on http://127.0.0.1:${typeof address === 'object' ? address?.port : port}/`);
  });
}

/** @throws Error unless one of the secrets has signed it */
function verified(given: IncomingHttpHeaders, body: string): Handoff {
  const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
  const isSigned = webhooks.some((webhook) => {
    try {
      return webhook.verify(body, headers) !== undefined;
    } catch {
      return false;
    }
  });
  if (!isSigned) throw new Error('not signed by the core');
  return handoffSchema.parse(JSON.parse(body));
}

/** In seconds. A call without an outcome ends as `unknown` after four hours. */
const waits = [1, 5, 30, 60, 300, 900, 1_800, 3_600];

/** Repeats an outcome until the core has taken it. */
export async function report(outcome: Outcome): Promise<void> {
  const body = JSON.stringify(outcome);
  for (const wait of [...waits, null]) {
    const [id, time] = [randomUUID(), new Date()];
    const headers = new Headers({ 'Content-Type': 'application/json', 'webhook-id': id });
    headers.set('webhook-timestamp', String(Math.floor(time.getTime() / 1_000)));
    headers.set('webhook-signature', webhooks[0]?.sign(id, time, body) ?? '');
    const answer = await fetch(`${core}/dialer/outcomes`, { method: 'POST', headers, body }).catch(() => null);
    log(`${outcome.handoffId}: ${outcome.state}, ${answer?.status ?? 'the core did not answer'}`);
    if (answer?.status === 204 || wait === null) return;
    await setTimeout(wait * 1_000);
  }
}

/** Asks a provider over HTTP. It must answer before the core gives up, after ten seconds. */
export async function ask(url: string, request: RequestInit): Promise<Asked> {
  const answer = await fetch(url, { ...request, method: 'POST', signal: AbortSignal.timeout(8_000) }).catch(() => null);
  if (!answer || answer.status >= 500) return 'unknown';
  if (answer.ok) return 'taken';
  log(`the provider answered ${answer.status}`);
  // The others are about this account, not about this call: a wrong password, no money, too many at once.
  if (![400, 422].includes(answer.status)) return 'later';
  return { refused: (await answer.text().catch(() => '')).slice(0, 200) };
}
