import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { connect, Server } from 'node:net';
import { expect } from 'chai';
import { hasOpenssl } from '../support/certificate.ts';
import { abortListeners, client, get, open, post, statuses } from '../support/core.ts';
import { openHandles } from '../support/hooks.ts';
import { skip } from '../support/suites.ts';
import { until } from '../support/until.ts';

async function readBody(request: IncomingMessage): Promise<number> {
  let size = 0;
  for await (const chunk of request) size += chunk.length;
  return size;
}

describe('a connection', () => {
  afterEach(abortListeners);

  for (const isSecure of [false, true]) {
    describe(isSecure ? 'over TLS' : 'over TCP', () => {
      before(function () {
        if (isSecure && !hasOpenssl) skip(this, "openssl isn't installed");
      });

      it('handles one request at a time and responds in order', async () => {
        const { listener, started } = await open({ isSecure });
        const { socket, seen } = await client(listener);
        const chunked = 'POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
        const large = 'x'.repeat(300_000);
        const asks = post('/expecting', 'abc', 'Expect: 100-continue\r\n');
        const head = 'HEAD /head HTTP/1.1\r\nHost: x\r\n\r\n';
        socket.write(get('/first'));
        await until(() => started.length > 0);
        socket.write(head + post('/large', large) + chunked + asks + get('/last', 'Connection: close\r\n'));
        // The listener has been offered these requests before it answers another connection.
        const other = await client(listener);
        other.socket.write('nonsense\r\n\r\n');
        await until(() => other.seen.isClosed);
        for (const [index, path] of ['/first', '/head', '/large', '/chunked', '/expecting', '/last'].entries()) {
          await until(() => started.length > index);
          const { request, response } = started[index] ?? expect.fail();
          expect([request.url, started.length]).to.deep.equal([path, index + 1]);
          response.end(String(await readBody(request)));
        }
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['200', '200', '200', '200', '100', '200', '200']);
        expect(seen.text.match(/(?<=\r\n\r\n)\d+/g)).to.deep.equal(['0', '300000', '3', '3', '0']);
      });

      it('has ten seconds for the headers of a request, and thirty for all of it', async () => {
        await open({ isSecure });
        const server = openHandles().find((handle) => handle instanceof Server);
        expect(server).to.include({ headersTimeout: 10_000, requestTimeout: 30_000 });
      });

      it('gives a client that closes its side after its requests the responses to them, and then ends', async () => {
        const { listener, started } = await open({ isSecure });
        const { socket, seen } = await client(listener);
        await new Promise<void>((resolve) => socket.end(post('/1', 'abc') + post('/2', 'abc') + post('/3', 'abc'), resolve));
        for (const count of [1, 2, 3]) {
          await until(() => started.length === count);
          const { request, response } = started[count - 1] ?? expect.fail();
          await readBody(request);
          response.end('z'.repeat(100_000));
        }
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['200', '200', '200']);
        expect(seen.text.match(/z/g)).to.have.length(300_000);
      });

      it('ends when a client that was only reading closes its side', async () => {
        const { listener, started } = await open({ isSecure });
        const { socket, seen } = await client(listener);
        socket.end(get('/'));
        await until(() => seen.isClosed);
        expect(started[0]?.response.destroyed).to.equal(true);
      });

      it('reports a body that ends too early to a client that has closed its side', async () => {
        const { listener } = await open({ isSecure });
        const { socket, seen } = await client(listener);
        socket.end(post('/', 'abc').slice(0, -1));
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['400']);
      });

      for (const isRead of [true, false])
        it(`is cut off if a body that the core ${isRead ? 'reads' : 'drops'} keeps arriving in one-byte chunks`, async () => {
          let pieces = 0;
          const { listener } = await open({ isSecure }, (request, response) => {
            if (isRead) request.on('data', () => pieces++);
            else response.end();
          });
          const { socket, seen } = await client(listener);
          socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
          socket.write('1\r\nx\r\n'.repeat(10_000));
          await until(() => seen.isClosed);
          expect(statuses(seen.text)?.[0]).to.equal(isRead ? '400' : '200');
          if (isRead) expect(pieces).to.be.within(1_000, 1_100);
        });

      it("that was cut off doesn't keep the next connection from sending a whole body", async () => {
        const answer: RequestListener = (request, response) =>
          void readBody(request).then(
            (size) => response.end(String(size)),
            () => undefined,
          );
        const { listener } = await open({ isSecure }, answer);
        const cut = await client(listener);
        cut.socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(10_000)}`);
        await until(() => cut.seen.isClosed);
        const next = await client(listener);
        next.socket.write(post('/', 'whole', 'Connection: close\r\n'));
        await until(() => next.seen.isClosed);
        expect(next.seen.text).to.match(/\r\n\r\n5$/);
      });

      it('accepts several large bodies in hundred-byte chunks', async () => {
        const { listener } = await open(
          { isSecure },
          (request, response) => void readBody(request).then((size) => response.end(String(size))),
        );
        const { socket, seen } = await client(listener);
        const chunks = `64\r\n${'x'.repeat(100)}\r\n`.repeat(3_000);
        const chunked = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
        socket.write(chunked + chunked + get('/last', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        expect(seen.text.match(/(?<=\r\n\r\n)\d+/g)).to.deep.equal(['300000', '300000', '0']);
      });

      it('passes on only a few chunks of a body per turn of the event loop', async () => {
        const chunksPerTurn = new Map<number, number>();
        const { listener } = await open({ isSecure }, (request, response) => {
          request.on('data', () => {
            const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
            chunksPerTurn.set(turn, (chunksPerTurn.get(turn) ?? 0) + 1);
          });
          // A request without a body has already ended, so it emits no event.
          if (request.readableEnded) response.end();
          else request.on('end', () => response.end());
        });
        const { socket, seen } = await client(listener);
        const chunks = '1\r\nx\r\n'.repeat(900);
        socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
        socket.write(get('/last', 'Connection: close\r\n'));
        await until(() => seen.isClosed);
        expect(statuses(seen.text)).to.deep.equal(['200', '200']);
        expect(Math.max(...chunksPerTurn.values())).to.be.below(100);
      });

      it("is cut off if its client doesn't read a response", async () => {
        const answer = Buffer.alloc(30_000_000);
        const { listener, cuts } = await open({ isSecure, limits: { unread: 50, lookEvery: 10 } }, (_, response) => response.end(answer));
        const { socket, seen } = await client(listener);
        socket.pause();
        socket.write(get('/'));
        await until(() => cuts.length > 0);
        socket.resume();
        await until(() => seen.isClosed);
        expect(cuts).to.deep.equal(['unread 127.0.0.1']);
        expect(seen.text.length < answer.length).to.equal(true);
      });

      it('is cut off if too many bytes wait for clients in total, and its client has read nothing for the longest time', async () => {
        const answer = Buffer.alloc(30_000_000);
        // A waiting response counts twice: as an entry of Node's own queue, and as the data that Node has taken from there but that the
        // system hasn't accepted yet.
        const limits = { unsent: 3 * answer.length, unread: Number.POSITIVE_INFINITY, lookEvery: 10 };
        let served = 0;
        const { listener, cuts } = await open({ isSecure, limits }, (_, response) => {
          served++;
          response.end(answer);
        });
        const clients: Awaited<ReturnType<typeof client>>[] = [];
        for (const _ of ['first', 'second']) {
          const opened = await client(listener);
          clients.push(opened);
          opened.socket.pause();
          opened.socket.write(get('/'));
          await until(() => served === clients.length);
        }
        await until(() => cuts.length > 0);
        for (const { socket } of clients) socket.resume();
        await until(() => clients[0]?.seen.isClosed === true && (clients[1]?.seen.text.length ?? 0) > answer.length);
        expect([cuts, clients[1]?.seen.isClosed]).to.deep.equal([['unread 127.0.0.1'], false]);
      });
    });
  }

  it('starts at most two requests per turn of the event loop, however quickly they finish', async () => {
    const starts = new Map<number, number>();
    const { listener } = await open({}, (_, response) => {
      const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
      starts.set(turn, (starts.get(turn) ?? 0) + 1);
      response.end();
    });
    const { socket, seen } = await client(listener);
    socket.write(post('/', 'x').repeat(1_000) + get('/', 'Connection: close\r\n'));
    await until(() => seen.isClosed);
    expect(statuses(seen.text)).to.have.length(1_001);
    expect(Math.max(...starts.values())).to.be.within(1, 2);
  });

  it('continues after a body that was refused without reading it', async () => {
    const { listener } = await open({}, (request, response) => {
      if (request.method === 'POST') response.writeHead(413);
      response.end();
    });
    const { socket, seen } = await client(listener);
    socket.write(post('/', 'x'.repeat(1_000_000)) + get('/', 'Connection: close\r\n'));
    await until(() => seen.isClosed);
    expect(statuses(seen.text)).to.deep.equal(['413', '200']);
  });

  it("doesn't start waiting requests after its client has disconnected", async () => {
    const { listener, started } = await open();
    const { socket } = await client(listener);
    socket.write(get('/1') + get('/2'));
    await until(() => started.length > 0);
    const { request, response } = started[0] ?? expect.fail();
    socket.resetAndDestroy();
    // While a request is waiting, the core doesn't read from the connection, so it notices the reset only when it responds.
    request.socket.write('');
    response.end('x'.repeat(10_000_000));
    await until(() => request.socket.destroyed);
    await listener.drain();
    expect(started).to.have.length(1);
  });

  it("ends after the response in progress when its listener drains, and doesn't start waiting requests", async () => {
    const { listener, started } = await open();
    const { socket, seen } = await client(listener);
    socket.write(get('/1') + get('/2'));
    await until(() => started.length > 0);
    const drained = listener.drain();
    started[0]?.response.end('whole');
    await drained;
    await until(() => seen.isClosed);
    expect(started.length).to.equal(1);
    expect(seen.text.endsWith('whole')).to.equal(true);
  });

  it("still gets a response to its first request if it's already open when its listener drains", async () => {
    const { listener } = await open({}, (_, response) => response.end('whole'));
    const { socket, seen } = await client(listener);
    const drained = listener.drain();
    await until(() => !openHandles().some((handle) => handle instanceof Server));
    socket.write(get('/'));
    await Promise.all([drained, once(socket, 'close')]);
    expect(seen.text).to.match(/whole$/);
  });

  it('is never reset when its listener closes under load', async () => {
    const outcomes = new Map<string, number>();
    for (let round = 0; round < 2; round++) {
      let answered = 0;
      const { listener } = await open({}, (_, response) => {
        answered++;
        response.end('whole');
      });
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
          // A refused connection was never open, so it can't have been reset.
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
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const { listener } = await open({ isSecure: true, limits: { firstRequest: 1 } });
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1');
    await once(socket, 'connect');
    await Promise.all([once(socket, 'close'), listener.drain()]);
  });

  it('is cut off if a request to switch protocols is waiting behind a request in progress', async () => {
    const { listener, started } = await open();
    const { socket, seen } = await client(listener);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: x\r\n';
    socket.write(get('/') + post('/', 'x', upgrade).repeat(1_000));
    await until(() => seen.isClosed);
    expect(started).to.have.length(1);
  });
});
