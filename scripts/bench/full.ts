import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Cores, type Grown, grow, type Lists, measureBudget, measureSeveralCores, openFilled, type Scope } from './comparisons.ts';
import { databaseKinds, databaseVersion, describeOrigin, type Origin, openStage, postgresSettings } from './environment.ts';
import {
  compareLists,
  compareSizes,
  compareTwoCores,
  deriveFigures,
  type Figure,
  measureHelp,
  measureLoneClient,
  measureMemory,
  measureSignInFlood,
  start,
} from './figures.ts';
import type { OtherLoad } from './load-guard.ts';
import { freshFolder, run, startServer } from './processes.ts';
import { getting } from './requests.ts';
import { type Measured, measureRows, type Row, type Say, type Scale } from './workloads.ts';

/** The results of a full run. */
export type Results = Origin & {
  rounds: number;
  /** The highest other load during half a minute. */
  otherLoad: OtherLoad;
  /** How long each part took. */
  minutes: Record<string, number>;
  rows: Row[];
  figures: Figure[];
  budget: Scope[];
  cores: Cores[];
  grown: Grown[];
  lists: Lists[];
};

/** Runs all parts. Fails as a whole if any part fails. */
export async function runAll(scale: Scale, say: Say): Promise<Omit<Results, 'otherLoad'>> {
  const { machine, ...origin } = await describeOrigin();
  const minutes: Record<string, number> = {};
  const timed = async <Result>(part: string, work: () => Promise<Result>): Promise<Result> => {
    say(`${part} …`);
    const from = performance.now();
    const result = await work();
    minutes[part] = Math.round((performance.now() - from) / 600) / 100;
    say(`${part}: ${minutes[part]} minutes`);
    return result;
  };

  await timed('installing', installPeers);
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  const figures = [await measureHelp(scale)];
  let [budget, cores]: [Scope[], Cores[]] = [[], []];
  // One after the other, so that one database's cleanup doesn't slow down the other's rounds.
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    const peers = kind === 'sqlite' ? [await betterAuth()] : [];
    rows.push(...(await timed(`rows, ${kind}`, () => measureRows(stage, bare, scale, say, peers))));
    figures.push(...measureMemory(stage), ...deriveFigures(rows, kind));
    const measureFigures = async () => [
      await measureLoneClient(stage, bare, scale),
      await start(stage, scale),
      ...(await measureSignInFlood(stage, scale)),
    ];
    figures.push(...(await timed(`figures, ${kind}`, measureFigures)));
    if (kind === 'sqlite') budget = await timed('budget', () => measureBudget(stage, scale));
    else cores = await timed('cores', () => measureSeveralCores(stage, scale));
    await stage.close();
  }
  const filled = await timed('filling', () => Promise.all(databaseKinds.map((kind) => openFilled(kind, scale, say))));
  const [grown, lists]: [Grown[], Lists[]] = [[], []];
  for (const stages of filled) {
    const result = await timed(`growth, ${stages[0]?.kind}`, () => grow(stages, scale, say));
    grown.push(...result.grown);
    lists.push(...result.lists);
  }
  figures.push(...compareTwoCores(cores), ...lists.map(compareLists), ...databaseKinds.flatMap((kind) => compareSizes(grown, kind)));
  const about = { ...origin, machine: { ...machine, settings: postgresSettings.join(', ') }, rounds: scale.rounds, minutes };
  return { ...about, rows, figures, budget, cores, grown, lists };
}

async function betterAuth(): Promise<Measured> {
  const server = await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshFolder(), 'peer.db') });
  return { name: 'better-auth, verify a key and record its use', server, target: getting(server.url, String(server.startLine['key'])) };
}

/** Installs the competitors at the versions in their own lock file. */
async function installPeers(): Promise<void> {
  const folder = fileURLToPath(new URL('competitors', import.meta.url));
  const { error } = await run('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']);
  if (error) throw error;
}
