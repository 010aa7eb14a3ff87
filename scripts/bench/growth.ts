import { ask, cancelsPerSecond, type DatabaseKind, insertKeys, openStage, type Stage, signIn } from './environment.ts';
import { type Figure, figure, ms } from './figures.ts';
import { count, counts, databaseLabel, tableOf } from './markdown.ts';
import { cancelling, placing } from './requests.ts';
import { computeRatios, computeSpread, computeSpreads, inTurn, repeat, type Spread } from './spread.ts';
import type { Say, Scale } from './workloads.ts';
import { load } from './wrk.ts';

const operations = ['place', 'refuse', 'cancel'] as const;

/** How many requests per second a core handles if its tables contain this many keys and calls. */
export type Grown = { database: DatabaseKind; size: number } & Record<(typeof operations)[number], Spread>;

/** How long listing the newest 500 keys takes, in ms, if there are 500 keys, and if there are a million. */
export type Lists = { database: DatabaseKind; of500: Spread; ofMillion: Spread };

/** In seconds. Short loads are enough for refusing and cancelling, because their speed varies less than that of placing. */
const shortLoad = 1;

/** Opens a database of each size. */
export function openFilled(kind: DatabaseKind, { sizes, rounds }: Scale, say: Say): Promise<Stage[]> {
  return repeat(sizes.length, async (n) => {
    const start = performance.now();
    const stage = await openStage(kind, sizes[n]);
    await stage.queue((rounds + 1) * shortLoad);
    say(`${kind}: ${sizes[n]} keys and calls created in ${Math.round((performance.now() - start) / 1_000)} s`);
    return stage;
  });
}

/** Measures the sizes in turn, and closes their databases. */
export async function grow(
  stages: readonly Stage[],
  { sizes, seconds, rounds }: Scale,
  say: Say,
): Promise<{ grown: Grown[]; lists: Lists[] }> {
  const all = await inTurn(stages, rounds + 1, async ({ kind, core, path, keys, key, unknown }, round) => {
    const { perSecond: place } = await load(placing(core.url, path, keys), seconds);
    const { perSecond: refuse } = await load(placing(core.url, path, unknown, 0), shortLoad);
    const { perSecond: cancel } = await load(cancelling(core.url, path, key), shortLoad, round * shortLoad * cancelsPerSecond);
    say(`round ${round}: ${kind}: ${[place, refuse, cancel].map((rate, n) => `${operations[n]} ${Math.round(rate)}/s`).join(', ')}`);
    return { place, refuse, cancel };
  });
  const listed = stages[1] && (await listKeys(stages[1], rounds));
  for (const stage of stages) await stage.close();
  const grown = all.map(({ item, results }, n) => ({
    ...{ database: item.kind, size: sizes[n] ?? 0 },
    // The first round only warms up code and caches.
    ...computeSpreads(results.slice(1), operations),
  }));
  return { grown, lists: listed ? [listed] : [] };
}

/** Lists the keys of the partner that has all of them, and of another partner, which gets 500, on the same core. */
async function listKeys({ kind, core, storage, tenants }: Stage, rounds: number): Promise<Lists> {
  await insertKeys(storage.database, 500, tenants.users.other, tenants.otherAccount);
  const cookies = { of500: await signIn(core, 'otto'), ofMillion: await signIn(core, 'pat') };
  const measureTime = async (cookie: string) => {
    const from = performance.now();
    await (await ask(core, 'GET', '/console/api-keys', cookie)).text();
    return performance.now() - from;
  };
  const times = await repeat(10 * rounds, async () => ({
    of500: await measureTime(cookies.of500),
    ofMillion: await measureTime(cookies.ofMillion),
  }));
  return { database: kind, ...computeSpreads(times.slice(rounds), ['of500', 'ofMillion']) };
}

/** Compares the largest tables with the smallest. */
export function compareSizes(grown: readonly Grown[], database: string): Figure[] {
  const sizes = grown.filter((row) => row.database === database);
  const [smallest, largest] = [sizes[0], sizes.at(-1)];
  if (!smallest || !largest) return [];
  const [many, few] = [largest, smallest].map(({ size }) => count(size));
  return operations.map((operation) => {
    const name = `${operation} with ${many} keys and calls, compared with ${few}`;
    return figure(name, database, '≥ 0.90', computeRatios(largest[operation], smallest[operation]));
  });
}

export function compareLists({ database, of500, ofMillion }: Lists): Figure {
  const share = ofMillion.median / of500.median;
  const value = `${share.toFixed(2)} (${ms(ofMillion.median)} and ${ms(of500.median)})`;
  return figure('list of the newest 500 of a million keys, compared with 500 of 500', database, '≤ 2', computeSpread([share]), value);
}

export function growthTable(grown: readonly Grown[]): string {
  return tableOf(grown, {
    'keys, and as many calls': ({ size }) => count(size),
    database: ({ database }) => databaseLabel(database),
    place: ({ place }) => counts(place),
    'refuse an unknown key': ({ refuse }) => counts(refuse),
    cancel: ({ cancel }) => counts(cancel),
  });
}
