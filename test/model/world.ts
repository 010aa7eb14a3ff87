import type { ServerResponse } from 'node:http';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';

import { request } from 'undici';
import { sign } from '#contract/calls/signature.ts';
import type { UserType } from '#contract/console/common.ts';
import { timeouts } from '../../core/dialer/webhook.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Randomness } from '../../core/domain/ports/environment.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import { type FakeClock, fakeClock, testRandomness } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import type { DatabaseKind } from '../support/databases.ts';
import { type Answer, type Ask, ask, readCookies } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/receiver.ts';
import { type DirectAccess, databaseWithTenants, openDirect, password } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import { chooseBehavior, type Model, retentionDays, type Viewer } from './model.ts';

const findOpen = (rows: string) =>
  `SELECT contact_id, CASE state WHEN 'queued' THEN state ELSE handoff END AS stage, due_at FROM ${rows} CROSS JOIN calls WHERE due_at IS NOT NULL`;

const placeElsewhere = `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, placed_at)
  SELECT ?, id, account_id, ?, '', 'queued', 0 FROM campaigns WHERE id = ? ON CONFLICT DO NOTHING`;

/** With these, every delay between two attempts is the shortest one. */
const dice: Randomness = { ...testRandomness, bytes: (size) => (size === 4 ? new Uint8Array(size) : testRandomness.bytes(size)) };

/** Two real cores on one database, with the walk's clock, and a provider. */
export class World {
  readonly clock: FakeClock;
  readonly cores: RunningCore[] = [];
  /** How often the provider was asked to make each call. */
  readonly handoffs = new Map<string, number>();
  readonly #kind: DatabaseKind;
  readonly #timers = takeTimers();
  readonly #cookies = new Map<string, string>();
  /** The responses that the silent provider hasn't sent yet. */
  readonly #silent: ServerResponse[] = [];
  #outcomes = 0;
  #database = '';
  #direct: DirectAccess | undefined;
  /** Prepared, because it runs after every command. */
  #findOpen: ReturnType<Database['prepare']> = async () => [];
  #receiver: Awaited<ReturnType<typeof startReceiver>> | undefined;
  isProviderUp = true;

  private constructor(kind: DatabaseKind, clock: FakeClock) {
    this.#kind = kind;
    this.clock = clock;
  }

