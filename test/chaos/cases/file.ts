import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { callsIn, eventually, expectReady, isReady, openScene } from '../environment.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** In ms, how long a core may take to see that its file has gone. */
const detection = 2_000;

/** The database's file is moved: the core says so, and what it acknowledged is in the file, wherever that is now. */
export const moved: Case = {
  name: 'moved',
  title: 'the SQLite file moved away',
  databases: ['sqlite'],
  async attack(trial) {
    const scene = await openScene(trial);
    const load = startLoad(scene);
    await load.more(100);
    const path = scene.database.slice('sqlite:'.length);
    renameSync(path, `${path}.moved`);
    await expectReady(scene, false, 'although its file was moved');
    await pause(trial.isQuick ? 1_000 : 5_000);
    await load.stop();
    await scene.stop('SIGTERM');
    // SQLite writes no log back into a file that was moved: its log stays behind, and belongs to it.
    if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${path}.moved-wal`);
    trial.ledger.compare(await callsIn(`${scene.database}.moved`));
  },
};

/** The database's file is deleted: what was in it has gone with it; nothing more is acknowledged. */
export const deleted: Case = {
  name: 'deleted',
  title: 'the SQLite file deleted',
  databases: ['sqlite'],
  async attack(trial) {
    const scene = await openScene(trial);
    const { ledger, database } = scene;
    const load = startLoad(scene);
    await load.more(100);
    for (const suffix of ['', '-wal', '-shm']) rmSync(database.slice('sqlite:'.length) + suffix, { force: true });
    const before = new Set(ledger.placed.keys());
    await eventually(async () => !(await isReady(scene.core())), detection);
    const untilSeen = new Set(ledger.placed.keys());
    await expectReady(scene, false, 'although its file was deleted');
    await pause(trial.isQuick ? 1_000 : 5_000);
    await load.stop();
    await scene.stop('SIGTERM');
    ledger.note(`${untilSeen.size - before.size} acknowledged between the deletion and its being seen`);
    ledger.compare([], (requestId) => !untilSeen.has(requestId));
  },
};

/**
 * Does to the file what SQLite does not notice, while two cores write to it: after that, nothing more is acknowledged, no core starts on it, and
 * what was acknowledged is in it, unless it was overwritten.
 */
function harmed(name: string, title: string, harm: (file: string) => string, repair?: (file: string) => string): Case {
  return {
    name,
    title,
    databases: ['sqlite'],
    async attack(trial) {
      const scene = await openScene(trial);
      const { ledger, database } = scene;
      const file = database.slice('sqlite:'.length);
      const shell = (command: string) => execFileSync('sh', ['-c', command]);
      shell(`cp '${file}' '${file}.old'`);
      const [one, other] = [scene.core(), await scene.start()];
      const load = startLoad(scene, { url: (turn) => (turn % 2 === 0 ? one : other).url });
      await load.more(200);
      shell(harm(`'${file}'`));
      const before = ledger.placed.size;
      for (const core of [one, other])
        if (!(await eventually(async () => !(await isReady(core)), detection))) ledger.wronglyReady(`ready with ${title}`);
      const untilSeen = ledger.placed.size;
      await pause(trial.isQuick ? 500 : 5_000);
      await load.stop();
      ledger.note(`${untilSeen - before} acknowledged until it was seen`);
      if (ledger.placed.size > untilSeen) ledger.fail(`${ledger.placed.size - untilSeen} calls were acknowledged after that`);
      await scene.stop('SIGTERM');
      if (repair === undefined) {
        if (
          await scene.start().then(
            () => true,
            () => false,
          )
        )
          ledger.fail('a core starts on what is left of it');
        return;
      }
      shell(repair(`'${file}'`));
      ledger.compare(await callsIn(database));
    },
  };
}

export const harms: readonly Case[] = [
  harmed('overwritten', 'the SQLite file overwritten in place', (file) => `cp ${file}.old ${file}`),
  { ...harmed('truncated', 'the SQLite file truncated', (file) => `truncate -s 8192 ${file}`), quickDatabases: [] },
  harmed(
    'index',
    "SQLite's -shm deleted",
    (file) => `rm ${file}-shm`,
    () => 'true',
  ),
  {
    ...harmed(
      'linked',
      'a hard link to the SQLite file',
      (file) => `ln ${file} ${file}.link`,
      (file) => `rm ${file}.link`,
    ),
    quickDatabases: [],
  },
];
