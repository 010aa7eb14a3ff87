import { existsSync, readFileSync } from 'node:fs';
import { sign } from '#contract/calls/signature.ts';
import { inCallLanes } from '../../core/storage/engine/call-lanes.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { signingSecret } from '../support/provider.ts';
import { addTenants, createKey, onDemand, openDirect, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import type { Trial } from './attack.ts';
import type { Body, FoundCall, Reply } from './ledger.ts';
import { type Behavior, startProvider, takes } from './provider.ts';

type SceneOptions = { database?: string | undefined; environment?: Record<string, string>; behavior?: Behavior; deduplicates?: boolean };
type Target = { url?: string; campaignId?: string };
type PlaceOptions = Target & { key?: string };
export type Scene = Awaited<ReturnType<typeof openScene>>;

/** Opens a database with tenants, a provider, and a core with a key. */
export async function openScene(trial: Trial, { behavior = takes, deduplicates = false, ...options }: SceneOptions = {}) {
  const { ledger, cleanup } = trial;
  const database = options.database ?? (await freshDatabase(trial.kind));
  const tenants = await addTenants(database);
  const provider = await startProvider(behavior, deduplicates);
  cleanup.defer(() => provider.close());
  ledger.provider = provider;
  const environment = {
    ...{ DIALER: 'webhook', DIALER_URL: provider.url, DIALER_SECRETS: signingSecret, DIALER_DEDUPLICATES: String(deduplicates) },
    ...options.environment,
  };
  const cores: CoreProcess[] = [];
  const start = async (more: Record<string, string> = {}): Promise<CoreProcess> => {
    const core = await spawnCore(database, { ...environment, ...more });
    cores.push(core);
    cleanup.defer(async () => void (await core.stop('SIGKILL')));
    return core;
  };
  const first = await start();
  const cookie = await signIn(first.url, 'ada@example.com');
  const { keyValue } = await createKey(first.url, cookie);
  const formatUrl = ({ url = scene.core().url, campaignId = tenants.campaign.id }: Target): string => onDemand(url, campaignId);
  const scene = {
    ...{ trial, ledger, provider, tenants, cookie, database, start, key: keyValue, campaignId: tenants.campaign.id },
    /** The core that was started last. */
    core: (): CoreProcess => cores.at(-1) ?? first,
    /** Places a call, by default with the scene's key at the core that was started last. */
    place(call: string | Body, { key = keyValue, ...target }: PlaceOptions = {}): Promise<Reply> {
      return ledger.place(formatUrl(target), key, typeof call === 'string' ? callBody(call) : call);
    },
    /** Places a call like `place`, and counts a fault if it isn't placed. */
    async mustPlace(call: string | Body, options?: PlaceOptions): Promise<Reply> {
      const reply = await scene.place(call, options);
      if (reply.status !== 202) ledger.fail(`${typeof call === 'string' ? call : call.requestId} got ${reply.status}`);
      return reply;
    },
    cancel: (requestId: string, target: Target = {}): Promise<Reply> => ledger.cancel(formatUrl(target), keyValue, requestId),
    /** Revokes a key, after which no request with it may be accepted. */
    async revoke(id: string, key: string, url = scene.core().url): Promise<void> {
      const { status } = await ask('DELETE', `${url}/console/api-keys/${id}`, { cookie });
      if (status === 204) ledger.revoked.add(key);
      else ledger.fail(`revoking a key got ${status}`);
    },
    /** Stops every core. A core that isn't killed must exit cleanly. */
    async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
      for (const core of cores.splice(0)) {
        const end = await core.stop(signal);
        if (end !== 0 && end !== 'SIGKILL') ledger.fail(`a core that was sent ${signal} ended with ${end}`);
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

export async function listCalls(database: string): Promise<FoundCall[]> {
  await using direct = await openDirect(database);
  const columns = { requestId: 'request_id', contactId: 'contact_id', state: 'state', phone: 'phone' } as const;
  const calls = await inCallLanes(direct.storage.database, async ({ read }): Promise<FoundCall[]> => read('calls').select(columns));
  return calls.flat();
}

/** Waits until no call is in one of these states anymore, and counts a fault if some still are. */
export async function waitForNone({ database, ledger }: Scene, states: readonly string[], within: number): Promise<void> {
  await using direct = await openDirect(database);
  const { read } = direct.storage.database;
  const left = async () => Number((await read('calls').whereIn('state', states).count({ n: '*' }).first())?.['n']);
  if (!(await until(async () => (await left()) === 0, within))) ledger.fail(`${await left()} calls are still ${states.join(' or ')}`);
}

/** Counts a fault if a core doesn't become ready, or unready, within this time in ms. */
export async function expectReady({ ledger }: Scene, core: CoreProcess, ready: boolean, when: string, within = 10_000): Promise<void> {
  const isReady = async () => (await ask('GET', `${core.managementUrl}/readyz`).catch(() => null))?.status === 200;
  await ledger.expect(async () => (await isReady()) === ready, within, `${ready ? 'unready' : 'ready'} ${when}`, 'wrongly ready');
}

/** Counts a fault if a core isn't ready or accepts no calls without a reason. */
export async function expectPlacing(scene: Scene, when: string): Promise<void> {
  await expectReady(scene, scene.core(), true, when);
  const requestId = `works-again-${performance.now()}`;
  const works = async () => (await scene.place(requestId)).status === 202;
  await scene.ledger.expect(works, 15_000, `no call can be placed ${when}`);
}

/** Counts a fault if a call isn't handed off in time. */
export async function expectDialed({ provider, ledger }: Scene, { contactId }: Reply, within: number, when: string): Promise<void> {
  await ledger.expect(() => provider.hasCalled(contactId), within, `a call isn't dialed ${when}`);
}

/** Places a call to a phone number that no other call has. */
export function callBody(requestId: string, extra: object = {}): Body & { requestId: string } {
  return { requestId, contact: { phone: somePhone() }, ...extra };
}

/** Reports that a call has ended. @returns whether the core accepted it */
export async function reportCompleted(coreUrl: string, handoffId: string): Promise<boolean> {
  const raw = JSON.stringify({ handoffId, state: 'completed' });
  const headers = sign(handoffId, raw, signingSecret, Math.floor(Date.now() / 1_000));
  const answer = await ask('POST', `${coreUrl}/dialer/outcomes`, { raw, headers }).catch(() => null);
  return answer?.status === 204;
}

/** Returns the most memory that a core has taken so far, in MB. Only Linux reports it. */
export function readPeakMemory({ pid }: CoreProcess): number {
  const file = `/proc/${pid}/status`;
  const [, kilobytes = 0] = existsSync(file) ? (/^VmHWM:\s+(\d+)/m.exec(readFileSync(file, 'utf8')) ?? []) : [];
  return Math.round(Number(kilobytes) / 1_024);
}