  /** @param now long enough ago for a year to pass, because PostgreSQL's own clock must not be behind */
  static async open(kind: DatabaseKind, model: Model): Promise<World> {
    const world = new World(kind, fakeClock(new Date(model.now).toISOString()));
    // The walk decides when a silent provider responds.
    timeouts.answer = 24 * 60 * 60_000;
    const { database, tenants } = await databaseWithTenants(kind);
    world.#database = database;
    world.#direct = await openDirect(database, world.clock);
    world.#findOpen = world.#storage.prepare({ n: 'bigint' }, findOpen, 'read');
    world.#receiver = await startReceiver(({ handoff: { handoffId, contact } }, response) =>
      world.#provide(handoffId, contact.phone, response),
    );
    const { partner, otherPartner, account, siblingAccount, otherAccount, users } = tenants;
    const accounts = [account, siblingAccount].map(({ id }) => ({ id, partner: partner.id }));
    for (const { id, ...owner } of [...accounts, { id: otherAccount.id, partner: otherPartner.id }]) model.accounts.set(id, owner);
    const campaigns = [tenants.campaign, tenants.siblingCampaign, tenants.otherCampaign];
    for (const [n, { id }] of campaigns.entries()) model.campaigns.set(id, { account: [...model.accounts.keys()][n] ?? '' });
    for (const user of Object.values(users)) {
      const { id, email, userType: type } = user;
      model.users.set(id, {
        ...{ id, email, type, account: user.account?.id ?? null, partner: user.partner?.id ?? null },
        ...{ isDisabled: false, session: null },
      });
    }
    await world.start();
    await world.start();
    return world;
  }

  async start(): Promise<void> {
    const environment = {
      ...{ DIALER: 'webhook', DIALER_URL: this.#receiver?.url ?? '', DIALER_SECRETS: signingSecret, DIALER_CONCURRENCY: '50' },
      ...{ RETENTION_DAYS: String(retentionDays), LOG_LEVEL: 'info', WEB_CONSOLE: 'off' },
    };
    const core = await startCoreHere(this.#database, { clock: this.clock, environment, randomness: dice });
    this.cores.push(core);
    await until(() => countSweeps(core) > 0);
  }

  /** Stops a core the way a signal does, and starts another one. */
  async restart(which: number): Promise<void> {
    const [core] = this.cores.splice(which % this.cores.length, 1);
    if (core) await this.#end(core);
    await this.start();
  }

  async #end(core: RunningCore): Promise<void> {
    this.#outcomes += await countOutcomes(core);
    await core.close();
  }

  async close(): Promise<void> {
    await this.answerSilent(false);
    try {
      for (const core of this.cores.splice(0)) await this.#end(core);
      await this.#receiver?.close();
      await this.#direct?.close();
    } finally {
      this.#timers.giveBack();
    }
  }

  async #provide(handoffId: string, phone: string, response: ServerResponse): Promise<void> {
    this.handoffs.set(handoffId, (this.handoffs.get(handoffId) ?? 0) + 1);
    switch (this.isProviderUp ? chooseBehavior(phone) : 'not-now') {
      case 'refuses':
        return void response.writeHead(422).end('no');
      case 'not-now':
        return void response.writeHead(this.isProviderUp ? 429 : 503).end();
      case 'loses':
        return void response.destroy();
      case 'is silent':
        return void this.#silent.push(response);
      case 'tells at once':
        // When a walk ends, the cores may already be gone. Otherwise, the comparison detects a lost outcome.
        for (const state of ['completed', 'busy']) await this.report(0, { handoffId, state }).catch(() => undefined);
        return void response.writeHead(202).end();
      default:
        return void response.writeHead(202).end();
    }
  }

  async answerSilent(takes: boolean): Promise<Answer> {
    for (const response of this.#silent.splice(0)) response.writeHead(takes ? 202 : 503).end();
    return { status: 200, headers: {}, text: '', json: {} };
  }

  // Requests

  url(core: number): string {
    return this.cores[core % this.cores.length]?.url ?? 'http://127.0.0.1:1';
  }

  request(core: number, method: string, path: string, asked: Ask = {}): Promise<Answer> {
    return ask(method, this.url(core) + path, asked);
  }

  async signIn(core: number, { id, email }: { id: string; email: string }): Promise<number> {
    const answer = await this.request(core, 'POST', '/console/session', { body: { email, password } });
    if (answer.status === 201) this.#cookies.set(id, readCookies(answer));
    return answer.status;
  }

  as(viewer: Viewer, core: number, method: string, path: string, body?: object): Promise<Answer> {
    const { tenancy } = viewer;
    const scope = tenancy && (tenancy.account === null ? `partner/${tenancy.partner}` : `account/${tenancy.account}`);
    return this.request(core, method, path, {
      cookie: this.#cookies.get(viewer.user) ?? 'none=1',
      ...(scope === null ? {} : { headers: { 'Callkey-Tenancy': scope } }),
      ...(body === undefined ? {} : { body }),
    });
  }

  report(core: number, outcome: object, secret = signingSecret): Promise<Answer> {
    const raw = JSON.stringify(outcome);
    return this.request(core, 'POST', '/dialer/outcomes', {
      raw,
      headers: { ...sign('any', raw, secret, Math.floor(this.clock.now() / 1_000)) },
    });
  }

  // Time and faults

  /** Confirms the clock as an administrator, as after a long pause. */
  async acceptClock(): Promise<void> {
    await this.#ports.stores.clock.set(this.clock.now());
  }

  /** Has the dialers look for due calls now. */
  wake(): void {
    this.#timers.poll();
  }

  /** Has the cores do their work for every minute and every hour, and waits for it, because otherwise it would use a later time. */
  async sweep(): Promise<void> {
    const before = this.cores.map(countSweeps);
    this.#timers.sweep();
    await until(() => this.cores.every((core, n) => countSweeps(core) > (before[n] ?? 0)));
  }

  async addUser(type: UserType, account: string | null, partner: string | null): Promise<{ id: string; email: string }> {
    const email = `user${this.#cookies.size}-${testRandomness.id()}@example.com`;
    const input = { email, name: 'Somebody New', userType: type, accountId: account, partnerId: partner };
    return { id: (await createUser(this.#ports, operator, input, password)).user.id, email };
  }

  /**
   * Keeps everyone from writing while the work begins, as a backup or an administrator's transaction does.
   *
   * @param places on PostgreSQL, only these calls can't be written, because another transaction is about to place them
   */
  async whileLocked<Result>(
    work: () => Promise<Result>[],
    places?: readonly (readonly [requestId: string, campaign: string])[],
  ): Promise<Result[]> {
    const trx = await this.#storage.write.transaction();
    if (this.#kind === 'postgres' && !places) await trx.raw('LOCK TABLE calls, users IN EXCLUSIVE MODE');
    for (const place of this.#kind === 'postgres' ? (places ?? []) : []) await trx.raw(placeElsewhere, [testRandomness.id(), ...place]);
    const results = Promise.all(work());
    await Promise.race([results, pause(40)]).finally(() => trx.rollback());
    return results;
  }

  /** Sends a request, and closes the connection before the response, at a random moment. */
  async hangUp(core: number, path: string, key: string, body: object, turns: number): Promise<void> {
    const hangingUp = new AbortController();
    const { signal } = hangingUp;
    const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
    const sent = request(this.url(core) + path, { method: 'POST', headers, body: JSON.stringify(body), signal }).catch(() => undefined);
    for (let n = 0; n < turns; n++) await turn();
    hangingUp.abort();
    await (await sent)?.body.dump().catch(() => undefined);
  }

  // What the database says

  get #ports() {
    if (!this.#direct) throw new Error("The world isn't open.");
    return this.#direct.ports;
  }

  get #storage() {
    if (!this.#direct) throw new Error("The world isn't open.");
    return this.#direct.storage.database;
  }

  /** The calls that haven't ended, and the number of calls whose data was erased. */
  async look(withErased: boolean): Promise<{ open: Map<string, string>; erased: number | null }> {
    const rows = await this.#findOpen([[1]]);
    const counted = 'SELECT count(*) AS calls FROM calls WHERE ended_at IS NOT NULL AND phone IS NULL';
    const [erased] = withErased ? await this.#storage.query<{ calls: number }>(counted) : [];
    return {
      open: new Map(rows.map(({ contact_id, stage, due_at }) => [String(contact_id), `${stage} until ${due_at}`])),
      erased: erased === undefined ? null : Number(erased.calls),
    };
  }

  async states(): Promise<Map<string, string>> {
    const rows = await this.#storage.query<{ contact_id: string; state: string }>('SELECT contact_id, state FROM calls');
    return new Map(rows.map(({ contact_id, state }) => [contact_id, state]));
  }

  /** Returns how many outcomes the cores' metrics count, including those of cores that have ended. */
  async outcomes(): Promise<number> {
    const running = await Promise.all(this.cores.map(countOutcomes));
    return running.reduce((sum, count) => sum + count, this.#outcomes);
  }

  async auditFaults(): Promise<string[]> {
    await this.#ports.stores.auditChain.extend();
    return (await verifyChain(this.#ports.stores.auditChain, [])).faults;
  }
}

async function countOutcomes({ managementUrl }: RunningCore): Promise<number> {
  const { text } = await ask('GET', `${managementUrl}/metrics`);
  return [...text.matchAll(/^callkey_outcomes_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Counts how often a core has done what it does every hour. */
function countSweeps({ log }: RunningCore): number {
  return log.filter(({ msg }) => msg === 'audit events sealed').length;
}

/** In ms: how often dialers look for due calls, and the shortest interval of housekeeping. */
const pollEvery = 1_000;
const sweepEvery = 60_000;

/** Takes over the timers of dialers and housekeeping, so that a walk through a year doesn't wait for them. The others keep running. */
function takeTimers() {
  const { setTimeout: realTimeout, setInterval: realInterval, clearInterval: realClear } = globalThis;
  const polls = new Set<() => void>();
  const sweeps = new Map<unknown, () => void>();
  Object.assign(globalThis, {
    setTimeout: Object.assign((work: () => void, ms?: number, ...rest: unknown[]) => {
      if (ms === pollEvery) polls.add(work);
      return Reflect.apply(realTimeout, globalThis, [work, ms, ...rest]);
    }, realTimeout),
    setInterval(work: () => void, ms?: number, ...rest: unknown[]) {
      const timer = Reflect.apply(realInterval, globalThis, [work, ms, ...rest]);
      if ((ms ?? 0) >= sweepEvery) sweeps.set(timer, work);
      return timer;
    },
    clearInterval(timer: Parameters<typeof realClear>[0]) {
      sweeps.delete(timer);
      realClear(timer);
    },
  });
  return {
    poll() {
      const all = [...polls];
      polls.clear();
      for (const wake of all) wake();
    },
    sweep: () => {
      for (const sweep of sweeps.values()) sweep();
    },
    giveBack: () => void Object.assign(globalThis, { setTimeout: realTimeout, setInterval: realInterval, clearInterval: realClear }),
  };
}
