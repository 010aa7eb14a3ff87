// Compares two sides on the same machine: two commits, two accounts (one has rules), or two keys (one is limited to networks). Also
// compares a key that's used alone with the same key during another key's flood.
import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { makeKeyValue } from '#contract/key-value.ts';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { load, numbered, placing, type Target, usualSeconds, withCpu } from './load.ts';
import { type DatabaseKind, databaseKinds, freshDatabase, freshFolder, run, startCore } from './processes.ts';
import { computeRatios, count, databaseLabel, inTurn, type Spreads, tableOf, withRange } from './spread.ts';
import { fillLists, insertKeys, makeQueuedCalls, openStage, placePath, type Stage } from './stage.ts';

/** The CPU time and speed of the two sides, which take turns being measured. */
type Sides = Record<'before' | 'after', Spreads<'total' | 'perSecond'>>;
type Comparison = { name: string; database: string } & Sides;

/**
 * Builds a table that compares two sides. The ratios divide the second side by the first, measured in the same round. @param first the
 * first side's title @param second the second side's title
 */
function comparisonTable(comparisons: readonly Comparison[], first: string, second: string): string {
  const ratio =
    (figure: 'total' | 'perSecond') =>
    ({ before, after }: Comparison) =>
      withRange(computeRatios(after[figure], before[figure]), 3);
  return tableOf(comparisons, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    [`CPU µs per request, ${first}`]: ({ before }) => before.total.median.toFixed(1),
    [second]: ({ after }) => after.total.median.toFixed(1),
    [`CPU, ${second} / ${first} (range)`]: ratio('total'),
    [`requests per second, ${second} / ${first} (range)`]: ratio('perSecond'),
  });
}

const here = fileURLToPath(new URL('../..', import.meta.url));
/** More calls than a core can place in one load. */
const perRound = 1_000_000;

type CommitSide = Awaited<ReturnType<typeof openSide>>;

const loads: Readonly<Record<string, (side: CommitSide) => Target>> = {
  // Spends three times as long placing calls as cancelling them, so that there are enough to cancel.
  place: (side) => ({ ...numbered('place_numbered', side), seconds: 3 * usualSeconds, perRound }),
  cancel: (side) => ({ ...numbered('cancel', side), perRound }),
  'refuse an unknown key': (side) => placing(side, [makeKeyValue(randomBytes)], 0),
};

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
    const comparisons: Comparison[] = [];
    for (const database of databaseKinds) {
      const sides = { before: await openSide(database, checkout), after: await openSide(database, here) };
      for (const [name, target] of Object.entries(loads))
        comparisons.push({ name, database, ...(await inTurn(sides, rounds, (side, round) => load(target(side), round))) });
      for (const { core } of Object.values(sides)) await core.stop();
    }
    return comparisonTable(comparisons, commit, 'now');
  } finally {
    await run('git', ['-C', here, 'worktree', 'remove', '--force', checkout]);
  }
}

/** Starts one commit's core on the data of its own demo, because schemas differ between commits. */
async function openSide(kind: DatabaseKind, checkout: string) {
  const database = await freshDatabase(kind);
  const { stdout } = await run(process.execPath, [join(checkout, 'scripts/demo.ts')], { ...process.env, DATABASE_URL: database });
  const [, key = ''] = /CALLKEY_API_KEY=(\S+)/.exec(stdout) ?? [];
  const [, campaignId = ''] = /(?:CAMPAIGN=|\/campaigns\/)([\w-]+)/.exec(stdout) ?? [];
  const core = await startCore(database, {}, pathToFileURL(join(checkout, 'core/main.ts')).href);
  return { core, path: placePath(campaignId), key };
}

/** Enough numbers that the database pages with their entries don't fit into a connection's cache. */
const contacts = 20_000;
const networks = 50;
const claimedAtOnce = 100;
const claimedPerRound = 20 * claimedAtOnce;

/** The data that one account's loads need. */
type Side = Pick<Stage, 'core' | 'path' | 'keys' | 'owner'>;

/**
 * Compares two accounts on the same core, one with do-not-call lists and fifty rules, and one without; then two keys, one of which is
 * accepted only from a list of networks; then a key alone and during another key's flood. @returns Markdown
 */
