import dns from 'node:dns';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { mock } from 'node:test';
import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { limits } from '#contract/limits.ts';
import { timeouts, webhookProvider } from '../../core/dialer/webhook.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import type { ClaimedCall } from '../../core/domain/ports.ts';
import { claimedCall } from '../support/claimed-call.ts';
import { fakeClock } from '../support/clock.ts';
import { listenHere } from '../support/listen.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';

const clock = fakeClock();
const provider = (url: string) => webhookProvider({ url, secrets: [signingSecret], deduplicates: false }, clock);

describe('a hand-off through a webhook', () => {
  /** Hands off a call. @returns the request that the provider receives */
  const sent = async (more: Partial<ClaimedCall>) => {
    let method: string | undefined;
    const receiver = await startReceiver((_, response) => {
      ({ method } = response.req);
      response.writeHead(202).end();
    });
    try {
      const webhook = provider(receiver.url);
      expect(webhook.name).to.equal('webhook');
      expect(webhook.deduplicates).to.equal(false);
      expect(webhook.conclude(claimedCall())).to.equal(null);
      await webhook.handOff(claimedCall(more));
      const [received] = receiver.received;
      if (!received) throw new Error('The provider got no request.');
      return { ...received, method };
    } finally {
      await receiver.close();
    }
  };
  const identifiers = { handoffId: 'c', requestId: 'r', contactId: 'c', campaignId: 'g', placedAt: '1970-01-01T00:00:00.001Z' };
  const customer = {
    campaign: { id: 'g', name: 'Recall', settings: {} },
    account: { id: 'a', name: 'Blue' },
    partner: { id: 'p', name: 'North' },
  };

  it('sends the whole call as JSON, signed at the current time with the hand-off ID', async () => {
    const { handoff, headers, body, method } = await sent({ name: 'Ada', timeZone: 'UTC', variables: { a: 'b' } });
    const contact = { phone: '+493012345678', name: 'Ada', timeZone: 'UTC' };
    expect(handoff).to.deep.equal({ ...identifiers, ...customer, contact, variables: { a: 'b' } });
    const signature = sign('c', body, signingSecret, Math.floor(clock.now() / 1_000));
    expect(headers).to.include({ 'content-type': 'application/json', ...signature });
    expect(method).to.equal('POST');
  });

  it("omits the fields that the call doesn't have", async () => {
    const { body } = await sent({});
    expect(JSON.parse(body.toString())).to.deep.equal({ ...identifiers, ...customer, contact: { phone: '+493012345678' }, variables: {} });
  });

  it('counts as not sent if the connection is refused', async () => {
    const receiver = await startReceiver();
    await receiver.close();
    expect(await provider(receiver.url).handOff(claimedCall())).to.deep.equal({
      kind: 'not-taken',
      detail: "The provider couldn't be reached: connection refused.",
      reason: 'connection refused',
    });
  });

  /** Hands a call off to a server. @param on the server's handler for a connection @returns the result */
  const through = async (on: (socket: Socket) => void, url = (port: number) => `http://127.0.0.1:${port}/`) => {
    const { port, close } = await listenHere(createTcpServer(on));
    return provider(url(port)).handOff(claimedCall()).finally(close);
  };
  const answering = (status: string) => (socket: Socket) => socket.once('data', () => socket.end(`HTTP/1.1 ${status}\r\n\r\n`));

  it("counts as not sent if the provider's host name doesn't exist", async () => {
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    const lookup = mock.method(dns, 'lookup', (_name: string, _options: object, done: (error: Error) => void) => done(error));
    const { kind, ...more } = await provider('http://provider.invalid/')
      .handOff(claimedCall())
      .finally(() => lookup.mock.restore());
    expect({ kind, ...more }).to.include({ kind: 'not-taken', reason: 'host not found' });
  });

  it('counts as not sent if TLS fails, or the connection is reset during the handshake', async () => {
    const https = (port: number) => `https://127.0.0.1:${port}/`;
    for (const on of [answering('200 OK'), (socket: Socket) => socket.once('data', () => socket.resetAndDestroy())])
      expect(await through(on, https)).to.have.property('kind', 'not-taken');
  });

  it("counts as not sent if connecting took so long that it mustn't begin anymore", async () => {
    const receiver = await startReceiver();
    const late = claimedCall({ claimedAt: performance.now() - dialingLimits.start.toMillis() });
    const reason = 'connecting took too long';
    expect(await provider(receiver.url).handOff(late)).to.deep.include({ kind: 'not-taken', reason });
    await receiver.close();
    expect(receiver.received).to.deep.equal([]);
  });

  for (const [when, on] of [
    ['before its body arrives', (socket: Socket) => socket.once('data', () => socket.resetAndDestroy())],
    [
      'after its body arrives',
      (socket: Socket) => {
        let got = '';
        socket.on('data', (chunk) => {
          got += chunk;
          if (got.endsWith('}')) socket.resetAndDestroy();
        });
      },
    ],
  ] as const) {
    it(`may have been accepted if the connection is reset ${when}`, async () => {
      expect(await through(on)).to.have.property('kind', 'answer-lost');
    });
  }
});

