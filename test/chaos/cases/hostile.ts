import type { IncomingMessage, ServerResponse } from 'node:http';
import { callBody, eventually, openScene, residentMegabytes, stopAndCompare } from '../environment.ts';
import { startLoad } from '../load.ts';
import { type Manner, takes } from '../provider.ts';
import type { Case } from '../run.ts';

/** In MB: a core at rest takes about 150. */
const memoryBound = 512;

const endless = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { 'Content-Type': 'text/plain' });
  const chunk = Buffer.alloc(1 << 16, 'x');
  const pour = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', pour);
  pour();
  return true;
};

const raw = (text: string) => (_: ServerResponse, request: IncomingMessage) => {
  request.socket.end(text);
  return true;
};

/** Bad ways in which a provider may answer. @returns whether it may have called */
const manners: ((response: ServerResponse, request: IncomingMessage) => boolean)[] = [
  // It does not answer, or after a minute.
  (response) => {
    setTimeout(() => response.end(), 60_000).unref();
    return true;
  },
  endless(200),
  endless(400),
  raw('garbage\r\n\r\n'),
  raw('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!'),
  raw(`HTTP/1.1 202 Accepted\r\nX-Huge: ${'x'.repeat(1 << 18)}\r\n\r\n`),
  raw(`${'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n'.repeat(50)}HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n`),
  (response) => {
    response.writeHead(302, { Location: '/' }).end();
    return true;
  },
  // Keeps the connection, and closes it at once.
  (response, request) => {
    response.writeHead(202, { Connection: 'keep-alive' }).end(() => request.socket.destroy());
    return true;
  },
  (response) => {
    response.writeHead(503, { 'Retry-After': '1e9' }).end();
    return false;
  },
  (response) => {
    response.writeHead(429, { 'Retry-After': '-1' }).end();
    return false;
  },
];

const hostility: Manner = (turn, response, request) => manners[turn % manners.length]?.(response, request) ?? true;

/** A provider that does what it should not: nobody is called twice, calls are placed in time, and memory stays bounded. */
export const hostile: Case = {
  name: 'hostile',
  title: 'a hostile provider',
  quickDatabases: ['sqlite'],
  async attack(trial) {
    const scene = await openScene(trial, { manner: hostility, environment: { DIALER_CONCURRENCY: '100' } });
    const { pid = 0 } = scene.core().child;
    const load = startLoad(scene, { every: 200 });
    let most = 0;
    const end = performance.now() + (trial.isQuick ? 3_000 : 60_000);
    await eventually(() => {
      most = Math.max(most, residentMegabytes(pid));
      return performance.now() > end;
    }, 120_000);
    await load.stop();
    if (most > memoryBound) scene.ledger.fail(`the core took ${most} MB`);
    scene.provider.behave(takes);
    const { contactId } = await scene.ledger.place(scene.core().url, scene.campaignId, scene.key, callBody('after-it-all'));
    const isDialed = await eventually(() => contactId !== null && scene.provider.calls.of(contactId) > 0, 30_000);
    if (!isDialed) scene.ledger.fail('a call is not dialed although the provider behaves again');
    scene.ledger.note(`${scene.provider.handOffs()} hand-offs, ${most} MB at the most`);
    await stopAndCompare(scene);
  },
};
