// The receiving side of the dialer's webhook, in full: prints each hand-off, and reports an outcome some seconds later. A starting point for
// connecting a telephony provider. Run it, and then a core:
//   DIALER_SECRETS=<a secret of at least 32 characters> node scripts/receiver.ts 9000
//   DIALER=webhook DIALER_URL=http://127.0.0.1:9000/ DIALER_SECRETS=<the same> DIALER_DEDUPLICATES=true npm start
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { isSigned, sign, signatureHeader } from '../core/contract/signature.ts';

const port = Number(process.argv[2] ?? 9000);
const core = process.env['CALLKEY_URL'] ?? 'http://127.0.0.1:8080';
const secrets = (process.env['DIALER_SECRETS'] ?? '').split(',').filter((secret) => secret !== '');
const now = () => Math.floor(Date.now() / 1_000);
const taken = new Set<string>();

async function report(handoffId: string): Promise<void> {
  const body = JSON.stringify({ handoffId, state: 'completed', detail: 'Talked to the contact.', durationSeconds: 3 });
  const headers = { 'Content-Type': 'application/json', [signatureHeader]: sign(body, secrets[0] ?? '', now()) };
  const { status } = await fetch(`${core}/dialer/outcomes`, { method: 'POST', headers, body });
  process.stdout.write(`reported ${handoffId}: ${status}\n`);
}

createServer(async (request, response) => {
  const body = await buffer(request);
  if (!isSigned(String(request.headers[signatureHeader.toLowerCase()]), body, secrets, now())) {
    response.writeHead(401).end();
    return;
  }
  const { handoffId, contact, variables } = JSON.parse(body.toString());
  // The same hand-off may come again: one id is one call.
  if (!taken.has(handoffId)) {
    taken.add(handoffId);
    process.stdout.write(`call ${contact.phone} ${JSON.stringify(variables)} (${handoffId})\n`);
    setTimeout(() => report(handoffId).catch((error) => process.stderr.write(`${error}\n`)), 3_000);
  }
  response.writeHead(202).end();
}).listen(port, '127.0.0.1', () => process.stdout.write(`waiting for calls on http://127.0.0.1:${port}/\n`));