describe("a webhook's response", () => {
  const handOff = async (answer: (response: ServerResponse) => void, after?: Promise<void>) => {
    const receiver = await startReceiver((_, response) => answer(response));
    try {
      const result = await provider(receiver.url).handOff(claimedCall());
      await after;
      return result;
    } finally {
      await receiver.close();
    }
  };

  it('can set the time of the next attempt, in seconds or as a date, with each status that the core retries', async () => {
    const inTwoMinutes = new Date(clock.now() + 120_000).toUTCString();
    for (const status of [401, 429, 503])
      for (const header of ['120', inTwoMinutes])
        expect(await handOff((response) => response.writeHead(status, { 'Retry-After': header }).end())).to.include({
          kind: 'not-taken',
          retryAfter: 120,
        });
  });

  for (const header of ['soon', '-5', 'Infinity', '', 'Sun, 22 Nov 2020 12:00:00 GMT']) {
    it(`doesn't set the time of the next attempt with Retry-After: ${JSON.stringify(header)}`, async () => {
      expect(await handOff((response) => response.writeHead(503, { 'Retry-After': header }).end())).not.to.have.property('retryAfter');
    });
  }

  it('counts as soon as its status arrives, even if its body is cut off', async () => {
    expect(
      await handOff((response) => response.writeHead(202, { 'Content-Length': '100' }).write('{', () => response.destroy())),
    ).to.deep.equal({
      kind: 'taken',
    });
  });

  it('is shortened to the length that a call can store, without control characters', async () => {
    const result = await handOff((response) => response.writeHead(422).end(`\u001b[31m${'no '.repeat(10_000)}`));
    expect(result.kind === 'rejected' && result.detail).to.match(/^The provider returned 422: \[31m(no )+n?o?$/);
    expect(result.kind === 'rejected' && result.detail.length).to.be.at.most(limits.detail);
  });

  for (const [status, kind, why = `HTTP ${status}`] of [
    [200, 'taken'],
    [299, 'taken'],
    [300, 'rejected'],
    [400, 'rejected'],
    [401, 'not-taken', "HTTP 401, so it doesn't accept the signature or the time"],
    [402, 'rejected'],
    [403, 'rejected'],
    [428, 'rejected'],
    [429, 'not-taken'],
    [430, 'rejected'],
    [499, 'rejected'],
    [500, 'not-taken'],
    [599, 'not-taken'],
  ] as const) {
    it(`with the status ${status} means that the call is ${kind}`, async () => {
      const detail = kind === 'taken' ? {} : { detail: `The provider returned ${status}.` };
      const reason = kind !== 'taken' ? { reason: why } : {};
      expect(await handOff((response) => response.writeHead(status).end())).to.deep.equal({ kind, ...detail, ...reason });
    });
  }

  it("isn't followed if it's a redirect", async () => {
    let requests = 0;
    const result = await handOff((response) => {
      requests++;
      response.writeHead(307, { Location: '/elsewhere' }).end();
    });
    expect([result.kind, requests]).to.deep.equal(['rejected', 1]);
  });

  it('is stored on one line, even if it arrives in several chunks', async () => {
    const result = await handOff((response) => {
      response.writeHead(422).write('no\r\n\tsuch ');
      setImmediate(() => response.end('line\n'));
    });
    expect(result).to.deep.equal({ kind: 'rejected', detail: 'The provider returned 422: no such line', reason: 'HTTP 422' });
  });

  it('is read only up to the length that a call stores', async () => {
    // The body never ends.
    const result = await handOff((response) => response.writeHead(422).write('x'.repeat(limits.detail)));
    expect(result).to.have.property('kind', 'rejected');
  });

  it("doesn't add any text if it's cut off after its status", async () => {
    const result = await handOff((response) =>
      response.writeHead(422, { 'Content-Length': '100' }).write('{', () => setImmediate(() => response.destroy())),
    );
    expect(result).to.deep.equal({ kind: 'rejected', detail: 'The provider returned 422.', reason: 'HTTP 422' });
  });

  it("doesn't keep the connection open, however long it is", async () => {
    const closed = Promise.withResolvers<void>();
    const result = await handOff((response) => {
      response.once('close', closed.resolve);
      response.writeHead(202).write('x'.repeat(1_000_000));
    }, closed.promise);
    expect(result).to.deep.equal({ kind: 'taken' });
  });

  it('is lost if the connection closes before it arrives', async () => {
    expect(await handOff((response) => response.destroy())).to.deep.equal({
      kind: 'answer-lost',
      detail: "The provider's response was lost (UND_ERR_SOCKET).",
      reason: 'no response (UND_ERR_SOCKET)',
    });
  });

  it("is lost if it doesn't arrive in time", async () => {
    const { answer } = timeouts;
    timeouts.answer = 500;
    try {
      expect(await handOff(() => undefined)).to.deep.equal({
        kind: 'answer-lost',
        detail: "The provider's response was lost (no response in time).",
        reason: 'no response (no response in time)',
      });
    } finally {
      timeouts.answer = answer;
    }
  });
});

describe('a webhook that closes idle connections', () => {
  it('gets each hand-off, and no call stays in doubt', async () => {
    const served = new WeakSet<Socket>();
    const server = await listenHere(
      createServer((request, response) => {
        // Behaves like a provider that has just closed an idle connection when the next request arrives on it.
        if (served.has(request.socket)) request.socket.destroy();
        else response.writeHead(202, { Connection: 'keep-alive' }).end();
        served.add(request.socket);
      }),
    );
    const { handOff } = provider(`${server.url}/`);
    const results = [await handOff(claimedCall()), await handOff(claimedCall()), await handOff(claimedCall())];
    await server.close();
    expect(results).to.deep.equal([{ kind: 'taken' }, { kind: 'taken' }, { kind: 'taken' }]);
  });
});
