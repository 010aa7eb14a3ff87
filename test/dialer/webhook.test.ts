import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { webhookProvider } from '../../core/dialer/webhook.ts';
import type { ClaimedCall } from '../../core/domain/model.ts';
import { fakeClock } from '../support/clock.ts';
import { signingSecret, startReceiver } from '../support/receiver.ts';

const call: ClaimedCall = {
  ...{ contactId: 'c', requestId: 'r', campaignId: 'g', phone: '+493012345678', name: null, timeZone: null, variables: {} },
  ...{ placedAt: 1, notBefore: null, notAfter: null, firstAttemptAt: 1, provider: 'webhook', attempt: 1 },
  ...{ handoff: 'open', leaseUntil: 30_000 },
};
const provider = (url: string) => webhookProvider({ url, secrets: [signingSecret], deduplicates: false }, fakeClock());

describe('the answer of a webhook', () => {
  const handOff = async (answer: (response: ServerResponse) => void) => {
    const receiver = await startReceiver((_, response) => answer(response));
    try {
      return await provider(receiver.url).handOff(call);
    } finally {
      await receiver.close();
    }
  };

  it('may say in how many seconds to try again', async () => {
    expect(await handOff((response) => response.writeHead(503, { 'Retry-After': '120' }).end())).to.include({
      kind: 'not-taken',
      retryAfter: 120,
    });
  });

  for (const header of ['soon', '-5', 'Infinity', '']) {
    it(`says no time with the Retry-After ${JSON.stringify(header)}`, async () => {
      expect(await handOff((response) => response.writeHead(503, { 'Retry-After': header }).end())).not.to.have.property('retryAfter');
    });
  }

  it('counts as soon as its status is there, though its body breaks off', async () => {
    expect(
      await handOff((response) => response.writeHead(202, { 'Content-Length': '100' }).write('{', () => response.destroy())),
    ).to.deep.equal({
      kind: 'taken',
    });
  });

  it('is shortened to what a call keeps, without control characters', async () => {
    const result = await handOff((response) => response.writeHead(422).end(`\u001b[31m${'no '.repeat(10_000)}`));
    expect(result.kind === 'rejected' && result.detail).to.match(/^The provider answered 422: \[31m(no )+n?o?$/);
    expect(result.kind === 'rejected' && result.detail.length).to.be.below(1_001);
  });
});

describe('a webhook that closes the connections it has kept', () => {
  it('gets each hand-off, and leaves none in doubt', async () => {
    const served = new WeakSet<Socket>();
    const server = createServer((request, response) => {
      // What a provider does that has just closed an idle connection when the next request comes in on it.
      if (served.has(request.socket)) request.socket.destroy();
      else response.writeHead(202, { Connection: 'keep-alive' }).end();
      served.add(request.socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const { handOff } = provider(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`);
    const results = [await handOff(call), await handOff(call), await handOff(call)];
    server.closeAllConnections();
    server.close();
    expect(results).to.deep.equal([{ kind: 'taken' }, { kind: 'taken' }, { kind: 'taken' }]);
  });
});
