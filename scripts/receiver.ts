// The whole receiving side of the dialer's webhook: prints each hand-off, and reports an outcome three seconds later.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

const [port = '9000', core = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const secrets = (process.env['DIALER_SECRETS'] ?? '').split(','); // The newest first; all of them verify.
const taken = new Set<string>();
const now = () => Math.floor(Date.now() / 1_000);
const mac = (time: string, body: Uint8Array | string, secret = secrets[0] ?? '') =>
  createHmac('sha256', secret).update(`${time}.`).update(body).digest();

function isSigned(header: string, body: Uint8Array): boolean {
  const [, time = '', hex = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  const isRight = (secret: string) => secret !== '' && timingSafeEqual(mac(time, body, secret), Buffer.from(hex, 'hex'));
  return hex !== '' && Math.abs(now() - Number(time)) <= 300 && secrets.some(isRight);
}

async function report(handoffId: string): Promise<void> {
  const body = JSON.stringify({ handoffId, state: 'completed', detail: 'Talked to the contact.', durationSeconds: 3 });
  const time = String(now());
  const headers = { 'Content-Type': 'application/json', 'Callkey-Signature': `t=${time},v1=${mac(time, body).toString('hex')}` };
  const { status } = await fetch(`${core}/dialer/outcomes`, { method: 'POST', headers, body });
  process.stdout.write(`reported ${handoffId}: ${status}\n`);
}

createServer(async (request, response) => {
  const body = await buffer(request).catch(() => null);
  if (!body || !isSigned(String(request.headers['callkey-signature']), body)) return response.writeHead(401).end();
  const { handoffId, contact } = JSON.parse(body.toString());
  if (!taken.has(handoffId)) {
    taken.add(handoffId); // The same hand-off may come again: one id is one call.
    process.stdout.write(`calling ${contact.phone} (${handoffId})\n`);
    setTimeout(() => report(handoffId).catch((error) => process.stderr.write(`${error}\n`)), 3_000);
  }
  return response.writeHead(202).end();
}).listen(Number(port), '127.0.0.1', () => process.stdout.write(`waiting for hand-offs on http://127.0.0.1:${port}/\n`));
