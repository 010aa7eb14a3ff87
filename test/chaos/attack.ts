import { Console } from 'node:console';
import { existsSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { sign } from '#contract/calls/signature.ts';
import { inCallLanes } from '../../core/storage/engine/call-lanes.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { type DatabaseKind, databaseKinds, freshDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import { addTenants, createKey, onDemand, openDirect, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** The options of `npm run chaos`. Without them, this is `npm test -- --all`, which runs the short version. */
type Options = { quick?: boolean; only?: string; database?: string };
const options: Options | null = JSON.parse(process.env['CHAOS'] ?? 'null');
export const isQuick = options === null || options.quick === true;

export type Attack = {
  /** The name that `--only` takes. */
  name: string;
  /** Completes the title that all attacks have in common. */
  title: string;
  databases?: readonly DatabaseKind[];
  /**
   * The database for the short version, by default the first one. Null if `npm test` skips the attack, because other tests cover the rule
   * or it takes too long.
   */
  quickOn?: DatabaseKind | null;
  run(trial: Trial): Promise<void>;
};

/** One attack on one database. An attack adds everything that it opens to `cleanup`. */
export type Trial = {
  kind: DatabaseKind;
  ledger: Ledger;
  cleanup: AsyncDisposableStack;
  /** Passed to `skip` if the attack can't run here. */
  context: Mocha.Context;
};

/** In ms. On a very busy machine, even a short attack takes minutes, and a long one more than ten. */
const limit = isQuick ? 300_000 : 1_800_000;

/** Defines a test for each attack and database. */
export function describeAttacks(...attacks: readonly Attack[]): void {
  const chosen = attacks.flatMap((attack) => chooseDatabases(attack).map((kind) => ({ attack, kind })));
  if (chosen.length === 0) return;
  describe('no acknowledged call is lost, and no one is called twice or kept waiting, with', () => {
    for (const { attack, kind } of chosen) {
      it(`${attack.title}, on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, async function () {
        this.timeout(2 * limit).slow(60_000);
        const ledger = new Ledger();
        const startedAt = performance.now();
        await runAttack(attack, kind, ledger, this);
        const [counts, notes] = [ledger.count(), ledger.notes.join('; ')];
        if (options) output.log(`    ${notes}`);
        table[`${attack.name} on ${kind}`] = { ...counts, s: Math.round((performance.now() - startedAt) / 1_000) };
        // The short version shares the processors with other tests, so it only notes how long a response took.
        const ignored = isQuick ? ['sent', 'acknowledged', 'late'] : ['sent', 'acknowledged'];
        const faults = Object.entries(counts).filter(([column, count]) => count !== 0 && !ignored.includes(column));
        expect(Object.fromEntries(faults), notes).to.deep.equal({});
      });
    }
  });
}

function chooseDatabases({ name, databases = databaseKinds, quickOn = databases[0] }: Attack): DatabaseKind[] {
  if (options?.only?.split(',').includes(name) === false) return [];
  return databases.filter((kind) => (!isQuick || kind === quickOn) && (options?.database ?? kind) === kind);
}

/** Runs an attack until it ends or its time is up, and leaves nothing behind. */
async function runAttack({ run }: Attack, kind: DatabaseKind, ledger: Ledger, context: Mocha.Context): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const tooLong = pause(limit, undefined, { ref: false }).then(() => Promise.reject(new Error(`it took longer than ${limit} ms`)));
  try {
    await Promise.race([run({ kind, ledger, cleanup, context }), tooLong]);
  } catch (error) {
    if (context.test?.isPending()) throw error;
    ledger.fail(`it ended early: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The results of the attacks. `npm run chaos` prints this table at the end. */
const table: Record<string, object> = {};
const output = new Console(process.stdout);
if (options) process.once('exit', () => output.table(table));

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
    /** Sends a request of the console again as long as its core waited too long for the processor, and so has changed nothing. */
    async change(...request: Parameters<typeof ask>): ReturnType<typeof ask> {
      let answer = await ask(...request);
      while (answer.status === 503 && !cleanup.disposed) answer = await ask(...request);
      return answer;
    },
    /** Revokes a key, after which no request with it may be accepted. */
    async revoke(id: string, key: string, url = scene.core().url): Promise<void> {
      const { status } = await scene.change('DELETE', `${url}/console/api-keys/${id}`, { cookie });
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

/**
 * Repeats `work`, and runs it up to `width` times at once, until `stop` is called, it has run `count` times, or the attack is over. `n`
 * numbers the runs.
 */
export function startCrowd({ cleanup }: Trial, width: number, work: (n: number) => Promise<unknown>, count = Number.POSITIVE_INFINITY) {
  let [isStopped, turn] = [false, 0];
  const isOver = () => isStopped || cleanup.disposed;
  const lanes = Array.from({ length: width }, async () => {
    while (!isOver() && turn < count) await work(turn++);
  });
  return {
    isOver,
    ended: () => Promise.all(lanes),
    /** Waits for work in progress. @returns how many times the work was done */
    async stop(): Promise<number> {
      isStopped = true;
      await Promise.all(lanes);
      return turn;
    },
  };
}

export type Load = ReturnType<typeof startLoad>;

type LoadOptions = {
  placers?: number;
  /** The pause in ms between a placer's calls. */
  every?: number;
  url?: (n: number) => string;
  extra?: object;
  stopAt?: number;
  campaignId?: string;
};

let loads = 0;

/**
 * Placers that retry unacknowledged calls, like integrators, and cancel every third call. Every sixth has no request ID, so each of its
 * attempts is a separate call.
 */
export function startLoad(scene: Scene, { every = 40, extra = {}, stopAt = Number.POSITIVE_INFINITY, ...options }: LoadOptions = {}) {
  const { placers = isQuick ? 4 : 16, url = () => scene.core().url, campaignId = scene.campaignId } = options;
  const name = `load${++loads}`;
  let acknowledged = 0;

  async function place(n: number): Promise<void> {
    if (n < placers) await pause((every * n) / placers);
    const body = callBody(`${name}-${n}`, extra);
    while (!crowd.isOver()) {
      const { requestId: _, ...anonymous } = callBody('', extra);
      if ((await scene.place(n % 6 === 1 ? anonymous : body, { url: url(n), campaignId })).status === 202) break;
      await pause(200);
    }
    acknowledged++;
    if (n % 3 === 0 && !crowd.isOver()) await scene.cancel(body.requestId, { url: url(n + 1), campaignId });
    await pause(every);
  }
  const crowd = startCrowd(scene.trial, placers, place, stopAt);

  return {
    stop: crowd.stop,
    /** Waits until this many more calls are acknowledged or the load is stopped. @returns whether they were acknowledged in time */
    more(count: number, within = 20_000): Promise<boolean> {
      const goal = Math.min(acknowledged + count, stopAt);
      return until(() => acknowledged >= goal || crowd.isOver(), within);
    },
  };
}

type FoundCall = { requestId: string; contactId: string; state: string; phone: string | null };
/** A call without a request ID gets its contact ID as its request ID. */
type Body = { requestId?: string; contact: { phone: string } };
type Reply = { status: number | null; contactId: string | null };

/** In ms. Every request must get its response within this time, which includes slack for the load on the same machine. */
const deadline = 6_000 + 2_000;
/** Longer than the deadline, so that a late response is noticed. */
const patience = 20_000;

/** Sends requests, and remembers what was acknowledged. */
class Ledger {
  /** Contact IDs by request ID. */
  readonly placed = new Map<string, string>();
  /** Request IDs by contact ID. */
  readonly cancelled = new Map<string, string>();
  /** Keys with which nothing may be accepted anymore. */
  readonly revoked = new Set<string>();
  readonly notes: string[] = [];
  /** The provider whose calls are checked. */
  provider: Provider | null = null;
  /** Phone numbers of calls without a request ID that got a 503. */
  readonly #refused = new Set<string>();
  readonly #lost = new Set<string>();
  /** When the requests were sent that were the first to be acknowledged for their calls, on the clock of `performance`. */
  readonly #firstSentAt: number[] = [];
  readonly #statuses: Record<string, number> = {};
  #slowest = 0;
  /** The columns of the table. All except the first two must be 0. */
  readonly #counts = {
    sent: 0,
    acknowledged: 0,
    /** Calls that the core acknowledged as placed or cancelled, but that aren't placed or cancelled in the database. */
    lost: 0,
    /** Calls without a request ID that the core refused with 503, but that are in the database. */
    'placed though 503': 0,
    /** Calls that were handed off although the cancel returned 200. */
    'dialed though cancelled': 0,
    'dialed twice': 0,
    late: 0,
    /** Requests that were accepted although the revocation or limit of their key had been acknowledged before they were sent. */
    'accepted too late': 0,
    /** How many times a core said that it was ready although it couldn't write, or that it wasn't ready although it could write. */
    'wrongly ready': 0,
    other: 0,
  };

  note(text: string): void {
    this.notes.push(text);
  }

  /** Counts a fault. */
  fail(note: string, column: 'wrongly ready' | 'other' = 'other'): void {
    this.#counts[column]++;
    this.note(note);
  }

  /** Counts a fault if the condition doesn't become true within this time in ms. */
  async expect(condition: () => boolean | Promise<boolean>, within: number, ...fault: Parameters<Ledger['fail']>): Promise<void> {
    if (!(await until(condition, within))) this.fail(...fault);
  }

  async place(url: string, key: string, body: Body): Promise<Reply> {
    const sentAt = performance.now();
    const reply = await this.#send('POST', url, key, body);
    if (reply.status === 503 && body.requestId === undefined) this.#refused.add(body.contact.phone);
    if (reply.status !== 202 || reply.contactId === null) return reply;
    const { requestId = reply.contactId } = body;
    if (!this.placed.has(requestId)) this.#firstSentAt.push(sentAt);
    const known = this.placed.get(requestId) ?? reply.contactId;
    if (known !== reply.contactId) this.fail(`${requestId} was acknowledged as two calls`);
    this.placed.set(requestId, known);
    return reply;
  }

  /** Counts the acknowledged calls whose requests were sent after this time, because an earlier response may arrive late. */
  countSentAfter(time: number): number {
    return this.#firstSentAt.filter((sentAt) => sentAt > time).length;
  }

  async cancel(url: string, key: string, requestId: string): Promise<Reply> {
    const reply = await this.#send('DELETE', `${url}/by-request-id/${requestId}`, key);
    if (reply.status === 200 && reply.contactId !== null) this.cancelled.set(reply.contactId, requestId);
    return reply;
  }

  async #send(method: 'POST' | 'DELETE', url: string, key: string, body?: Body): Promise<Reply> {
    const [counts, isRevoked, sentAt] = [this.#counts, this.revoked.has(key), performance.now()];
    counts.sent++;
    const answer = await ask(method, url, { key, body, signal: AbortSignal.timeout(patience) }).catch(() => null);
    const took = performance.now() - sentAt;
    this.#slowest = Math.max(this.#slowest, took);
    if (took > deadline) counts.late++;
    const status = answer?.status ?? null;
    this.#statuses[String(status)] = (this.#statuses[String(status)] ?? 0) + 1;
    if (status === null || status >= 300) return { status, contactId: null };
    if (isRevoked) counts['accepted too late']++;
    return { status, contactId: String(answer?.json['contactId']) };
  }

  /** Compares the calls in the database with the acknowledged ones: with all of them, or only with those in the second argument. */
  compare(calls: readonly FoundCall[], { placed, cancelled }: Pick<Ledger, 'placed' | 'cancelled'> = this): void {
    const byRequestId = new Map(calls.map((call) => [call.requestId, call]));
    if (byRequestId.size !== calls.length) this.fail('one request ID has two calls');
    for (const [requestId, contactId] of placed) if (byRequestId.get(requestId)?.contactId !== contactId) this.#lost.add(requestId);
    for (const requestId of cancelled.values()) if (byRequestId.get(requestId)?.state !== 'cancelled') this.#lost.add(requestId);
    this.#counts['placed though 503'] = calls.filter(({ phone }) => phone !== null && this.#refused.has(phone)).length;
  }

  /** Returns the columns of the table, and notes the responses. */
  count() {
    this.note(`responses ${JSON.stringify(this.#statuses)}, the slowest after ${Math.round(this.#slowest)} ms`);
    return {
      ...this.#counts,
      lost: this.#lost.size,
      acknowledged: this.placed.size + this.cancelled.size,
      'dialed though cancelled': [...this.cancelled.keys()].filter((contactId) => this.provider?.hasCalled(contactId)).length,
      'dialed twice': this.provider?.calledTwice() ?? 0,
    };
  }
}

/** Responds to a hand-off. @returns false only if the response says that the provider won't make the call */
export type Behavior = (turn: number, response: ServerResponse) => boolean;

export const takes: Behavior = (_, response) => {
  response.writeHead(202).end();
  return true;
};

type Provider = Awaited<ReturnType<typeof startProvider>>;

/** Starts a provider that counts whom it calls and how many times. If it deduplicates, it calls once per hand-off ID. */
async function startProvider(behavior: Behavior, deduplicates: boolean) {
  /** The accepted hand-offs by contact ID. */
  const handoffs = new Map<string, string[]>();
  let turn = 0;
  const { url, close } = await startReceiver(({ handoff: { handoffId, contactId } }, response) => {
    response.on('error', () => undefined);
    if (!provider.behavior(++turn, response)) return;
    const earlier = handoffs.get(contactId) ?? [];
    handoffs.set(contactId, deduplicates && earlier.includes(handoffId) ? earlier : [...earlier, handoffId]);
    provider.onTaken(handoffId);
  });
  const provider = {
    ...{ url, close, behavior },
    onTaken: (_handoffId: string): unknown => undefined,
    hasCalled: (contactId: string | null) => contactId !== null && handoffs.has(contactId),
    called: () => handoffs.size,
    calledTwice: () => [...handoffs.values()].filter(({ length }) => length > 1).length,
    handOffs: () => turn,
  };
  return provider;
}
