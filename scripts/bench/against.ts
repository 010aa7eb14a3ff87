import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { makeKeyValue } from '#contract/key-value.ts';
import { password } from '../support/tenants.ts';
import { ask, createKey, placePath, signIn } from './environment.ts';
import { compare, comparisonTable } from './pages.ts';
import { coreEnvironment, type DatabaseKind, databaseKinds, freshDatabase, freshFolder, run, startCore } from './processes.ts';
import { inTurn } from './spread.ts';
import { load, numbered, placing, usualSeconds } from './wrk.ts';

const here = fileURLToPath(new URL('../..', import.meta.url));
/** More calls than a core can place in one load. */
const callsPerLoad = 1_000_000;

/**
 * Loads another commit's core and the working tree's core alternately.
 *
 * @param rounds the number of pairs @returns a table @throws Error if git doesn't know the commit
 */
export async function compareCommits(commit: string, rounds: number): Promise<string> {
  const checkout = join(freshFolder(), 'checkout');
  await run('git', ['-C', here, 'worktree', 'add', '--quiet', '--detach', checkout, commit]);
  try {
    symlinkSync(join(here, 'node_modules'), join(checkout, 'node_modules'));
    const lines: string[][] = [];
    for (const kind of databaseKinds) {
      const sides = { before: await openSide(kind, checkout), after: await openSide(kind, here) };
      // Spends three times as long placing calls as cancelling them, so that there are enough to cancel.
      const placed = await inTurn(sides, rounds, (side, round) =>
        load(numbered('place_numbered', side, side.key), { seconds: 3 * usualSeconds, from: round * callsPerLoad }),
      );
      const cancelled = await inTurn(sides, rounds, (side, round) =>
        load(numbered('cancel', side, side.key), { from: round * callsPerLoad }),
      );
      const refused = await inTurn(sides, rounds, (side) => load(placing(side, [makeKeyValue(randomBytes)], 0)));
      lines.push(compare('place', kind, placed), compare('cancel', kind, cancelled), compare('refuse an unknown key', kind, refused));
      for (const { core } of Object.values(sides)) await core.stop();
    }
    return comparisonTable(commit, 'now', ...lines);
  } finally {
    await run('git', ['-C', here, 'worktree', 'remove', '--force', checkout]);
  }
}

/** Starts one commit's core on its own database, prepared only through its commands and its API, because schemas differ between commits. */
async function openSide(kind: DatabaseKind, checkout: string) {
  const database = await freshDatabase(kind);
  const admin = async (...args: string[]) => {
    const environment = { ...process.env, ...coreEnvironment(database) };
    const { stdout } = await run(process.execPath, [join(checkout, 'core/admin.ts'), ...args, '--json'], environment);
    return JSON.parse(stdout);
  };
  const { partner } = await admin('partner', 'add', 'Partner');
  const { account } = await admin('account', 'add', 'Account', '--partner', partner.id);
  const { campaign } = await admin('campaign', 'add', 'Campaign', '--account', account.id);
  const options = ['--name', 'Ada', '--type', 'account', '--account', account.id];
  const { password: oneTime } = await admin('user', 'add', 'ada@example.com', ...options);
  const core = await startCore(database, {}, pathToFileURL(join(checkout, 'core/main.ts')).href);
  await ask(core, 'POST', '/console/password', await signIn(core, 'ada', oneTime), { newPassword: password });
  const { keyValue: key } = await createKey(core, await signIn(core, 'ada'));
  return { core, path: placePath(campaign.id), key };
}

/** Pins this process, and with it everything that it starts, to one processor. */
export async function useOneProcessor(): Promise<void> {
  await run('taskset', ['--pid', '--cpu-list', '0', String(process.pid)]);
}
