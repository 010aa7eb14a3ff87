import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import type { Listener } from '../../core/server/connections/listener.ts';
import { hasOpenssl } from '../support/certificate.ts';
import { abortListeners, client, get, open, post, statuses } from '../support/core.ts';
import { listenHere } from '../support/listen.ts';
import { skip } from '../support/suites.ts';
import { until } from '../support/until.ts';

/** Returns what a client sends first over TLS. */
async function clientHello(): Promise<Buffer> {
  const server = createServer();
  const { port, close } = await listenHere(server);
  const client = connectTls(port, '127.0.0.1').on('error', () => undefined);
  const [socket]: Socket[] = await once(server, 'connection');
  const [hello]: Buffer[] = await once(socket ?? expect.fail(), 'data');
  client.destroy();
  await close();
  return hello ?? expect.fail();
}

describe('a connection to a crowded listener', () => {
  afterEach(abortListeners);

  it('finishes a long response even if its client sends a CONNECT request in the meantime', async () => {
    const { listener, started } = await open();
    const { socket, seen } = await client(listener);
    socket.write(`${get('/')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => started.length > 0);
    Readable.from(Array.from({ length: 100 }, () => 'x'.repeat(100_000))).pipe(started[0]?.response ?? expect.fail());
    await until(() => started.length === 2);
    started[1]?.response.end();
    await until(() => seen.isClosed);
    expect(seen.text.length > 10_000_000).to.equal(true);
    expect(statuses(seen.text)?.length).to.equal(2);
  });

  describe('over TLS', () => {
    before(function () {
      if (!hasOpenssl) skip(this, "openssl isn't installed");
    });

    /** Opens five connections whose handshakes don't get beyond the client's first message. @property answers how many got a response */
    async function openHalf({ url }: Listener) {
      const firstMessage = await clientHello();
      const half = { answers: 0, sockets: [] as Socket[] };
      for (let n = 0; n < 5; n++) {
        const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(firstMessage));
        socket.once('data', () => half.answers++).on('error', () => undefined);
        half.sockets.push(socket);
      }
      return half;
    }

    it('delays its handshake until an earlier handshake from its network has ended', async () => {
      const { listener, cuts } = await open({ isSecure: true, limits: { handshakes: 2, stuckHandshake: 60_000, lookEvery: 10 } });
      const half = await openHalf(listener);
      await until(() => half.answers === 2);
      let isDelayed = true;
      const own = client(listener).finally(() => {
        isDelayed = false;
      });
      // Handshakes from other networks don't wait.
      await client(listener, '127.0.0.2');
      expect([half.answers, isDelayed, cuts]).to.deep.equal([2, true, []]);
      for (const socket of half.sockets) socket.resetAndDestroy();
      await own;
    });

    it('is cut off if its handshake takes too long while others wait', async () => {
      const { listener, cuts } = await open({ isSecure: true, limits: { handshakes: 2, stuckHandshake: 50, lookEvery: 10 } });
      const half = await openHalf(listener);
      await until(() => half.answers === 5);
      expect(new Set(cuts)).to.deep.equal(new Set(['idle 127.0.0.1']));
      for (const socket of half.sockets) socket.destroy();
    });
  });

  it('is cut off if it holds the most unread bytes when too many are unread in total', async () => {
    const { listener, started, cuts } = await open({ limits: { waiting: 200_000 } });
    const waits = async (bytes: number) => {
      const { socket, seen } = await client(listener);
      socket.write(get('/') + post('/', 'x'.repeat(bytes)));
      return seen;
    };
    const small = await waits(10);
    const large = await Promise.all([waits(60_000), waits(60_000), waits(60_000), waits(60_000)]);
    small.text = '';
    await until(() => cuts.length > 0);
    const last = await waits(10);
    await until(() => started.length === 6);
    expect([small.isClosed, last.isClosed, large.some(({ isClosed }) => isClosed), new Set(cuts)]).to.deep.equal([
      ...[false, false, true],
      new Set(['waiting 127.0.0.1']),
    ]);
  });

  for (const count of [1, 2])
    it(`gets a 400 for invalid data only after the ${count === 1 ? 'response to the request' : 'responses to the requests'} before it`, async () => {
      const { listener, started } = await open();
      const { socket, seen } = await client(listener);
      socket.write(`${get('/').repeat(count)}nonsense\r\n\r\n`);
      for (let n = 0; n < count; n++) {
        await until(() => started.length > n);
        await new Promise((written) => socket.write('more nonsense', written));
        // The listener has been offered these bytes before it answers another connection.
        const other = await client(listener);
        other.socket.write('nonsense\r\n\r\n');
        await until(() => other.seen.isClosed);
        started[n]?.response.end();
      }
      await until(() => seen.isClosed);
      expect(statuses(seen.text)).to.deep.equal([...Array.from({ length: count }, () => '200'), '400']);
    });

  it("gets a problem with a request ID even for data that isn't a request", async () => {
    const { listener } = await open();
    for (const [data, status] of [
      ['nonsense\r\n\r\n', 400],
      [get('/', `X: ${'x'.repeat(20_000)}\r\n`), 431],
    ] as const) {
      const { socket, seen } = await client(listener);
      socket.write(data);
      await until(() => seen.isClosed);
      const [head = '', body = ''] = seen.text.split('\r\n\r\n');
      expect(head).to.match(/^Content-Type: application\/problem\+json\r$/m);
      expect(head).to.match(/^X-Request-Id: [0-9a-f-]{36}\r$/m);
      expect(JSON.parse(body)).to.include({ type: 'urn:callkey:problems#malformed-request', status });
    }
  });

  describe("at its network's limit", () => {
    /** Opens a connection from each of these addresses, whose request waits. @returns what became of each */
    async function keepBusy({ listener, started }: Awaited<ReturnType<typeof open>>, addresses: readonly string[]): Promise<string[]> {
      const results: string[] = [];
      for (const address of addresses) {
        const { socket, seen } = await client(listener, address);
        const before = started.length;
        socket.write(get('/'));
        await until(() => seen.isClosed || started.length > before);
        results.push(seen.isClosed ? 'refused' : 'served');
      }
      return results;
    }

    it('is refused even from a new address in that network, so that there is room for other networks', async () => {
      const opened = await open({ limits: { perRange: 2 } });
      const seen = await keepBusy(opened, ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.1.1']);
      expect(seen).to.deep.equal(['served', 'served', 'refused', 'served']);
    });

    it('replaces the oldest connection that has sent nothing or, if there is none, an idle connection', async () => {
      const { listener, started, cuts } = await open({ limits: { perNetwork: 3 } });
      const idle = await client(listener);
      idle.socket.write(get('/'));
      await until(() => started.length === 1);
      started[0]?.response.end();
      await until(() => idle.seen.text !== '');
      const busy = await client(listener);
      busy.socket.write(get('/'));
      await until(() => started.length === 2);
      const silent = await client(listener);
      const next = await client(listener);
      await until(() => silent.seen.isClosed);
      next.socket.write(get('/'));
      await until(() => started.length === 3);
      await client(listener);
      await until(() => idle.seen.isClosed);
      expect(busy.seen.isClosed).to.equal(false);
      expect(next.seen.isClosed).to.equal(false);
      expect(cuts).to.deep.equal(['idle 127.0.0.1', 'idle 127.0.0.1']);
    });

    it('is refused if all other connections are busy, unless it comes from another network or a trusted proxy', async () => {
      const opened = await open({ limits: { perNetwork: 1 }, proxy: '127.0.0.3' });
      const seen = await keepBusy(opened, ['127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.3']);
      expect(seen).to.deep.equal(['served', 'refused', 'served', 'served', 'served']);
      expect(opened.cuts).to.deep.equal(['refused 127.0.0.1']);
    });
  });
});
