import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { ask } from '../../support/http.ts';
import { createKey } from '../../support/tenants.ts';
import { callBody, expectPlacing, expectReady, openScene, type Scene, stopAndCompare, type Trial } from '../environment.ts';
import { holdLock } from '../faults.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** In ms. Longer than two writers wait for SQLite one after the other, so that it is not only the dialer that meets the lock. */
const held = { sqlite: 12_000, postgres: 9_000 };

/** Another process keeps the database from being written for longer than the core waits, while a crowd is placing calls. */
export const lock: Case = {
  name: 'lock',
  title: 'the database locked by another process',
  quickDatabases: ['postgres'],
  async attack(trial) {
    const scene = await openScene(trial);
    const rounds = trial.isQuick ? 1 : 2;
    for (const signal of trial.isQuick ? (['SIGKILL'] as const) : (['SIGKILL', 'SIGTERM'] as const)) {
      if (signal === 'SIGTERM') await scene.start();
      for (let round = 0; round < rounds; round++) await lockOnce(trial, scene, `${signal}-${round}`);
      await expectPlacing(scene, 'after the lock');
      await revokeAndUse(scene);
      await stopAndCompare(scene, signal);
    }
  },
};

/** A few cancels meet the lock first, and then a crowd of places: those that go through afterwards are on the same connection. */
async function lockOnce(trial: Trial, scene: Scene, name: string): Promise<void> {
  const { ledger, campaignId, key } = scene;
  const ids = Array.from({ length: 5 }, (_, n) => `later-${name}-${n}`);
  const notBefore = new Date(Date.now() + 3_600_000).toISOString();
  for (const requestId of ids) await ledger.place(scene.core().url, campaignId, key, callBody(requestId, { notBefore }));
  const holder = await hold(trial, scene);
  const cancels = Promise.all(ids.map((requestId) => ledger.cancel(scene.core().url, campaignId, key, requestId)));
  await pause(200);
  const load = startLoad(scene, { placers: 200, every: 1_000, cancels: false });
  await pause(trial.kind === 'sqlite' ? held.sqlite : held.postgres);
  await holder.release();
  await expectReady(scene, true, 'after the lock');
  await load.more(200);
  await load.stop();
  await cancels;
}

async function hold(trial: Trial, scene: Scene): Promise<{ release(): Promise<void> }> {
  if (trial.kind === 'sqlite') return holdLock(trial, scene.database);
  const client = new pg.Client(scene.database);
  client.on('error', () => undefined);
  await client.connect();
  await client.query('BEGIN');
  await client.query('LOCK TABLE calls IN ACCESS EXCLUSIVE MODE');
  return { release: () => client.end() };
}

/** A key can be revoked again, and then it is. */
async function revokeAndUse(scene: Scene): Promise<void> {
  const { url } = scene.core();
  const made = await createKey(url, scene.cookie).catch(() => null);
  if (!made) return scene.ledger.fail('no key can be created after the lock');
  const { id, keyValue } = made;
  const { status } = await ask('DELETE', `${url}/console/api-keys/${id}`, { cookie: scene.cookie });
  if (status !== 204) return scene.ledger.fail(`a revoke after the lock was answered ${status}`);
  scene.ledger.revoke(keyValue);
  await scene.ledger.place(url, scene.campaignId, keyValue, callBody(`revoked-${id}`));
}
