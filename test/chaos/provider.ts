import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { handoffSchema } from '#contract/calls/dialer.ts';
import { sign } from '#contract/calls/signature.ts';
import { ask } from '../support/http.ts';

export const secret = `whsec_${'chaos'.repeat(8)}`;

/** Answers a hand-off. @returns whether the provider calls: false only where it said so */
export type Manner = (turn: number, response: ServerResponse, request: IncomingMessage) => boolean;

export const takes: Manner = (_, response) => {
  response.writeHead(202).end();
  return true;
};

/** Takes its time, so that calls queue and hand-offs are under way. */
export const takesAfter =
  (ms: number): Manner =>
  (_, response) => {
    setTimeout(() => response.writeHead(202).end(), ms);
    return true;
  };

/** Every fifth is refused for now, every twentieth taken without an answer. */
export const failsAndDrops: Manner = (turn, response) => {
  if (turn % 5 === 0) {
    response.writeHead(503).end();
    return false;
  }
  if (turn % 20 === 1) response.destroy();
  else response.writeHead(202).end();
  return true;
};

export type Calls = { of(contactId: string): number; twice(): number };
export type Provider = Awaited<ReturnType<typeof startProvider>>;

/** A provider that counts whom it calls, and how often. One that de-duplicates calls once for each hand-off id. */
export async function startProvider(manner: Manner, deduplicates: boolean) {
  const handoffs = new Map<string, string[]>();
  const arrivals = new Map<string, number>();
  let turn = 0;
  let current = manner;
  let report: (handoffId: string) => void = () => undefined;

  const server = createServer(async (request, response) => {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const body = await text(request).catch(() => '');
    if (body === '') return;
    const { handoffId, contactId } = handoffSchema.parse(JSON.parse(body));
    if (!current(++turn, response, request)) return;
    if (!arrivals.has(contactId)) arrivals.set(contactId, performance.now());
    handoffs.set(contactId, [...(handoffs.get(contactId) ?? []), handoffId]);
    report(handoffId);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();

  const callsOf = (contactId: string) => {
    const ids = handoffs.get(contactId) ?? [];
    return deduplicates ? new Set(ids).size : ids.length;
  };
  const calls: Calls = {
    of: callsOf,
    twice: () => [...handoffs.keys()].filter((contactId) => callsOf(contactId) > 1).length,
  };
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`,
    calls,
    /** When each contact's call was first taken. */
    arrivals,
    handOffs: () => turn,
    behave(next: Manner) {
      current = next;
    },
    onTaken(listener: (handoffId: string) => void) {
      report = listener;
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Reports that a call is over. @returns whether the core took it */
export async function reportCompleted(coreUrl: string, handoffId: string): Promise<boolean> {
  const raw = JSON.stringify({ handoffId, state: 'completed' });
  const headers = sign(handoffId, raw, secret, Math.floor(Date.now() / 1_000));
  const answer = await ask('POST', `${coreUrl}/dialer/outcomes`, { raw, headers }).catch(() => null);
  return answer?.status === 204;
}
