import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { ask, createKey, insertKeys, openStage, placePath, type Stage, signIn } from './environment.ts';
import { compare, comparisonTable, count, table, withRange } from './pages.ts';
import { withCpu } from './proc.ts';
import type { DatabaseKind } from './processes.ts';
import { fillLists, makeQueuedCalls } from './seed.ts';
import { computeRatios, inTurn } from './spread.ts';
import { load, placing, type Target } from './wrk.ts';

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
  const stage = await openStage(kind);
  const { core } = stage;
  const sides: Record<'before' | 'after', Side> = { before: stage, after: await protectedSide(stage, entries) };
  const placed = await inTurn(sides, rounds, (side) => load(placing(side, side.keys, 1, contacts)));
  let queued = 0;
  const claimed = await inTurn(sides, rounds, async ({ owner }, round) => {
    await makeQueuedCalls(stage.storage.database, stage.database, owner, queued, claimedPerRound);
    queued += claimedPerRound;
    return claim(stage, round);
  });
  const cookie = await signIn(core, 'tom');
  const keys = { before: await createKey(core, cookie), after: await createKey(core, cookie) };
  const addresses = Array.from({ length: networks }, (_, n) => (n === networks - 1 ? '127.0.0.0/8' : `10.${n}.0.0/16`));
  await ask(core, 'PATCH', `/console/api-keys/${keys.after.id}`, cookie, { addresses });
  const narrow = await inTurn(keys, rounds, ({ keyValue }) => load(placing(stage, [keyValue])));
  const flood = await quietKey(stage, rounds);
  await stage.close();
  return [
    comparisonTable(
      'without',
      `with ${count(entries)} entries and 50 rules`,
      compare('place', kind, placed),
      compare('claim', kind, claimed),
    ),
    comparisonTable('without', `with ${networks} networks`, compare('place', kind, narrow)),
    flood,
  ].join('\n');
}

async function protectedSide({ core, database, ports, storage, tenants }: Stage, entries: number): Promise<Side> {
  const { otherAccount: account, otherCampaign: campaign, users } = tenants;
  const { partnerId } = account;
  const keys = await insertKeys(storage.database, 10, users.other, account);
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId, keyId: `${users.other.id}-0` };
  await fillLists(storage.database, database, owner, entries);
  const scope = { kind: 'partner', id: partnerId, name: 'Other partner', owner: { accountId: null, partnerId } } as const;
  // Fifty rules that allow calls at any time.
  const days: HoursRule['days'] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
  const rules = Array.from({ length: 50 }, (_, n) => ({ prefix: n === 0 ? '' : `+49${n + 20}`, days, from: '00:00', to: '24:00' }));
  await setHours(ports, operator, scope, rules);
  return { core, path: placePath(campaign.id), keys, owner };
}

/** Claims calls as a dialer does, in this process. */
function claim({ ports }: Stage, round: number) {
  const now = instant(Date.now() + round);
  return withCpu(process.pid, async () => {
    for (let claimed = 0; claimed < claimedPerRound; ) {
      const { length } = await ports.stores.dialing.claim(claimedAtOnce, 'simulated', now, instant(now + 3_600_000));
      if (length === 0) throw new Error('There are no more calls to claim.');
      claimed += length;
    }
    return { requests: claimedPerRound };
  });
}

/**
 * Measures how long a call of a key with one connection takes, alone, while another key uses 64, and while another core with its own
 * database gets these 64. The last case shows how much of the time is due to sharing the processors.
 */
async function quietKey(stage: Stage, rounds: number): Promise<string> {
  const [quiet = '', busy = ''] = stage.thousandKeys;
  const other = await openStage(stage.kind);
  const floods: Record<string, Target[]> = {
    alone: [],
    'while another key uses 64 connections': [placing(stage, [busy])],
    'while another core on this machine gets these 64': [placing(other, [other.key])],
  };
  const measured = Object.entries(
    await inTurn(floods, rounds, async (targets) => {
      const flood = Promise.all(targets.map((target) => load(target)));
      const { p50, p99 } = await load(placing(stage, [quiet]), { connections: 1 });
      return { p50, p99, flood: (await flood)[0]?.perSecond ?? 0 };
    }),
  );
  await other.close();
  const [alone, elsewhere] = [measured[0]?.[1].p99, measured[2]?.[1].p99];
  const lines = measured.map(([name, { p50, p99, flood }]) => {
    const ratios = [alone, elsewhere].map((reference) => (reference ? withRange(computeRatios(p99, reference)) : ''));
    return [name, withRange(p50), withRange(p99), ...ratios, withRange(flood, 0)];
  });
  const head = ['p50 in ms', 'p99 in ms', 'p99 / alone', 'p99 / during a flood of another core', "the flood's calls per second"];
  return table([`a key with one connection, ${stage.kind}`, ...head], lines);
}
