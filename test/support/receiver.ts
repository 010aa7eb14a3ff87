import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Handoff, handoffSchema } from '#contract/calls/dialer.ts';

/** The secret that the core and provider share in tests. */
export const signingSecret = `whsec_${'core'.repeat(10)}`;

export type Received = { handoff: Handoff; headers: IncomingMessage['headers']; body: Buffer };

/** Starts a provider's receiving side. Responds to each hand-off as the test specifies, or else with 202. */
export async function startReceiver(
  answer: (received: Received, response: ServerResponse) => unknown = (_, response) => response.writeHead(202).end(),
  port = 0,
) {
  const received: Received[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = createServer(async (request, response) => {
    // A core that is killed may have sent only a part of its request.
    const body = await buffer(request).catch(() => null);
    if (!body?.length) return;
    const one = { handoff: handoffSchema.parse(JSON.parse(body.toString())), headers: request.headers, body };
    received.push(one);
    await answer(one, response);
    for (const { count, resolve } of waiting) if (received.length >= count) resolve();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/calls`,
    received,
    /** Waits until this many hand-offs have arrived. */
    async until(count: number): Promise<void> {
      if (received.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
