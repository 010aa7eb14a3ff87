import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import type { DatabaseKind } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, createTenants, databaseWithTenants, openDirect, signIn, type Tenants } from '../support/tenants.ts';
import type { FoundCall, Ledger } from './ledger.ts';
import { type Manner, type Provider, secret, startProvider, takes } from './provider.ts';

/** One case on one database. What a case opens, it puts on `cleanup`. */
export type Trial = {
  kind: DatabaseKind;
  isQuick: boolean;
  /** How many calls, where the case counts them: as many as were asked for. */
  calls(quick: number, whole: number): number;
  ledger: Ledger;
  cleanup: AsyncDisposableStack;
  /** The one that was opened. */
  scene: Scene | null;
};

/** Ends what would outlive this process: after the case, or with the process where it is interrupted. */
export function endLater(trial: Trial, end: () => void): void {
  process.once('exit', end);
  trial.cleanup.defer(() => {
    process.off('exit', end);
    end();
  });
}

/** A reason why a case cannot run here. */
export class Skipped extends Error {}

export type Scene = {
  trial: Trial;
  ledger: Ledger;
  provider: Provider;
  tenants: Tenants;
  cookie: string;
  key: string;
  campaignId: string;
  database: string;
  start(environment?: Record<string, string>): Promise<CoreProcess>;
  /** The one that was started last. */
  core(): CoreProcess;
  /** Stops every core; one that is asked to must end well. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
};

export async function startCore(trial: Trial, database: string, environment: Record<string, string>): Promise<CoreProcess> {
  const core = await spawnCore(database, environment);
  trial.cleanup.defer(async () => {
    if (core.child.exitCode === null && core.child.signalCode === null) {
      core.child.kill('SIGCONT');
      await core.stop('SIGKILL');
    }
  });
  return core;
}

async function fill(database: string): Promise<{ database: string; tenants: Tenants }> {
  const direct = await openDirect(database);
  const tenants = await createTenants(direct.ports).finally(() => direct.close());
  return { database, tenants };
}

/** A database with tenants in it, a provider, and a core with a key. */
export async function openScene(
  trial: Trial,
  options: { database?: string; environment?: Record<string, string>; manner?: Manner; deduplicates?: boolean } = {},
): Promise<Scene> {
  const { deduplicates = false } = options;
  const { database, tenants } = options.database === undefined ? await databaseWithTenants(trial.kind) : await fill(options.database);
  const provider = await startProvider(options.manner ?? takes, deduplicates);
  trial.cleanup.defer(() => provider.close());

  const environment = {
    DIALER: 'webhook',
    DIALER_URL: provider.url,
    DIALER_SECRETS: secret,
    DIALER_DEDUPLICATES: String(deduplicates),
    ...options.environment,
  };
  const cores: CoreProcess[] = [];
  const start = async (extra = {}): Promise<CoreProcess> => {
    const core = await startCore(trial, database, { ...environment, ...extra });
    cores.push(core);
    return core;
  };
  const first = await start();
  const cookie = await signIn(first.url, 'ada@example.com');
  const { keyValue } = await createKey(first.url, cookie);
  const scene: Scene = {
    trial,
    ledger: trial.ledger,
    provider,
    tenants,
    cookie,
    key: keyValue,
    campaignId: tenants.campaign.id,
    database,
    start,
    core: () => cores.at(-1) ?? first,
    async stop(signal) {
      for (const core of cores.splice(0, cores.length)) {
        const end = await core.stop(signal);
        if (signal === 'SIGTERM' && end !== 0) trial.ledger.fail(`a core that was asked to stop ended with ${end}`);
      }
    },
  };
  trial.scene = scene;
  return scene;
}

export async function callsIn(database: string): Promise<FoundCall[]> {
  const direct = await openDirect(database);
  try {
    return await direct.storage.database
      .read('calls')
      .select({ requestId: 'request_id', contactId: 'contact_id', state: 'state', phone: 'phone' });
  } finally {
    await direct.close();
  }
}

/** Waits until no call is in one of these states any more. @returns how many are */
export async function waitForNone(scene: Scene, states: readonly string[], within: number): Promise<number> {
  const direct = await openDirect(scene.database);
  try {
    const left = async () =>
      Number((await direct.storage.database.read('calls').whereIn('state', states).count({ n: '*' }).first())?.['n']);
    await eventually(async () => (await left()) === 0, within);
    return await left();
  } finally {
    await direct.close();
  }
}

/** Stops the cores and compares the calls that they have acknowledged with those in the database. */
export async function stopAndCompare(scene: Scene, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<FoundCall[]> {
  await scene.stop(signal);
  const found = await callsIn(scene.database);
  scene.ledger.compare(found);
  return found;
}

export async function isReady(core: CoreProcess): Promise<boolean> {
  const answer = await ask('GET', `${core.managementUrl}/readyz`).catch(() => null);
  return answer?.status === 200;
}

/** Waits until it is so. @returns whether it came to be */
export async function eventually(condition: () => boolean | Promise<boolean>, within: number): Promise<boolean> {
  const end = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > end) return false;
    await pause(50);
  }
  return true;
}

/** Counts a core that does not say within some seconds that it is, or is not, ready. */
export async function expectReady(scene: Scene, ready: boolean, when: string): Promise<void> {
  const isSo = await eventually(async () => (await isReady(scene.core())) === ready, 10_000);
  if (!isSo) scene.ledger.wronglyReady(`${ready ? 'unready' : 'ready'} ${when}`);
}

/** Counts a core that takes no calls although nothing keeps it from doing so. */
export async function expectPlacing(scene: Scene, when: string): Promise<void> {
  const requestId = `works-again-${performance.now()}`;
  const works = async () => (await scene.ledger.place(scene.core().url, scene.campaignId, scene.key, callBody(requestId))).status === 202;
  if (!(await eventually(works, 15_000))) scene.ledger.fail(`no call can be placed ${when}`);
}

let phones = 0;
/** What places a call to a phone that no other call has. */
export function callBody(requestId: string, extra: object = {}): { requestId: string; contact: { phone: string } } {
  return { requestId, contact: { phone: `+4930${20_000_000 + ++phones}` }, ...extra };
}

/** Of a process. */
export function residentMegabytes(pid: number): number {
  return Math.round(Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1_024);
}
