import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { npmPrograms } from '../../scripts/support/postgres.ts';
import { track } from '../../scripts/support/server-process.ts';
import { createNode, type PostgresNode } from '../support/postgres-node.ts';
import { skip } from '../support/suites.ts';
import { createKey } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import { describeAttacks, expectPlacing, expectReady, isQuick, openScene, startLoad, type Trial } from './attack.ts';

/** Under load, all fsyncs fail for a while, several times. The core is killed after one failure, and asked to stop after the next. */
async function failingSync(trial: Trial): Promise<void> {
  const server = trial.kind === 'postgres' ? await startServer(trial) : undefined;
  const scene = await openScene(trial, { database: server?.url('callkey') });
  const { ledger } = scene;
  for (let round = 0; round < (isQuick ? 1 : 3); round++) {
    if (round > 0) await scene.start();
    const load = startLoad(scene);
    await load.more(100);
    const stop = await failSyncs(trial, server?.processes() ?? [scene.core().pid]);
    await pause(500);
    const before = ledger.placed.size;
    await expectReady(scene, scene.core(), false, 'while no write reaches the disk');
    await pause(isQuick ? 1_000 : 4_000);
    if (ledger.placed.size > before) ledger.fail(`${ledger.placed.size - before} calls were acknowledged while no write reached the disk`);
    await stop();
    // PostgreSQL may have stopped because of the failed disk.
    if (server && !(await until(() => server.query('postgres', 'SELECT 1').then(Boolean, () => false), 3_000))) {
      await server.stop();
      await server.start();
    }
    await expectPlacing(scene, 'after the failing fsyncs');
    const { id, keyValue: key } = await createKey(scene.core().url, scene.cookie);
    await scene.revoke(id, key);
    await scene.place(`revoked-${id}`, { key });
    await load.more(100);
    await load.stop();
    await scene.stopAndCompare(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
  }
}

async function startServer({ cleanup }: Trial): Promise<PostgresNode> {
  const server = await createNode(await npmPrograms());
  cleanup.defer(() => server.stop());
  await server.start();
  await server.query('postgres', 'CREATE DATABASE callkey');
  return server;
}

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

describeAttacks({ name: 'fsync', title: 'fsync failing', run: failingSync });
