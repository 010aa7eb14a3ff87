import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/tenancies.ts';
import { instant } from '../../core/domain/instant.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { ask, createKey, type DatabaseKind, insertKeys, openStage, type Stage, signIn } from './environment.ts';
import { table, withRange } from './markdown.ts';
import { compare, comparisonTable, inPairs } from './pairs.ts';
import { type CostedLoad, loadWithCpu, watchCpu } from './proc.ts';
import { placing } from './requests.ts';
import { fillLists, makeQueuedCalls } from './seed.ts';
import { computeSpreads, repeat } from './spread.ts';
import type { Say } from './workloads.ts';
import { type Load, load } from './wrk.ts';

/** Enough numbers that the database pages with their entries don't fit into a connection's cache. */
const contacts = 20_000;
const networks = 50;
const claimedAtOnce = 100;

/** The data that one account's loads need. */
type Side = { path: string; keys: string[]; owner: { accountId: string; campaignId: string; partnerId: string; keyId: string } };

/**
 * Compares two accounts on the same core, one with do-not-call lists and fifty rules, and one without; then two keys, one of which is
 * accepted only from a list of networks; then a key alone and during another key's flood. @returns Markdown
 */
export async function measureRules(kind: DatabaseKind, entries: number, rounds: number, seconds: number, say: Say): Promise<string> {
  const stage = await openStage(kind);
  const { core, path } = stage;
  const place = (of: string, keys: readonly string[], contacted?: number) =>
    loadWithCpu(placing(core.url, of, keys, 1, contacted), seconds, { pid: core.pid, postgres: stage.postgres });
  const sides = [plainSide(stage), await protectedSide(stage, entries)] as const;
  say(`${kind}: ${entries} entries made`);
  const placed = await inPairs(sides, rounds, (side) => place(side.path, side.keys, contacts));
  say(`${kind}: calls placed`);
  const claimed = await inPairs(sides, rounds, (side, round) => claim(stage, side, round));
  say(`${kind}: calls claimed`);
  const cookie = await signIn(core, 'tom');
  const anywhere = await createKey(core, cookie);
  const limited = await createKey(core, cookie);
  const addresses = Array.from({ length: networks }, (_, n) => (n === networks - 1 ? '127.0.0.0/8' : `10.${n}.0.0/16`));
  await ask(core, 'PATCH', `/console/api-keys/${limited.id}`, cookie, { addresses });
  const narrow = await inPairs([anywhere, limited], rounds, ({ keyValue }) => place(path, [keyValue]));
  say(`${kind}: limited addresses measured`);
  const flood = await quietKey(stage, rounds, seconds);
  await stage.close();
  const protection = `with ${entries.toLocaleString('en')} entries and 50 rules`;
  return [
    comparisonTable([compare('place', kind, placed), compare('claim', kind, claimed)], 'without', protection),
    comparisonTable([compare('place', kind, narrow)], 'without', `with ${networks} networks`),
    flood,
  ].join('\n');
}

function plainSide({ path, keys, tenants: { account, campaign, partner, users } }: Stage): Side {
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId: partner.id, keyId: `${users.account.id}-0` };
  return { path, keys, owner };
}

async function protectedSide({ database, ports, storage, tenants }: Stage, entries: number): Promise<Side> {
  const { otherAccount: account, users } = tenants;
  const { partnerId } = account;
  const campaign = await createCampaign(ports, operator, 'Protected', account.id);
  const keys = await insertKeys(storage.database, 10, users.other, account);
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId, keyId: `${users.other.id}-0` };
  await fillLists(storage.database, database, owner, entries);
  const scope = { kind: 'partner', id: partnerId, name: 'Other partner', owner: { accountId: null, partnerId } } as const;
  await setHours(ports, operator, scope, openHours());
  return { path: `/api/v1/campaigns/${campaign.id}/contacts/on-demand`, keys, owner };
}

/** Fifty rules that allow calls at any time. */
function openHours(): HoursRule[] {
  const days: HoursRule['days'] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
  return Array.from({ length: 50 }, (_, n) => ({ prefix: n === 0 ? '' : `+49${n + 20}`, days, from: '00:00', to: '24:00' }));
}

let queued = 0;

/** Claims calls as a dialer does, in this process. */
async function claim({ database, postgres, ports, storage }: Stage, { owner }: Side, round: number): Promise<CostedLoad> {
  const count = 20 * claimedAtOnce;
  await makeQueuedCalls(storage.database, database, owner, queued, count);
  queued += count;
  const now = instant(Date.now() + round);
  const { getCpu, seconds } = await watchCpu({ pid: process.pid, postgres }, async () => {
    for (let claimed = 0; claimed < count; ) {
      const calls = await ports.stores.dialing.claim(claimedAtOnce, 'simulated', now, instant(now + 3_600_000));
      if (calls.length === 0) throw new Error('There are no more calls to claim.');
      claimed += calls.length;
    }
  });
  return { requests: count, perSecond: count / seconds, p50: 0, p99: 0, cpu: getCpu(count) };
}

/**
 * Measures how long a call of a key with one connection takes, alone, while another key uses 64, and while another core with its own
 * database gets these 64. The last case shows how much of the time is due to sharing the processors.
 */
async function quietKey({ core, path, thousandKeys, kind }: Stage, rounds: number, seconds: number): Promise<string> {
  const [quiet = '', busy = ''] = thousandKeys;
  const elsewhere = await openStage(kind);
  const place = async () => ({ ...(await load(placing(core.url, path, [quiet]), seconds, 0, 1)), perSecond: 0 });
  const placeDuring = async (flood: Promise<Load>) => {
    const [{ p50, p99 }, { perSecond }] = await Promise.all([place(), flood]);
    return { p50, p99, perSecond };
  };
  const rows = await repeat(rounds, async () => ({
    alone: await place(),
    beside: await placeDuring(load(placing(core.url, path, [busy]), seconds)),
    elsewhere: await placeDuring(load(placing(elsewhere.core.url, elsewhere.path, [elsewhere.key]), seconds)),
  }));
  await elsewhere.close();
  const line = (name: string, of: 'alone' | 'beside' | 'elsewhere') => {
    const loads = rows.map((row) => ({ ...row[of], ratio: row[of].p99 / row.alone.p99, share: row[of].p99 / row.elsewhere.p99 }));
    const { p50, p99, ratio, share, perSecond } = computeSpreads(loads, ['p50', 'p99', 'ratio', 'share', 'perSecond']);
    return [name, withRange(p50), withRange(p99), withRange(ratio), withRange(share), withRange(perSecond, 0)];
  };
  const head = ['p50 in ms', 'p99 in ms', 'p99 / alone', 'p99 / during a flood of another core', "the flood's calls per second"];
  const lines = [
    line('alone', 'alone'),
    line('while another key uses 64 connections', 'beside'),
    line('while another core on this machine gets these 64', 'elsewhere'),
  ];
  return table([`a key with one connection, ${kind}`, ...head], lines);
}
