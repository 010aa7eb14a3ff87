import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { type CutReason, connectionLimits } from '../../core/server/connections/connections.ts';
import { type Listener, listen } from '../../core/server/connections/listener.ts';
import { readTls } from '../../core/server/start/config.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { skip } from '../support/skip.ts';
import { until } from '../support/until.ts';

type Started = { request: IncomingMessage; response: ServerResponse };

/** A listener whose requests wait until a test responds to them, and which records what happens to its connections. */
async function open({ isSecure = false, limits = {}, proxy = '' } = {}, handler?: RequestListener) {
  const started: Started[] = [];
  const cuts: `${CutReason} ${string}`[] = [];
  const certificate = isSecure ? selfSignedCertificate() : null;
  const listener = await listen(
    handler ?? ((request, response) => void started.push({ request, response })),
    { name: 'public', host: '0.0.0.0', port: 0 },
    {
      tls: certificate && readTls(certificate.TLS_CERT_FILE, certificate.TLS_KEY_FILE),
      isProxy: (address) => address === proxy,
      onCut: (reason, address) => cuts.push(`${reason} ${address}`),
      limits: { ...connectionLimits, ...limits },
    },
  );
  return { listener, started, cuts };
}

/** What a client sends first over TLS. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const client = connectTls(port, '127.0.0.1').on('error', () => undefined);
  const [socket]: Socket[] = await once(server, 'connection');
  const [hello]: Buffer[] = await once(socket ?? expect.fail(), 'data');
  client.destroy();
  server.close();
  return hello ?? expect.fail();
}

/** A client that reads. */
async function client(listener: Listener, localAddress = '127.0.0.1') {
  const { protocol, port } = new URL(listener.url);
  const options = { host: '127.0.0.1', port: Number(port), localAddress };
  const socket: Socket = protocol === 'https:' ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  const seen = { text: '', isClosed: false };
  socket.on('data', (chunk) => {
    seen.text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    seen.isClosed = true;
  });
  await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect');
  return { socket, seen };
}

const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const post = (path: string, body: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
const statuses = (text: string) => text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9));

async function readBody(request: IncomingMessage): Promise<number> {
  let size = 0;
  for await (const chunk of request) size += chunk.length;
  return size;
}

