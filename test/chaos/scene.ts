import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { inEachShard } from '../../core/storage/engine/shards.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { ask } from '../support/http.ts';
import { signingSecret } from '../support/receiver.ts';
import { createKey, createTenants, databaseWithTenants, openDirect, signIn, somePhone } from '../support/tenants.ts';
import type { Trial } from './attack.ts';
import type { Body, FoundCall, Reply } from './ledger.ts';
import { type Behavior, startProvider, takes } from './provider.ts';

type SceneOptions = { database?: string | undefined; environment?: Record<string, string>; behavior?: Behavior; deduplicates?: boolean };
type PlaceOptions = { url?: string; key?: string; campaignId?: string };
export type Scene = Awaited<ReturnType<typeof openScene>>;

/** Opens a database with tenants, a provider, and a core with a key. */
export async function openScene(trial: Trial, { behavior = takes, deduplicates = false, ...options }: SceneOptions = {}) {
  const { ledger, cleanup } = trial;
  const { database, tenants } = options.database === undefined ? await databaseWithTenants(trial.kind) : await fill(options.database);
  const provider = await startProvider(behavior, deduplicates);
  cleanup.defer(() => provider.close());
  ledger.watch(provider);
  const environment = {
    ...{ DIALER: 'webhook', DIALER_URL: provider.url, DIALER_SECRETS: signingSecret, DIALER_DEDUPLICATES: String(deduplicates) },
    ...options.environment,
  };
  const cores: CoreProcess[] = [];
  const start = async (more: Record<string, string> = {}): Promise<CoreProcess> => {
    const core = await spawnCore(database, { ...environment, ...more });
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
  const scene = {
    ...{ trial, ledger, provider, tenants, cookie, database, start, campaignId: tenants.campaign.id },
    key: (await createKey(first.url, cookie)).keyValue,
    /** The core that was started last. */
    core: () => cores.at(-1) ?? first,
    /** Places a call, by default with the scene's key at the core that was started last. */
    place(
      call: string | Body,
      { url = scene.core().url, key = scene.key, campaignId = scene.campaignId }: PlaceOptions = {},
    ): Promise<Reply> {
      return ledger.place(url, campaignId, key, typeof call === 'string' ? callBody(call) : call);
    },
    /** Places a call like `place`, and counts a fault if it isn't placed. */
    async mustPlace(call: string | Body, options?: PlaceOptions): Promise<Reply> {
      const reply = await scene.place(call, options);
      if (reply.status !== 202) ledger.fail(`${typeof call === 'string' ? call : call.requestId} got ${reply.status}`);
      return reply;
    },
    /** Stops every core. A core that is asked to stop must exit cleanly. */
    async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
      for (const core of cores.splice(0, cores.length)) {
        const end = await core.stop(signal);
        if (signal === 'SIGTERM' && end !== 0) ledger.fail(`a core that was asked to stop ended with ${end}`);
      }
    },
    /** Stops the cores and compares the calls that they acknowledged with those in the database. */
    async stopAndCompare(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM', from = database): Promise<FoundCall[]> {
      await scene.stop(signal);
      const calls = await listCalls(from);
      ledger.compare(calls);
      return calls;
    },
  };
  return scene;
}

async function fill(database: string) {
  await using direct = await openDirect(database);
  return { database, tenants: await createTenants(direct.ports) };
}

export async function listCalls(database: string): Promise<FoundCall[]> {
  await using direct = await openDirect(database);
  const columns = { requestId: 'request_id', contactId: 'contact_id', state: 'state', phone: 'phone' } as const;
  const calls = await inEachShard(direct.storage.database, async ({ read }): Promise<FoundCall[]> => read('calls').select(columns));
  return calls.flat();
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

/** Waits until no call is in one of these states anymore, and counts a fault if some still are. */
export async function waitForNone({ database, ledger }: Scene, states: readonly string[], within: number): Promise<void> {
  await using direct = await openDirect(database);
  const { read } = direct.storage.database;
  const left = async () => Number((await read('calls').whereIn('state', states).count({ n: '*' }).first())?.['n']);
  if (!(await eventually(async () => (await left()) === 0, within))) ledger.fail(`${await left()} calls are still ${states.join(' or ')}`);
}

export async function isReady({ managementUrl }: CoreProcess): Promise<boolean> {
  const answer = await ask('GET', `${managementUrl}/readyz`).catch(() => null);
  return answer?.status === 200;
}

/** Counts a fault if a core doesn't become ready, or unready, within ten seconds. */
export async function expectReady({ core, ledger }: Scene, ready: boolean, when: string): Promise<void> {
  const isSo = await eventually(async () => (await isReady(core())) === ready, 10_000);
  if (!isSo) ledger.wronglyReady(`${ready ? 'unready' : 'ready'} ${when}`);
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

/** Watches how much memory a core takes. @returns a function that stops watching and returns the maximum in MB */
export function watchMemory({ cleanup }: Trial, { child }: CoreProcess): () => number {
  let most = 0;
  const timer = setInterval(() => {
    const kilobytes = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' }));
    most = Math.max(most, Math.round(kilobytes / 1_024));
  }, 250);
  const stop = () => {
    clearInterval(timer);
    return most;
  };
  cleanup.defer(() => void stop());
  return stop;
}