export async function measureRules(kind: DatabaseKind, entries: number, rounds: number): Promise<string> {
  await using stage = await openStage(kind);
  const { database, storage, tenants } = stage;
  const sides: Record<'before' | 'after', Side> = { before: stage, after: await protectedSide(stage, entries) };
  // Claims come first: a claim takes calls of any account, so it would also take those that the later loads place.
  let queued = 0;
  const claimed = await inTurn(sides, rounds, async ({ owner }, round) => {
    await makeQueuedCalls(storage.database, database, owner, queued, claimedPerRound);
    queued += claimedPerRound;
    return claim(stage, round);
  });
  const placed = await inTurn(sides, rounds, (side) => load(placing(side, side.keys, 1, contacts)));
  const { account, users } = tenants;
  const addresses = Array.from({ length: networks }, (_, n) => (n === networks - 1 ? '127.0.0.0/8' : `10.${n}.0.0/16`));
  const limits = { limits_version: 'bench', addresses: JSON.stringify(addresses) };
  const [after = ''] = await insertKeys(storage.database, 1, users.teammate, account, limits);
  const narrow = await inTurn({ before: stage.key, after }, rounds, (key) => load(placing(stage, [key])));
  const row = (name: string, measured: Sides) => ({ name, database: kind, ...measured });
  return [
    comparisonTable([row('place', placed), row('claim', claimed)], 'without', `with ${count(entries)} entries and 50 rules`),
    comparisonTable([row('place', narrow)], 'without', `with ${networks} networks`),
    await quietKey(stage, rounds),
  ].join('\n');
}

async function protectedSide({ core, database, ports, storage, tenants }: Stage, entries: number): Promise<Side> {
  const { otherAccount: account, otherCampaign: campaign, users } = tenants;
  const { partnerId } = account;
  const keys = await insertKeys(storage.database, 10, users.other, account);
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId, keyId: `${users.other.id}-0` };
  await fillLists(storage.database, database, owner, entries);
  // Fifty rules that allow calls at any time.
  const days: HoursRule['days'] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
  const rules = Array.from({ length: 50 }, (_, n) => ({ prefix: n === 0 ? '' : `+49${n + 20}`, days, from: '00:00', to: '24:00' }));
  await setHours(ports, operator, { scope: 'partner', id: partnerId }, rules);
  return { core, path: placePath(campaign.id), keys, owner };
}

/** Claims calls as a dialer does, in this process. */
function claim({ ports }: Stage, round: number) {
  const now = instant(Date.now() + round);
  return withCpu(process.pid, async () => {
    for (let claimed = 0; claimed < claimedPerRound; ) {
      const { length } = await ports.stores.dialing.claim(claimedAtOnce, 'simulated', now, instant(now + 3_600_000));
      if (length === 0) throw new Error('No calls are left to claim.');
      claimed += length;
    }
    return { requests: claimedPerRound };
  });
}

/**
 * Measures how long it takes to place a call with a key that uses one connection: alone, while another key uses 64 connections to the same
 * core, and while these 64 go to another core with its own database instead. The last case shows how much of the time is due to sharing the
 * processors.
 */
async function quietKey(stage: Stage, rounds: number): Promise<string> {
  const [quiet = '', busy = ''] = stage.thousandKeys;
  await using other = await openStage(stage.kind);
  const floods = {
    alone: [],
    'while another key uses 64 connections': [placing(stage, [busy])],
    'while another core with its own database gets these 64 connections': [placing(other, [other.key])],
  };
  const measured = await inTurn(floods, rounds, async (targets) => {
    const flood = Promise.all(targets.map((target) => load(target)));
    const { p50, p99 } = await load({ ...placing(stage, [quiet]), connections: 1 });
    return { p50, p99, flood: (await flood)[0]?.perSecond ?? 0 };
  });
  const { alone, 'while another core with its own database gets these 64 connections': elsewhere } = measured;
  return tableOf(Object.entries(measured), {
    'a key with one connection': ([name]) => name,
    database: () => databaseLabel(stage.kind),
    'p50 in ms': ([, { p50 }]) => withRange(p50),
    'p99 in ms': ([, { p99 }]) => withRange(p99),
    'p99 / alone': ([, { p99 }]) => withRange(computeRatios(p99, alone.p99)),
    'p99 / during a flood of another core': ([, { p99 }]) => withRange(computeRatios(p99, elsewhere.p99)),
    "the flood's calls per second": ([, { flood }]) => withRange(flood, 0),
  });
}
