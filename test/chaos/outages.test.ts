import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { npmPrograms } from '../../scripts/support/postgres.ts';
import { track } from '../../scripts/support/server-process.ts';
import { mountDisk } from '../support/commands.ts';
import { createNode, type PostgresNode } from '../support/postgres-node.ts';
import { skip } from '../support/suites.ts';
import { createKey } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import { describeAttacks, expectPlacing, expectReady, isQuick, type Load, openScene, type Scene, startLoad, type Trial } from './attack.ts';

/** Long enough to fill the space that SQLite and PostgreSQL have reserved for their logs. */
const variables = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`v${n}`, 'x'.repeat(1_000)]));

/**
 * Under load, the disk fails for a while, several times. The core is killed after one failure, and asked to stop after the next.
 *
 * @param prepare returns the folder for the database, if it needs a special one, and a function that makes the disk fail and repairs it
 */
const outage = (
  title: string,
  prepare: (trial: Trial) => { directory?: string; extra?: object; fail(scene: Scene, load: Load, server?: PostgresNode): Promise<void> },
) =>
  async function attack(trial: Trial): Promise<void> {
    const { directory, extra = {}, fail } = prepare(trial);
    const server = trial.kind === 'postgres' ? await startServer(trial, directory) : undefined;
    const scene = await openScene(trial, { database: server?.url('callkey') ?? (directory && `sqlite:${directory}/callkey.db`) });
    for (let round = 0; round < (isQuick ? 1 : 3); round++) {
      if (round > 0) await scene.start();
      const load = startLoad(scene, { extra });
      await load.more(100);
      await fail(scene, load, server);
      // PostgreSQL may have stopped because of the failed disk.
      if (server && !(await until(() => server.query('postgres', 'SELECT 1').then(Boolean, () => false), 3_000))) {
        await server.stop();
        await server.start();
      }
      await expectPlacing(scene, `after ${title}`);
      const { id, keyValue: key } = await createKey(scene.core().url, scene.cookie);
      await scene.revoke(id, key);
      await scene.place(`revoked-${id}`, { key });
      await load.more(100);
      await load.stop();
      await scene.stopAndCompare(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    }
  };

async function startServer({ cleanup }: Trial, directory?: string): Promise<PostgresNode> {
  const settings = ['max_wal_size = 8MB', 'min_wal_size = 2MB'];
  const server = await createNode(await npmPrograms(), { directory, settings, flags: ['--wal-segsize=1'] });
  cleanup.defer(() => server.stop());
  await server.start();
  await server.query('postgres', 'CREATE DATABASE callkey');
  return server;
}

const diskFull = outage('the full disk', (trial) => {
  const directory = mountDisk(trial.context, `size=${trial.kind === 'sqlite' ? 48 : 192}m`);
  const unmount = () => void spawnSync('umount', ['-l', directory]);
  process.once('exit', unmount);
  trial.cleanup.defer(unmount);
  const ballast = join(directory, 'ballast');
  return {
    ...{ directory, extra: { variables } },
    async fail(scene, load) {
      // Writes until nothing more fits.
      spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k'], { stdio: 'ignore' });
      const hasStopped = async () => !(await load.more(1, 1_000));
      if (await until(hasStopped, 30_000)) await expectReady(scene, scene.core(), false, 'while the disk is full');
      else scene.ledger.note('the disk was never full enough to stop it');
      await pause(2_000);
      rmSync(ballast);
    },
  };
});

const failingSync = outage('failing fsyncs', (trial) => ({
  async fail(scene, _load, server) {
    const { ledger } = scene;
    const stop = await failSyncs(trial, server?.processes() ?? [scene.core().pid]);
    await pause(500);
    const failing = performance.now();
    await expectReady(scene, scene.core(), false, 'while no write reaches the disk');
    await pause(isQuick ? 1_000 : 4_000);
    const acknowledged = ledger.countSentAfter(failing);
    if (acknowledged > 0) ledger.fail(`${acknowledged} calls were acknowledged while no write reached the disk`);
    await stop();
  },
}));

/** Makes every fsync of these processes and their children fail. @returns a function that stops it */
async function failSyncs({ cleanup, context }: Trial, pids: readonly number[]): Promise<() => Promise<void>> {
  const calls = 'fsync,fdatasync,sync_file_range';
  const args = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`];
  const child = spawn('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])], { stdio: 'ignore' });
  const ended = track(child);
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  cleanup.defer(stop);
  // strace prints nothing once it's attached, and exits if it can't attach.
  await until(() => child.exitCode !== null || pids.every(isTraced));
  if (child.exitCode !== null) skip(context, 'strace is missing or may not trace');
  return stop;
}

/** Whether all threads of a process are traced, or it has ended. */
function isTraced(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((id) => !/^TracerPid:\t0$/m.test(readFileSync(`/proc/${pid}/task/${id}/status`, 'utf8')));
  } catch {
    // A thread has ended, or the whole process.
    return !existsSync(`/proc/${pid}`);
  }
}

describeAttacks(
  { name: 'disk-full', title: 'the disk full', quickOn: null, run: diskFull },
  { name: 'fsync', title: 'fsync failing', run: failingSync },
);
