import type { ServerResponse } from 'node:http';
import { sign } from '#contract/calls/signature.ts';
import { ask } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/receiver.ts';

/** Responds to a hand-off. @returns false only if the response says that the provider won't make the call */
export type Behavior = (turn: number, response: ServerResponse) => boolean;

export const takes: Behavior = (_, response) => {
  response.writeHead(202).end();
  return true;
};

/** Accepts calls after a delay, so that there are always queued calls and hand-offs in progress. */
export const takesAfter =
  (ms: number): Behavior =>
  (turn, response) => {
    setTimeout(() => takes(turn, response), ms);
    return true;
  };

/** Refuses every fifth call temporarily, and accepts every twentieth without responding. */
export const failsAndDrops: Behavior = (turn, response) => {
  if (turn % 20 === 1) response.destroy();
  else response.writeHead(turn % 5 === 0 ? 503 : 202).end();
  return turn % 5 !== 0;
};

export type Provider = Awaited<ReturnType<typeof startProvider>>;

/** Starts a provider that counts whom it calls and how often. If it deduplicates, it calls once per hand-off ID. */
export async function startProvider(behavior: Behavior, deduplicates: boolean) {
  const handoffs = new Map<string, string[]>();
  /** When each contact's call was first accepted. */
  const arrivals = new Map<string, number>();
  let turn = 0;
  let current = behavior;
  let report: (handoffId: string) => void = () => undefined;

  const { url, close } = await startReceiver(({ handoff: { handoffId, contactId } }, response) => {
    response.on('error', () => undefined);
    if (!current(++turn, response)) return;
    const earlier = handoffs.get(contactId) ?? [];
    if (earlier.length === 0) arrivals.set(contactId, performance.now());
    handoffs.set(contactId, deduplicates && earlier.includes(handoffId) ? earlier : [...earlier, handoffId]);
    report(handoffId);
  });
  return {
    ...{ url, close, arrivals },
    hasCalled: (contactId: string | null) => contactId !== null && handoffs.has(contactId),
    calledTwice: () => [...handoffs.values()].filter(({ length }) => length > 1).length,
    handOffs: () => turn,
    behave(next: Behavior) {
      current = next;
    },
    onTaken(listener: (handoffId: string) => void) {
      report = listener;
    },
  };
}

/** Reports that a call has ended. @returns whether the core accepted it */
export async function reportCompleted(coreUrl: string, handoffId: string): Promise<boolean> {
  const raw = JSON.stringify({ handoffId, state: 'completed' });
  const headers = sign(handoffId, raw, signingSecret, Math.floor(Date.now() / 1_000));
  const answer = await ask('POST', `${coreUrl}/dialer/outcomes`, { raw, headers }).catch(() => null);
  return answer?.status === 204;
}
