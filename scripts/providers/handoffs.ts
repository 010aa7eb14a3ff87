// Shared by the recipes in core/docs/providers: accepts hand-offs from the core, asks a provider to call, and reports how the call ended.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { request } from 'undici';
import { z } from 'zod';
import { type Handoff, handoffSchema, type Outcome } from '#contract/calls/dialer.ts';
import { isSigned, sign } from '#contract/calls/signature.ts';
import { parseJson } from '#contract/text/json.ts';
import { openConnections } from '../../core/dialer/webhook.ts';
import { readBytes } from '../../core/http/middleware/body.ts';

/**
 * The result of asking for a call. `taken`: the provider is calling. `later`: it definitely isn't calling, but may accept the call later.
 * `refused`: it will never accept the call. `unknown`: it may or may not be calling.
 */
export type CallResult = 'taken' | 'unknown' | { later: string } | { refused: string };

type Recipe = {
  /** Asks the provider to call. */
  call(handoff: Handoff): Promise<CallResult>;
  /**
   * Interprets what the provider reports to POST /outcomes. Returns null if the call continues, or isn't one of ours.
   *
   * @throws Error if the provider hasn't signed the report
   */
  readOutcome?(headers: IncomingHttpHeaders, body: string, path: string): Outcome | null;
};

export function setting(name: string, ifUnset?: string): string {
  const value = process.env[name] || ifUnset;
  if (value === undefined) throw new Error(`Set ${name}.`);
  return value;
}

const port = Number(setting('PORT', '9000'));
const core = setting('CALLKEY_SERVER', 'http://127.0.0.1:8080');
/** Newest first. */
const secrets = setting('DIALER_SECRETS').split(',');

/** In seconds. */
const now = () => Math.floor(Date.now() / 1_000);

export const log = (line: string) => process.stdout.write(`${line}\n`);

/** In bytes. Providers send transcripts with their reports. */
const maxReport = 1_000_000;

/** Accepts the core's hand-offs at `/`, and the provider's reports at `/outcomes`. */
export function serve({ call, readOutcome }: Recipe): void {
  const server = createServer(async (request, response) => {
    const path = request.url ?? '/';
    let handoff: Handoff;
    try {
      const bytes = await readBytes(request, maxReport);
      const body = bytes.toString();
      if (path.startsWith('/outcomes') && readOutcome) {
        const outcome = readOutcome(request.headers, body, path);
        if (outcome) report(outcome);
        return response.writeHead(204).end();
      }
      if (!isSigned((name) => String(request.headers[name] ?? ''), bytes, secrets, now())) throw new Error('not signed by the core');
      handoff = handoffSchema.parse(JSON.parse(body));
    } catch {
      return response.writeHead(401).end();
    }
    const result = await call(handoff);
    const words = typeof result === 'string' ? result : Object.entries(result).flat().join(', ');
    log(`${handoff.handoffId}: ${words}`);
    // Without a response, the core knows that the call may be in progress. It then never repeats the call, so no one is called twice.
    if (result === 'unknown') return response.destroy();
    if (result === 'taken') return response.writeHead(202).end();
    return 'later' in result ? response.writeHead(503).end(result.later) : response.writeHead(422).end(result.refused);
  });
  server.listen(port, '127.0.0.1', () => {
    const address = server.address();
    log(`waiting for hand-offs on http://127.0.0.1:${typeof address === 'object' ? address?.port : port}/`);
  });
}

/**
 * The waits between attempts, in seconds. Together, they take less than two hours. After four hours without an outcome, the call becomes
 * `unknown`, but even then, the core accepts an outcome.
 */
const waits = [1, 5, 30, 60, 300, 900, 1_800, 3_600];

/** Repeats an outcome until the core has accepted it, or says that it never will. */
export async function report(outcome: Outcome): Promise<void> {
  const body = JSON.stringify(outcome);
  for (const wait of [...waits, null]) {
    const headers = { 'Content-Type': 'application/json', ...sign(randomUUID(), body, secrets[0] ?? '', now()) };
    const answer = await fetch(`${core}/dialer/outcomes`, { method: 'POST', headers, body }).catch(() => null);
    log(`${outcome.handoffId}: ${outcome.state}, ${answer?.status ?? 'no response from the core'}`);
    if ([204, 400, 404, 413, 422].includes(answer?.status ?? 0) || wait === null) return;
    await setTimeout(wait * 1_000);
  }
}

/** In ms. The core waits at most ten seconds. */
const timeouts = { connect: 3_000, answer: 8_000 };
const connections = openConnections(timeouts.connect);

/** Asks a provider over HTTP. @param interpret interprets a response, if this provider's responses differ from most others' */
export async function ask(
  url: string,
  { headers, body }: { headers: Record<string, string>; body: string },
  interpret: (status: number, text: string) => CallResult | null = () => null,
): Promise<CallResult> {
  try {
    const signal = AbortSignal.timeout(timeouts.answer);
    const answer = await request(url, { method: 'POST', headers, body, dispatcher: connections.dispatcher, reset: true, signal });
    const words = await answer.body.text().catch(() => '');
    return interpret(answer.statusCode, words) ?? interpretByStatus(answer.statusCode, shortened(words) || `HTTP ${answer.statusCode}`);
  } catch (error) {
    const reason = connections.unsentReason(error);
    return reason === null ? 'unknown' : { later: reason };
  }
}

/** Shortens the provider's description of an error. If it's JSON, keeps only its message. */
export function shortened(words: string): string {
  const message = messageSchema.safeParse(parseJson(words)).data ?? words;
  return message.slice(0, 200);
}

const messageSchema = z
  .object({ message: z.string().optional(), error: z.string().optional(), error_message: z.string().optional() })
  .transform(({ message, error, error_message }) => message ?? error_message ?? error ?? '');

function interpretByStatus(status: number, words: string): CallResult {
  // A 502 or another 5xx may come from a proxy that has already forwarded the request.
  if (status >= 500) return 'unknown';
  if (status >= 200 && status < 300) return 'taken';
  // Other statuses are about the account, not about this call: a wrong password, no credit, too many calls at the same time.
  return [400, 422].includes(status) ? { refused: words } : { later: words };
}
