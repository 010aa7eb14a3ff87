import { ask, cancelsPerSecond, insertKeys, openStage, type Stage, signIn } from './environment.ts';
import { type Figure, figure, ms } from './figures.ts';
import { count, counts, databaseLabel, tableOf } from './pages.ts';
import type { DatabaseKind } from './processes.ts';
import { computeRatios, computeSpread, inTurn, repeat, type Spread, say, timed } from './spread.ts';
import { load, numbered, placing } from './wrk.ts';

const operations = ['place', 'refuse', 'cancel'] as const;

/** How many requests per second a core handles if its tables contain this many keys and calls. */
export type Grown = { database: DatabaseKind; size: number } & Record<(typeof operations)[number], Spread>;

/** How long listing the newest 500 keys takes, in ms, if there are 500 keys, and if there are a million. */
export type Lists = { database: DatabaseKind; of500: Spread; ofMillion: Spread };

/** In seconds. Short loads are enough for refusing and cancelling, because their speed varies less than that of placing. */
const shortLoad = 1;

/** Opens databases whose tables contain this many keys, and as many calls. */
export async function openFilled(kind: DatabaseKind, sizes: readonly number[], rounds: number): Promise<Record<string, Stage>> {
  const stages: Record<string, Stage> = {};
  for (const size of sizes) {
    const stage = await openStage(kind, size);
    await stage.queue((rounds + 1) * shortLoad);
    say(`${kind}: ${size} keys and calls created`);
    stages[size] = stage;
  }
  return stages;
}

/** Measures the sizes in turn. */
export async function grow(database: DatabaseKind, stages: Readonly<Record<string, Stage>>, rounds: number): Promise<Grown[]> {
  const measured = await inTurn(stages, rounds, async (stage, round) => {
    const place = await load(placing(stage, stage.keys));
    const refuse = await load(placing(stage, stage.unknown, 0), { seconds: shortLoad });
    const from = round * shortLoad * cancelsPerSecond;
    const cancel = await load(numbered('cancel', stage, stage.key), { seconds: shortLoad, from });
    return { place: place.perSecond, refuse: refuse.perSecond, cancel: cancel.perSecond };
  });
  return Object.entries(measured).map(([size, spreads]) => ({ database, size: Number(size), ...spreads }));
}

/** Lists the keys of the partner that has all of them, and of another partner, which gets 500, on the same core. */
export async function listKeys({ kind, core, storage, tenants }: Stage, rounds: number): Promise<Lists> {
  await insertKeys(storage.database, 500, tenants.users.other, tenants.otherAccount);
  const cookies = { of500: await signIn(core, 'otto'), ofMillion: await signIn(core, 'pat') };
  const list = async (cookie: string) => (await ask(core, 'GET', '/console/api-keys', cookie)).text();
  const { of500, ofMillion } = await inTurn(cookies, rounds, async (cookie) => {
    const times = await repeat(10, () => timed(() => list(cookie)));
    return { ms: computeSpread(times.map(({ ms }) => ms)).median };
  });
  return { database: kind, of500: of500.ms, ofMillion: ofMillion.ms };
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
