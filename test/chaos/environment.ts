import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import type { DatabaseKind } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { signingSecret } from '../support/receiver.ts';
import { createKey, createTenants, databaseWithTenants, openDirect, signIn, somePhone, type Tenants } from '../support/tenants.ts';
import type { Body, FoundCall, Ledger, Reply } from './ledger.ts';
import { type Manner, type Provider, startProvider, takes } from './provider.ts';

/** One case on one database. What a case opens, it adds to `cleanup`. */
export type Trial = {
  kind: DatabaseKind;
  isQuick: boolean;
  /** The number of calls, if the case counts them: the value of `--calls`. */
  calls(quick: number, whole: number): number;
  ledger: Ledger;
  cleanup: AsyncDisposableStack;
  /** The open database. */
  scene: Scene | null;
};

/** Ends everything that would outlive this process, after the case or when the process is interrupted. */
export function endLater(trial: Trial, end: () => void): void {
  process.once('exit', end);
  trial.cleanup.defer(() => {
    process.off('exit', end);
    end();
  });
}

/** A reason why a case can't run here. */
export class Skipped extends Error {}

type PlaceOptions = { url?: string; key?: string; campaignId?: string };

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
  /** The core that was started last. */
  core(): CoreProcess;
  /** Places a call, by default with the scene's key at the core that was started last. */
  place(call: string | Body, options?: PlaceOptions): Promise<Reply>;
  /** Does the same, and counts a fault if the call isn't placed. */
  mustPlace(call: string | Body, options?: PlaceOptions): Promise<Reply>;
  /** Stops every core. A core that is asked to stop must exit cleanly. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
};

type SceneOptions = { database?: string | undefined; environment?: Record<string, string>; manner?: Manner; deduplicates?: boolean };

/** A database with tenants, a provider, and a core with a key. */
export async function openScene(trial: Trial, options: SceneOptions = {}): Promise<Scene> {
  const { deduplicates = false, manner = takes } = options;
  const { ledger, cleanup } = trial;
  const { database, tenants } = options.database === undefined ? await databaseWithTenants(trial.kind) : await fill(options.database);
  const provider = await startProvider(manner, deduplicates);
  cleanup.defer(() => provider.close());
  const environment = {
    ...{ DIALER: 'webhook', DIALER_URL: provider.url, DIALER_SECRETS: signingSecret, DIALER_DEDUPLICATES: String(deduplicates) },
    ...options.environment,
  };
  const cores: CoreProcess[] = [];
  const start = async (extra = {}): Promise<CoreProcess> => {
    const core = await spawnCore(database, { ...environment, ...extra });
    cores.push(core);
    cleanup.defer(async () => {
      if (core.child.exitCode !== null || core.child.signalCode !== null) return;
      core.child.kill('SIGCONT');
      await core.stop('SIGKILL');
    });
    return core;
  };
  const first = await start();
  const cookie = await signIn(first.url, 'ada@example.com');
  const { keyValue } = await createKey(first.url, cookie);
  const scene: Scene = {
    ...{ trial, ledger, provider, tenants, cookie, key: keyValue, campaignId: tenants.campaign.id, database, start },
    core: () => cores.at(-1) ?? first,
    place: (call, { url = scene.core().url, key = scene.key, campaignId = scene.campaignId } = {}) =>
      ledger.place(url, campaignId, key, typeof call === 'string' ? callBody(call) : call),
    async mustPlace(call, from) {
      const reply = await scene.place(call, from);
      if (reply.status !== 202) ledger.fail(`${typeof call === 'string' ? call : call.requestId} got ${reply.status}`);
      return reply;
    },
    async stop(signal) {
      for (const core of cores.splice(0, cores.length)) {
        const end = await core.stop(signal);
        if (signal === 'SIGTERM' && end !== 0) ledger.fail(`a core that was asked to stop ended with ${end}`);
      }
    },
  };
  trial.scene = scene;
  return scene;
}

async function fill(database: string): Promise<{ database: string; tenants: Tenants }> {
  await using direct = await openDirectly(database);
  return { database, tenants: await createTenants(direct.ports) };
}

/** Opens a database that the cores also use, until the end of the block. */
export async function openDirectly(database: string) {
  const direct = await openDirect(database);
  return { ...direct, [Symbol.asyncDispose]: () => direct.close() };
}

export async function callsIn(database: string): Promise<FoundCall[]> {
  await using direct = await openDirectly(database);
  return await direct.storage.database
    .read('calls')
    .select({ requestId: 'request_id', contactId: 'contact_id', state: 'state', phone: 'phone' });
}

/**
 * Waits until no call is in one of these states any more, and counts a fault if some still are. `dueAfter` excludes calls that were due
 * before.
 */
export async function waitForNone(scene: Scene, states: readonly string[], within: number, dueAfter?: number): Promise<void> {
  await using direct = await openDirectly(scene.database);
  const left = async () => {
    const calls = direct.storage.database.read('calls').whereIn('state', states);
    if (dueAfter !== undefined) calls.where('due_at', '>', dueAfter);
    return Number((await calls.count({ n: '*' }).first())?.['n']);
  };
  if (!(await eventually(async () => (await left()) === 0, within)))
    scene.ledger.fail(`${await left()} calls are still ${states.join(' or ')}`);
}

/** Stops the cores and compares the calls that they acknowledged with those in the database. */
export async function stopAndCompare(scene: Scene, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM', database = scene.database) {
  await scene.stop(signal);
  const found = await callsIn(database);
  scene.ledger.compare(found);
  return found;
}

export async function isReady({ managementUrl }: CoreProcess): Promise<boolean> {
  const answer = await ask('GET', `${managementUrl}/readyz`).catch(() => null);
  return answer?.status === 200;
}

/** Waits until the condition is true. @returns whether it became true in time */
export async function eventually(condition: () => boolean | Promise<boolean>, within: number): Promise<boolean> {
  const end = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > end) return false;
    await pause(50);
  }
  return true;
}

/** Counts a fault if a core doesn't report within some seconds that it is, or isn't, ready. */
export async function expectReady(scene: Scene, ready: boolean, when: string): Promise<void> {
  const isSo = await eventually(async () => (await isReady(scene.core())) === ready, 10_000);
  if (!isSo) scene.ledger.wronglyReady(`${ready ? 'unready' : 'ready'} ${when}`);
}

/** Counts a fault if a core isn't ready or accepts no calls without a reason. */
export async function expectPlacing(scene: Scene, when: string): Promise<void> {
  await expectReady(scene, true, when);
  const requestId = `works-again-${performance.now()}`;
  const works = async () => (await scene.place(requestId)).status === 202;
  if (!(await eventually(works, 15_000))) scene.ledger.fail(`no call can be placed ${when}`);
}

/** Counts a fault if a call isn't handed off in time. */
export async function expectDialed({ provider, ledger }: Scene, { contactId }: Reply, within: number, when: string): Promise<void> {
  if (!(await eventually(() => provider.hasCalled(contactId), within))) ledger.fail(`a call isn't dialed ${when}`);
}

/** Places a call to a phone number that no other call has. */
export function callBody(requestId: string, extra: object = {}): Body & { requestId: string } {
  return { requestId, contact: { phone: somePhone() }, ...extra };
}

export function residentMegabytes({ child }: CoreProcess): number {
  return Math.round(Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' })) / 1_024);
}
