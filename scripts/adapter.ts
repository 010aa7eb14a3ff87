// A complete receiver for the dialer's webhook: prints each hand-off, and reports an outcome three seconds later.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const [port = '9000', core = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const webhooks = (process.env['DIALER_SECRETS'] ?? '').split(',').map((secret) => new Webhook(secret)); // Newest first.
const taken = new Set<string>();

async function report(handoffId: string): Promise<void> {
  const body = JSON.stringify({ handoffId, state: 'completed', detail: 'Talked to the contact.', durationSeconds: 3 });
  const [id, time] = [randomUUID(), new Date()];
  const headers = new Headers({ 'Content-Type': 'application/json', 'webhook-id': id });
  headers.set('webhook-timestamp', String(Math.floor(time.getTime() / 1_000)));
  headers.set('webhook-signature', webhooks[0]?.sign(id, time, body) ?? '');
  const answer = await fetch(`${core}/dialer/outcomes`, { method: 'POST', headers, body }).catch(() => null);
  process.stdout.write(`reported ${handoffId}: ${answer?.status ?? 'no response'}\n`);
  // Repeats the report until the core accepts it. A 404 is final.
  if (answer?.status !== 204 && answer?.status !== 404) setTimeout(report, 1_000, handoffId);
}

createServer(async (request, response) => {
  let body = '';
  try {
    for await (const chunk of request.setEncoding('utf8')) {
      body += chunk;
      if (body.length > 1_000_000) throw new Error('This is too long for a hand-off.');
    }
  } catch {
    return response.writeHead(401).end();
  }
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const checks = await Promise.allSettled(webhooks.map(async (webhook) => webhook.verify(body, headers)));
  if (!checks.some(({ status }) => status === 'fulfilled')) return response.writeHead(401).end();
  const { handoffId, contact } = JSON.parse(body);
  if (!taken.has(handoffId)) {
    taken.add(handoffId); // The same hand-off may arrive again, but each ID stands for one call.
    process.stdout.write(`calling ${contact.phone} (${handoffId})\n`);
    setTimeout(report, 3_000, handoffId);
  }
  return response.writeHead(202).end();
}).listen(Number(port), '127.0.0.1', () => process.stdout.write(`waiting for hand-offs on http://127.0.0.1:${port}/\n`));
