import type { ServerResponse } from 'node:http';
import { startReceiver } from '../support/provider.ts';
import { noteChange } from './faults.ts';
import { chooseBehavior } from './model.ts';

/** Starts a provider that behaves as the model says. @param report reports an outcome until a core has stored it */
export async function startProvider(report: (outcome: object) => Promise<void>) {
  /** How many times the provider was asked to make each call. */
  const handoffs = new Map<string, number>();
  /** The responses that the silent provider hasn't sent yet. */
  const silent: ServerResponse[] = [];
  let responding = 0;

  const { url, close } = await startReceiver(async ({ handoff: { handoffId, contact } }, response) => {
    handoffs.set(handoffId, (handoffs.get(handoffId) ?? 0) + 1);
    responding++;
    await respond(handoffId, contact.phone, response).finally(() => {
      responding--;
      noteChange();
    });
  });

  async function respond(handoffId: string, phone: string, response: ServerResponse): Promise<void> {
    const behavior = provider.isUp ? chooseBehavior(phone) : 'not-now';
    if (behavior === 'is silent') return void silent.push(response);
    if (behavior === 'loses') return void response.destroy();
    if (behavior === 'reports immediately') for (const state of ['completed', 'busy']) await report({ handoffId, state });
    const status = { refuses: 422, 'not-now': provider.isUp ? 429 : 503, takes: 202, 'reports immediately': 202 }[behavior];
    response.writeHead(status).end();
  }

  const provider = {
    isUp: true,
    handoffs,
    url,
    close,
    /** Whether the provider has requests that it's about to respond to. */
    isBusy: () => responding > 0,
    async answerSilent(takes: boolean) {
      for (const response of silent.splice(0)) response.writeHead(takes ? 202 : 503).end();
      return { status: 200, headers: {}, text: '', json: {} };
    },
  };
  return provider;
}
