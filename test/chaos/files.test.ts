import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { type Attack, describeAttacks, expectReady, isQuick, openScene, startLoad } from './attack.ts';

/** In ms, how long a core may take to notice the damage. */
const detection = 2_000;

/**
 * A way to damage the file `$f`, and what must be true afterwards: no core starts on the file, no file is left, or the shell command
 * `repair` produces a file that has all acknowledged calls. `found` is the suffix of that file's name.
 */
type Harm = {
  name: string;
  title: string;
  /** Whether the short version includes it. `test/storage/sqlite.test.ts` covers the other kinds of damage, within one process. */
  inQuick?: true;
  harm: string;
  afterwards: 'no start' | 'nothing' | { repair: string; found: string };
};

const harms: readonly Harm[] = [
  {
    ...{ name: 'moved', title: 'the SQLite file moved away', harm: 'mv "$f" "$f.moved"' },
    // SQLite doesn't write a WAL back into a file that was moved. The WAL is left behind, although it belongs to the moved file.
    afterwards: { repair: 'test ! -e "$f-wal" || mv "$f-wal" "$f.moved-wal"', found: '.moved' },
  },
  { name: 'deleted', title: 'the SQLite file deleted', harm: 'rm -f "$f" "$f-wal" "$f-shm"', afterwards: 'nothing' },
  { name: 'overwritten', title: 'the SQLite file overwritten in place', inQuick: true, harm: 'cp "$f.old" "$f"', afterwards: 'no start' },
  { name: 'truncated', title: 'the SQLite file truncated', harm: 'truncate -s 8192 "$f"', afterwards: 'no start' },
  { name: 'index', title: "SQLite's -shm deleted", harm: 'rm "$f-shm"', afterwards: { repair: 'true', found: '' } },
  {
    ...{ name: 'linked', title: 'a hard link to the SQLite file', harm: 'ln "$f" "$f.link"' },
    afterwards: { repair: 'rm "$f.link"', found: '' },
  },
];

/** Damages the file while two cores write to it. SQLite doesn't notice, but the cores do, and acknowledge no more calls. */
const attacks: readonly Attack[] = harms.map(({ name, title, inQuick, harm, afterwards }) => ({
  ...{ name, title, databases: ['sqlite'], quickOn: inQuick ? 'sqlite' : null },
  async run(trial) {
    const scene = await openScene(trial);
    const { ledger, database } = scene;
    const shell = (command: string) =>
      execFileSync('sh', ['-c', command], { env: { ...process.env, f: database.slice('sqlite:'.length) } });
    shell('cp "$f" "$f.old"');
    const cores = [scene.core(), await scene.start()];
    const load = startLoad(scene, { url: (n) => cores[n % 2]?.url ?? '' });
    await load.more(100);
    shell(harm);
    const damaged = performance.now();
    for (const core of cores) await expectReady(scene, core, false, `with ${title}`, detection);
    const seen = performance.now();
    await pause(isQuick ? 500 : 5_000);
    await load.stop();
    const tooLate = ledger.countSentAfter(seen);
    ledger.note(`${ledger.countSentAfter(damaged) - tooLate} calls were acknowledged before the cores noticed the damage`);
    if (tooLate > 0) ledger.fail(`${tooLate} calls were acknowledged after the cores noticed the damage`);
    await scene.stop('SIGTERM');
    if (typeof afterwards === 'object') {
      shell(afterwards.repair);
      await scene.stopAndCompare('SIGTERM', database + afterwards.found);
    } else if (afterwards === 'no start' && (await scene.start().then(Boolean, () => false)))
      ledger.fail('a core starts on the damaged file');
  },
}));

describeAttacks(...attacks);
