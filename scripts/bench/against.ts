import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { makeKeyValue } from '#contract/key-value.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { ask, createKey, type DatabaseKind, databaseKinds, freshDatabase, password, postgresPid, signIn } from './environment.ts';
import { compare, comparisonTable, inPairs } from './pairs.ts';
import { loadWithCpu } from './proc.ts';
import { freshFolder, startServer } from './processes.ts';
import { cancelling, placing, placingNumbered } from './requests.ts';
import { repeat } from './spread.ts';
import type { Say } from './workloads.ts';

const execute = promisify(execFile);
const here = fileURLToPath(new URL('../..', import.meta.url));

/** One commit's core on its own database, prepared only through its commands and its API, because schemas differ between commits. */
type Side = { core: ServerProcess; path: string; keys: string[]; postgres: number | undefined; placed: number };

/**
 * Loads another commit's core and the working tree's core alternately.
 *
 * @param rounds the number of pairs @param seconds the duration of each load @returns a table
 * @throws Error if git doesn't know the commit
 */
export async function compareCommits(commit: string, rounds: number, seconds: number, say: Say): Promise<string> {
  const checkout = join(freshFolder(), 'checkout');
  await execute('git', ['-C', here, 'worktree', 'add', '--quiet', '--detach', checkout, commit]);
  try {
    symlinkSync(join(here, 'node_modules'), join(checkout, 'node_modules'));
    const lines: string[][] = [];
    for (const kind of databaseKinds) {
      const sides = [await openSide(kind, checkout), await openSide(kind, here)] as const;
      const pairs = await inPairs(sides, rounds, (side, round) => {
        say(`round ${round} of ${rounds}: ${kind}`);
        return loadSide(side, seconds);
      });
      for (const { core } of sides) await core.stop();
      for (const name of ['place', 'cancel', 'refuse an unknown key'] as const)
        lines.push(
          compare(
            name,
            kind,
            pairs.map(([before, after]) => [before[name], after[name]] as const),
          ),
        );
    }
    return comparisonTable(lines, commit, 'now');
  } finally {
    await execute('git', ['-C', here, 'worktree', 'remove', '--force', checkout]);
  }
}

/** Spends three times as long placing calls as cancelling them, so that there are enough to cancel. */
async function loadSide(side: Side, seconds: number) {
  const { core, path, keys, postgres } = side;
  const watched = { pid: core.pid, postgres };
  const place = await loadWithCpu(placingNumbered(core.url, path, keys[0] ?? ''), 3 * seconds, watched, side.placed);
  const cancel = await loadWithCpu(cancelling(core.url, path, keys[0] ?? ''), seconds, watched, side.placed);
  const unknown = placing(core.url, path, [makeKeyValue(randomBytes)], 0);
  const refuse = await loadWithCpu(unknown, seconds, watched);
  // Requests that were under way when the load ended have also placed calls.
  side.placed += place.requests + 1_000;
  return { place, cancel, 'refuse an unknown key': refuse };
}

async function openSide(kind: DatabaseKind, checkout: string): Promise<Side> {
  const database = await freshDatabase(kind);
  const environment = { DATABASE_URL: database, SESSION_SECRETS: 'a secret for the bench of at least 32 characters' };
  const admin = async (...args: string[]) => {
    const { PATH = '', HOME = '' } = process.env;
    const script = join(checkout, 'core/admin.ts');
    const { stdout } = await execute(process.execPath, [script, ...args, '--json'], { env: { PATH, HOME, ...environment } });
    return JSON.parse(stdout);
  };
  const { partner } = await admin('partner', 'add', 'Partner');
  const { account } = await admin('account', 'add', 'Account', '--partner', partner.id);
  const { campaign } = await admin('campaign', 'add', 'Campaign', '--account', account.id);
  const options = ['--name', 'Ada', '--type', 'account', '--account', account.id];
  const { password: oneTime } = await admin('user', 'add', 'ada@example.com', ...options);
  const core = await startServer(pathToFileURL(join(checkout, 'core/main.ts')).href, { ...environment, PORT: '0', MANAGEMENT_PORT: '0' });
  await ask(core, 'POST', '/console/password', await signIn(core, 'ada', oneTime), { newPassword: password });
  const cookie = await signIn(core, 'ada');
  const keys = await repeat(10, async () => (await createKey(core, cookie)).keyValue);
  const path = `/api/v1/campaigns/${campaign.id}/contacts/on-demand`;
  return { core, path, keys, postgres: await postgresPid(kind), placed: 0 };
}

/** Pins this process, and with it everything that it starts, to one processor. */
export async function useOneProcessor(): Promise<void> {
  await execute('taskset', ['--pid', '--cpu-list', '0', String(process.pid)]);
}
