import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { makeKeyValue } from '#contract/key-value.ts';
import { ask, createKey, type DatabaseKind, databaseKinds, freshDatabase, password, postgresOf, signIn } from './environment.ts';
import { type CostedLoad, hasProc, loadWithCpu } from './proc.ts';
import { freshFolder, type Server, startServer } from './processes.ts';
import { cancelling, placing, placingNumbered } from './requests.ts';
import { repeat, type Spread, spreadOf } from './spread.ts';
import type { Say } from './workloads.ts';

const execute = promisify(execFile);
const here = fileURLToPath(new URL('../..', import.meta.url));

/** One commit's core on its own database, prepared only through its commands and its API, because schemas differ between commits. */
type Side = { core: Server; path: string; keys: string[]; postgres: number | undefined; placed: number };

/** A row of both commits: this commit divided by the other, per pair of loads. The costs are the CPU time per request in µs. */
export type Comparison = { name: string; database: DatabaseKind; cost: Spread; costBefore: Spread; costRatio: Spread; speedRatio: Spread };

const rows = ['place', 'cancel', 'refuse an unknown key'] as const;
type RowName = (typeof rows)[number];
/** Loads of both sides by row. */
export type Pair<Name extends string> = Record<Name, CostedLoad>[];

/**
 * Loads the working tree's core and another commit's core in turn.
 *
 * @param rounds the number of pairs @param seconds the duration of each load
 * @throws Error if git doesn't know the commit
 */
export async function compareCommits(commit: string, rounds: number, seconds: number, say: Say): Promise<Comparison[]> {
  const other = join(freshFolder(), 'checkout');
  await execute('git', ['-C', here, 'worktree', 'add', '--quiet', '--detach', other, commit]);
  try {
    symlinkSync(join(here, 'node_modules'), join(other, 'node_modules'));
    const all: Comparison[] = [];
    for (const kind of databaseKinds) all.push(...(await compareOn(kind, other, rounds, seconds, say)));
    return all;
  } finally {
    await execute('git', ['-C', here, 'worktree', 'remove', '--force', other]);
  }
}

async function compareOn(kind: DatabaseKind, other: string, rounds: number, seconds: number, say: Say): Promise<Comparison[]> {
  const sides = [await openSide(kind, other), await openSide(kind, here)];
  const pairs = await repeat(rounds + 1, async (round) => {
    const loads: Record<RowName, CostedLoad>[] = [];
    // Each side goes first in every second round.
    const order = round % 2 === 0 ? [0, 1] : [1, 0];
    for (const index of order) {
      const side = sides[index];
      if (side) loads[index] = await loadSide(side, seconds);
    }
    say(`round ${round} of ${rounds}: ${kind}`);
    return loads;
  });
  for (const { core } of sides) await core.stop();
  // The first round only warms up code and caches.
  return rows.map((name) => compareRow(name, kind, pairs.slice(1)));
}

export function compareRow<Name extends string>(name: Name, database: DatabaseKind, pairs: readonly Pair<Name>[]): Comparison {
  const each = (get: (load: CostedLoad) => number, side: number) => pairs.map((pair) => (pair[side] ? get(pair[side][name]) : Number.NaN));
  const getCost = ({ cpu }: CostedLoad) => (cpu ? cpu.main + cpu.rest + cpu.postgres : Number.NaN);
  const divide = (values: readonly number[], by: readonly number[]) => spreadOf(values.map((value, n) => value / (by[n] ?? Number.NaN)));
  const [before, after] = [each(getCost, 0), each(getCost, 1)];
  const speed = (side: number) => each(({ perSecond }) => perSecond, side);
  return {
    ...{ name, database, cost: spreadOf(after), costBefore: spreadOf(before) },
    ...{ costRatio: divide(after, before), speedRatio: divide(speed(1), speed(0)) },
  };
}

/** Places calls for three times as long as it then cancels them, so that there are enough. */
async function loadSide(side: Side, seconds: number): Promise<Record<RowName, CostedLoad>> {
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
  const { user, password: oneTime } = await admin(
    'user',
    'add',
    'ada@example.com',
    '--name',
    'Ada',
    '--type',
    'account',
    '--account',
    account.id,
  );
  const core = await startServer(pathToFileURL(join(checkout, 'core/main.ts')).href, { ...environment, PORT: '0', MANAGEMENT_PORT: '0' });
  await choosePassword(core, user.email, oneTime);
  const cookie = await signIn(core, 'ada');
  const keys = await repeat(10, async () => (await createKey(core, cookie)).keyValue);
  const path = `/api/v1/campaigns/${campaign.id}/contacts/on-demand`;
  const postgres = kind === 'postgres' && hasProc ? await postgresOf(database) : undefined;
  return { core, path, keys, postgres, placed: 0 };
}

/** Replaces the one-time password. */
async function choosePassword(core: Server, email: string, oneTime: string): Promise<void> {
  const { headers } = await ask(core, 'POST', '/console/session', '', { email, password: oneTime });
  const cookie = headers.getSetCookie().map((set) => set.split(';')[0]);
  await ask(core, 'POST', '/console/password', cookie.join('; '), { newPassword: password });
}

/** Pins this process, and so everything that it starts, to one processor. */
export async function useOneProcessor(): Promise<void> {
  await execute('taskset', ['--pid', '--cpu-list', '0', String(process.pid)]);
}

/** Makes a Markdown table. @param before and @param after the titles of the sides */
export function comparisonTable(all: readonly Comparison[], before: string, after = 'now'): string {
  const percent = ({ median, min, max }: Spread) => `${median.toFixed(3)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
  const lines = all.map(({ name, database, cost, costBefore, costRatio, speedRatio }) =>
    ['', name, database, costBefore.median.toFixed(1), cost.median.toFixed(1), percent(costRatio), percent(speedRatio), '']
      .join(' | ')
      .trim(),
  );
  const ratio = `${after} / ${before} (range)`;
  const head = `| | database | CPU µs per request, ${before} | ${after} | CPU, ${ratio} | requests per second, ${ratio} |`;
  return `${[head, '| --- | --- | --: | --: | --- | --- |', ...lines].join('\n')}\n`;
}