describe('a connection', () => {
  let listener: Listener;
  afterEach(() => listener.abort());

  for (const isSecure of [false, true]) {
    describe(isSecure ? 'over TLS' : 'over TCP', () => {
      before(function () {
        if (isSecure && !hasOpenssl) skip(this, 'openssl is not installed');
      });

      it('handles one request at a time and responds in order', async () => {
        const opened = await open({ isSecure });
        ({ listener } = opened);
        const { socket, seen } = await client(listener);
        const chunked = 'POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
        const large = 'x'.repeat(300_000);
        const asks = post('/expecting', 'abc', 'Expect: 100-continue\r\n');
        const head = 'HEAD /head HTTP/1.1\r\nHost: x\r\n\r\n';
        socket.write(get('/first') + head + post('/large', large) + chunked + asks + get('/last', 'Connection: close\r\n'));
        for (const [index, path] of ['/first', '/head', '/large', '/chunked', '/expecting', '/last'].entries()) {
          await until(() => opened.started.length > index);
          const { request, response } = opened.started[index] ?? expect.fail();
          expect([request.url, opened.started.length]).to.deep.equal([path, index + 1]);
          response.end(String(await readBody(request)));
        }
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['200', '200', '200', '200', '100', '200', '200']);
        expect(seen.text.match(/(?<=\r\n\r\n)\d+/g)).to.deep.equal(['0', '300000', '3', '3', '0']);
      });

      for (const isRead of [true, false])
        it(`is cut off if a ${isRead ? 'read' : 'dropped'} body keeps arriving in one-byte chunks`, async () => {
          let pieces = 0;
          ({ listener } = await open({ isSecure }, (request, response) => {
            if (isRead) request.on('data', () => pieces++);
            else response.end();
          }));
          const { socket, seen } = await client(listener);
          socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
          socket.write('1\r\nx\r\n'.repeat(10_000));
          await until(() => seen.isClosed);
          expect(statuses(seen.text)?.[0]).to.equal(isRead ? '400' : '200');
          if (isRead) expect(pieces).to.be.within(1_000, 1_100);
        });

      it('leaves its parser able to read whole bodies on the next connection after being cut off', async () => {
        const answer: RequestListener = (request, response) =>
          void readBody(request).then(
            (size) => response.end(String(size)),
            () => undefined,
          );
        ({ listener } = await open({ isSecure }, answer));
        const cut = await client(listener);
        cut.socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(10_000)}`);
        await until(() => cut.seen.isClosed);
        const next = await client(listener);
        next.socket.write(post('/', 'whole', 'Connection: close\r\n'));
        await until(() => next.seen.isClosed);
        expect(next.seen.text).to.match(/\r\n\r\n5$/);
      });

      it('accepts several large bodies in hundred-byte chunks', async () => {
        ({ listener } = await open({ isSecure }, (request, response) => void readBody(request).then((size) => response.end(String(size)))));
        const { socket, seen } = await client(listener);
        const chunks = `64\r\n${'x'.repeat(100)}\r\n`.repeat(3_000);
        const chunked = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
        socket.write(chunked + chunked + get('/last', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        expect(seen.text.match(/(?<=\r\n\r\n)\d+/g)).to.deep.equal(['300000', '300000', '0']);
      });

      it('passes on only a few chunks of a body per turn of the event loop', async () => {
        const chunksPerTurn = new Map<number, number>();
        ({ listener } = await open({ isSecure }, (request, response) => {
          request.on('data', () => {
            const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
            chunksPerTurn.set(turn, (chunksPerTurn.get(turn) ?? 0) + 1);
          });
          request.on('end', () => response.end());
        }));
        const { socket, seen } = await client(listener);
        const chunks = '1\r\nx\r\n'.repeat(900);
        socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
        socket.write(get('/last', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['200', '200']);
        expect(Math.max(...chunksPerTurn.values())).to.be.below(100);
      });

      it('handles thousands of pipelined requests, but never two at the same time', async () => {
        let underWay = 0;
        let most = 0;
        let served = 0;
        ({ listener } = await open({ isSecure }, (_, response) => {
          most = Math.max(most, ++underWay);
          void setImmediate().then(() => {
            underWay--;
            response.end(String(served++));
          });
        }));
        const { socket, seen } = await client(listener);
        socket.write(get('/').repeat(2_999) + get('/', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        expect([served, most]).to.deep.equal([3_000, 1]);
        expect(seen.text.match(/(?<=\r\n\r\n)\d+/g)).to.deep.equal(Array.from({ length: 3_000 }, (_, index) => String(index)));
      });

      it("is cut off if its client doesn't read a response", async () => {
        const answer = Buffer.alloc(30_000_000);
        const opened = await open({ isSecure, limits: { unread: 50, lookEvery: 10 } }, (_, response) => response.end(answer));
        ({ listener } = opened);
        const { socket, seen } = await client(listener);
        socket.pause();
        socket.write(get('/'));
        await until(() => opened.cuts.length > 0);
        socket.resume();
        await until(() => seen.isClosed);
        expect(opened.cuts).to.deep.equal(['unread 127.0.0.1']);
        expect(seen.text.length < answer.length).to.equal(true);
      });
    });
  }

  it('starts at most two requests per turn of the event loop, however quickly they finish', async () => {
    const starts = new Map<number, number>();
    ({ listener } = await open({}, (_, response) => {
      const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
      starts.set(turn, (starts.get(turn) ?? 0) + 1);
      response.end();
    }));
    const { socket, seen } = await client(listener);
    socket.write(post('/', 'x').repeat(1_000) + get('/', 'Connection: close\r\n'));
    await until(() => seen.isClosed);
    expect(statuses(seen.text)).to.have.length(1_001);
    expect(Math.max(...starts.values())).to.be.within(1, 2);
  });

  it('continues after a body that was refused without reading it', async () => {
    ({ listener } = await open({}, (request, response) => {
      if (request.method === 'POST') response.writeHead(413);
      response.end();
    }));
    const { socket, seen } = await client(listener);
    socket.write(post('/', 'x'.repeat(1_000_000)) + get('/', 'Connection: close\r\n'));
    await until(() => seen.isClosed);
    expect(statuses(seen.text)).to.deep.equal(['413', '200']);
  });

  it("doesn't start waiting requests after its client has left", async () => {
    const opened = await open();
    ({ listener } = opened);
    const { socket } = await client(listener);
    socket.write(get('/1') + get('/2'));
    await until(() => opened.started.length > 0);
    const { request, response } = opened.started[0] ?? expect.fail();
    socket.resetAndDestroy();
    // The core reads nothing while a request is waiting, so it notices this only when it responds.
    request.socket.write('');
    response.end('x'.repeat(10_000_000));
    await until(() => request.socket.destroyed);
    await listener.drain();
    expect(opened.started).to.have.length(1);
  });

  it("ends after the response in progress when its listener drains, and doesn't start waiting requests", async () => {
    const opened = await open();
    ({ listener } = opened);
    const { socket, seen } = await client(listener);
    socket.write(get('/1') + get('/2'));
    await until(() => opened.started.length > 0);
    const drained = listener.drain();
    opened.started[0]?.response.end('whole');
    await drained;
    await until(() => seen.isClosed);
    expect(opened.started.length).to.equal(1);
    expect(seen.text.endsWith('whole')).to.equal(true);
  });

  it("still gets a response to its first request if it's already open when its listener drains", async () => {
    ({ listener } = await open({}, (_, response) => response.end('whole')));
    const { socket, seen } = await client(listener);
    const drained = listener.drain();
    // The listening socket is closed by then.
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    socket.write(get('/'));
    await Promise.all([drained, once(socket, 'close')]);
    expect(seen.text).to.match(/whole$/);
  });

  it('is never reset by a closing listener, under load without a proxy', async () => {
    const outcomes = new Map<string, number>();
    for (let round = 0; round < 2; round++) {
      let answered = 0;
      ({ listener } = await open({}, (_, response) => {
        answered++;
        response.end('whole');
      }));
      let isOver = false;
      const ask = async () => {
        const { socket, seen } = await client(listener);
        socket.write(get('/', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        const outcome = seen.text.endsWith('whole') ? 'answered' : 'lost';
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      };
      const load = Promise.all(
        Array.from({ length: 16 }, async () => {
          // A refused connection was never opened.
          while (!isOver) await ask().catch(() => undefined);
        }),
      );
      await until(() => answered > 20);
      await listener.drain();
      isOver = true;
      await load;
    }
    expect([...outcomes.keys()]).to.deep.equal(['answered']);
  });

  it("doesn't keep a draining listener open if its TLS handshake is never completed", async function () {
    if (!hasOpenssl) skip(this, 'openssl is not installed');
    ({ listener } = await open({ isSecure: true, limits: { firstRequest: 1 } }));
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1');
    await once(socket, 'connect');
    await Promise.all([once(socket, 'close'), listener.drain()]);
  });

  it('finishes a long response even if its client requests a tunnel in the meantime', async () => {
    const opened = await open();
    ({ listener } = opened);
    const { socket, seen } = await client(listener);
    socket.write(`${get('/')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => opened.started.length > 0);
    Readable.from(Array.from({ length: 100 }, () => 'x'.repeat(100_000))).pipe(opened.started[0]?.response ?? expect.fail());
    await until(() => opened.started.length === 2);
    opened.started[1]?.response.end();
    await until(() => seen.isClosed);
    expect(seen.text.length > 10_000_000).to.equal(true);
    expect(statuses(seen.text)?.length).to.equal(2);
  });

  it('is cut off if a request for another protocol is waiting behind a request in progress', async () => {
    const opened = await open();
    ({ listener } = opened);
    const { socket, seen } = await client(listener);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: x\r\n';
    socket.write(get('/') + post('/', 'x', upgrade).repeat(1_000));
    await until(() => seen.isClosed);
    expect(opened.started).to.have.length(1);
  });

  it('waits with its TLS handshake until earlier handshakes from its network have finished or timed out', async function () {
    if (!hasOpenssl) skip(this, 'openssl is not installed');
    const opened = await open({ isSecure: true, limits: { handshakes: 2, stuckHandshake: 500, lookEvery: 10 } });
    ({ listener } = opened);
    const { port } = new URL(listener.url);
    const firstMessage = await clientHello();
    let answers = 0;
    const halfOpen = Array.from({ length: 5 }, () => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(firstMessage));
      socket.once('data', () => answers++).on('error', () => undefined);
      return socket;
    });
    const other = await client(listener, '127.0.0.2');
    const before = answers;
    const { socket } = await client(listener);
    socket.write(get('/'));
    await until(() => opened.started.length === 1);
    expect(before <= 2).to.equal(true);
    expect(answers).to.equal(5);
    expect(new Set(opened.cuts)).to.deep.equal(new Set(['idle 127.0.0.1']));
    expect(other.seen.isClosed).to.equal(false);
    for (const one of halfOpen) one.destroy();
  });

  it('is cut off if it holds the most unread bytes when too many are unread in total', async () => {
    const opened = await open({ limits: { waiting: 200_000 } });
    ({ listener } = opened);
    const waits = async (bytes: number) => {
      const { socket, seen } = await client(listener);
      socket.write(get('/') + post('/', 'x'.repeat(bytes)));
      return seen;
    };
    const small = await waits(10);
    const large = await Promise.all([waits(60_000), waits(60_000), waits(60_000), waits(60_000)]);
    small.text = '';
    await until(() => opened.cuts.length > 0);
    const last = await waits(10);
    await until(() => opened.started.length === 6);
    expect([small.isClosed, last.isClosed, large.some(({ isClosed }) => isClosed), new Set(opened.cuts)]).to.deep.equal([
      ...[false, false, true],
      new Set(['waiting 127.0.0.1']),
    ]);
  });

  it('gets a 400 if a waiting request is followed by an invalid request', async () => {
    const opened = await open();
    ({ listener } = opened);
    const { socket, seen } = await client(listener);
    socket.write(`${get('/1') + get('/2')}nonsense\r\n\r\n`);
    await until(() => opened.started.length === 1);
    opened.started[0]?.response.end();
    await until(() => seen.isClosed);
    expect(statuses(seen.text)).to.deep.equal(['200', '400']);
  });

  describe("at its network's limit", () => {
    it('leaves room for other networks, even if the network has many addresses', async () => {
      const opened = await open({ limits: { ofRange: 2 } });
      ({ listener } = opened);
      const busy = async (address: string) => {
        const { socket, seen } = await client(listener, address);
        const before = opened.started.length;
        socket.write(get('/'));
        await until(() => seen.isClosed || opened.started.length > before);
        return seen.isClosed ? 'refused' : 'served';
      };
      const seen: string[] = [];
      for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.1.1']) seen.push(await busy(address));
      expect(seen).to.deep.equal(['served', 'served', 'refused', 'served']);
    });

    it('replaces the oldest connection that has sent nothing or, if there is none, an idle connection', async () => {
      const opened = await open({ limits: { ofNetwork: 3 } });
      ({ listener } = opened);
      const idle = await client(listener);
      idle.socket.write(get('/'));
      await until(() => opened.started.length === 1);
      opened.started[0]?.response.end();
      await until(() => idle.seen.text !== '');
      const busy = await client(listener);
      busy.socket.write(get('/'));
      await until(() => opened.started.length === 2);
      const silent = await client(listener);
      const next = await client(listener);
      await until(() => silent.seen.isClosed);
      next.socket.write(get('/'));
      await until(() => opened.started.length === 3);
      await client(listener);
      await until(() => idle.seen.isClosed);
      expect(busy.seen.isClosed).to.equal(false);
      expect(next.seen.isClosed).to.equal(false);
      expect(opened.cuts).to.deep.equal(['idle 127.0.0.1', 'idle 127.0.0.1']);
    });

    it('is refused if all other connections are busy, unless it comes from another network or a trusted proxy', async () => {
      const opened = await open({ limits: { ofNetwork: 1 }, proxy: '127.0.0.3' });
      ({ listener } = opened);
      const from = async (address: string) => {
        const { socket, seen } = await client(listener, address);
        const before = opened.started.length;
        socket.write(get('/'));
        await until(() => seen.isClosed || opened.started.length > before);
        return seen.isClosed ? 'refused' : 'served';
      };
      const seen: string[] = [];
      for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.3']) seen.push(await from(address));
      expect(seen).to.deep.equal(['served', 'refused', 'served', 'served', 'served']);
      expect(opened.cuts).to.deep.equal(['refused 127.0.0.1']);
    });
  });
});
