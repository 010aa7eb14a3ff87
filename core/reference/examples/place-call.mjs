// node place-call.mjs CAMPAIGN ORDER PHONE
import { setTimeout as wait } from 'node:timers/promises';

const { CALLKEY_SERVER: server, CALLKEY_API_KEY: key } = process.env;

async function placeCall(campaign, order, phone, attempts = 8) {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const pause = Math.min(8, 0.25 * 2 ** attempt) * (0.5 + Math.random() / 2);
    const { status, body, retryAfter } = await send(campaign, order, phone).catch(noResponse);
    if (status === 202) return body;
    if (![0, 429, 502, 503, 504].includes(status)) throw new Error(`${status}: ${body}`);
    if (retryAfter > 60) throw new Error(`The server asks you to wait ${retryAfter} s. Run this again after that.`);
    await wait(1000 * Math.max(pause, retryAfter));
  }
  throw new Error('No response. Run it again: it sends the same request ID.');
}

async function send(campaign, order, phone) {
  const answer = await fetch(`${server}/api/v1/campaigns/${campaign}/contacts/on-demand`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json', 'Idempotency-Key': `order-${order}` },
    body: JSON.stringify({ contact: { phone } }),
    redirect: 'manual',
    signal: AbortSignal.timeout(10_000),
  });
  return { status: answer.status, body: await answer.text(), retryAfter: Number(answer.headers.get('retry-after')) || 0 };
}

/** Also used for an incomplete response. */
const noResponse = () => ({ status: 0, body: '', retryAfter: 0 });

try {
  const [campaign, order, phone] = process.argv.slice(2);
  process.stdout.write(await placeCall(campaign, order, phone));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
