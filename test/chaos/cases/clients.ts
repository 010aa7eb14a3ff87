import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { onDemand } from '../../support/tenants.ts';
import { openScene, type Scene, stopAndCompare } from '../environment.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** Clients that are slow, that never end, and that hang up: the others are answered in time, and a call is placed once or not at all. */
export const clients: Case = {
  name: 'clients',
  title: 'clients slow and hanging up',
  quickDatabases: ['sqlite'],
  async attack(trial) {
    const scene = await openScene(trial);
    const load = startLoad(scene);
    await load.more(50);
    const crowd = trial.isQuick ? 100 : 500;
    const slow = Array.from({ length: crowd }, (_, n) => (n % 2 ? slowHeaders(scene) : endlessBody(scene)));
    const hungUp: string[] = [];
    const end = performance.now() + (trial.isQuick ? 2_000 : 40_000);
    while (performance.now() < end) {
      const requestId = `hung-up-${hungUp.length}`;
      hungUp.push(requestId);
      await sendAndReset(scene, requestId);
      await pause(20);
    }
    await load.more(50);
    for (const stop of slow) stop();
    await load.stop();
    // Whether it was placed is for its client to find out: by asking again, with the same id.
    for (const requestId of hungUp) {
      const { status } = await scene.ledger.place(scene.core().url, scene.campaignId, scene.key, bodyOf(requestId));
      if (status !== 202) scene.ledger.fail(`${requestId}, sent again, was answered ${status}`);
    }
    await pause(1_000);
    await stopAndCompare(scene);
    scene.ledger.note(`${crowd} slow connections, ${hungUp.length} that hung up`);
  },
};

/** The same on every try. */
function bodyOf(requestId: string) {
  return { requestId, contact: { phone: `+4930${30_000_000 + Number(requestId.split('-').at(-1))}` } };
}

function headOf(scene: Scene, length: number): string {
  const { host, pathname } = new URL(onDemand(scene.core().url, scene.campaignId));
  const lines = [`POST ${pathname} HTTP/1.1`, `Host: ${host}`, `X-API-Key: ${scene.key}`, 'Content-Type: application/json'];
  return `${[...lines, `Content-Length: ${length}`].join('\r\n')}\r\n\r\n`;
}

function open(scene: Scene): Socket {
  const { port, hostname } = new URL(scene.core().url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  scene.trial.cleanup.defer(() => void socket.destroy());
  return socket;
}

/** @returns what stops it */
function slowHeaders(scene: Scene): () => void {
  const socket = open(scene);
  const head = headOf(scene, 2);
  let sent = 0;
  const timer = setInterval(() => socket.write(head[sent++ % head.length] ?? ''), 200);
  return stopping(socket, timer);
}

function endlessBody(scene: Scene): () => void {
  const socket = open(scene);
  socket.write(headOf(scene, 60_000));
  const timer = setInterval(() => socket.write(' '), 200);
  return stopping(socket, timer);
}

function stopping(socket: Socket, timer: NodeJS.Timeout): () => void {
  socket.on('close', () => clearInterval(timer));
  return () => {
    clearInterval(timer);
    socket.destroy();
  };
}

async function sendAndReset(scene: Scene, requestId: string): Promise<void> {
  const socket = open(scene);
  const body = JSON.stringify(bodyOf(requestId));
  await Promise.race([once(socket, 'connect'), pause(2_000)]);
  await new Promise<void>((resolve) => socket.write(headOf(scene, Buffer.byteLength(body)) + body, () => resolve()));
  socket.resetAndDestroy();
}
