import type { ServerResponse } from 'node:http';
import { startReceiver } from '../support/provider.ts';

/** Responds to a hand-off. @returns false only if the response says that the provider won't make the call */
export type Behavior = (turn: number, response: ServerResponse) => boolean;

export const takes: Behavior = (_, response) => {
  response.writeHead(202).end();
  return true;
};

export type Provider = Awaited<ReturnType<typeof startProvider>>;

/** Starts a provider that counts whom it calls and how many times. If it deduplicates, it calls once per hand-off ID. */
export async function startProvider(behavior: Behavior, deduplicates: boolean) {
  /** The accepted hand-offs by contact ID. */
  const handoffs = new Map<string, string[]>();
  let turn = 0;
  const { url, close } = await startReceiver(({ handoff: { handoffId, contactId } }, response) => {
    response.on('error', () => undefined);
    if (!provider.behavior(++turn, response)) return;
    const earlier = handoffs.get(contactId) ?? [];
    handoffs.set(contactId, deduplicates && earlier.includes(handoffId) ? earlier : [...earlier, handoffId]);
    provider.onTaken(handoffId);
  });
  const provider = {
    ...{ url, close, behavior },
    onTaken: (_handoffId: string): unknown => undefined,
    hasCalled: (contactId: string | null) => contactId !== null && handoffs.has(contactId),
    called: () => handoffs.size,
    calledTwice: () => [...handoffs.values()].filter(({ length }) => length > 1).length,
    handOffs: () => turn,
  };
  return provider;
}
