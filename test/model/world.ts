import { join } from 'node:path';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { request } from 'undici';
import { sign } from '#contract/calls/signature.ts';
import type { UserType } from '#contract/console/common.ts';
import { restoreSqlite } from '../../core/admin/database/restore-sqlite.ts';
import { timeouts } from '../../core/dialer/webhook.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Randomness } from '../../core/domain/ports/environment.ts';
import { inEachShard, shardOf, shardsOf } from '../../core/storage/engine/shards.ts';
import { type Cluster, startCluster } from '../support/citus.ts';
import { type FakeClock, fakeClock, testRandomness } from '../support/clock.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { type DatabaseKind, freshDirectory } from '../support/databases.ts';
import { type Answer, type Ask, ask, readCookies, textAt } from '../support/http.ts';
import { signingSecret } from '../support/receiver.ts';
import { authenticator } from '../support/second-factor.ts';
import { createTenants, type DirectAccess, databaseWithTenants, openDirect, password } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import { giveTimersBack, nextChange, Switch, switches, takeTimers } from './faults.ts';
import { type Model, retentionDays } from './model.ts';
import { codeEvery, day, type Id, type Node, type User, type Viewer } from './people.ts';
import { startProvider } from './provider.ts';

/** The stage of each call, and the time when it's due or when it ended. */
const selectCalls = `SELECT contact_id AS id, CASE state WHEN 'dialing' THEN handoff ELSE state END || ' at ' || coalesce(due_at, ended_at)
  || CASE WHEN phone IS NULL THEN ', erased' ELSE '' END AS seen FROM calls`;

const selectNodes = `SELECT id, 'partner' AS kind, NULL AS parent, name FROM partners
  UNION ALL SELECT id, 'account', partner_id, name FROM accounts UNION ALL SELECT id, 'campaign', account_id, name FROM campaigns`;
const selectUsers = 'SELECT id, email, user_type AS type, coalesce(account_id, partner_id) AS home FROM users';

const placeElsewhere = `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, placed_at)
  SELECT ?, id, account_id, ?, '', 'queued', 0 FROM campaigns WHERE id = ? ON CONFLICT DO NOTHING`;

/** With these, every delay between two attempts is the shortest one. */
const dice: Randomness = { ...testRandomness, bytes: (size) => (size === 4 ? new Uint8Array(size) : testRandomness.bytes(size)) };

/** What can happen to a core and its database during a request. The last two only happen to PostgreSQL. */
const faults = ['a core ends', 'an outage', 'a lost result', 'ended sessions', 'a crash'] as const;
export type Fault = (typeof faults)[number];
/** The errors of statements in an outage (a full disk, or a server that's starting), and of statements that the database may have run. */
const sqliteCodes = { outage: 'SQLITE_FULL', loss: 'SQLITE_IOERR' };
const postgresCodes = { outage: '57P03', loss: '57P01' };
const isOtherSession = 'datname = current_database() AND pid <> pg_backend_pid()';
const endSessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isOtherSession}`;

/** `citus` is a PostgreSQL database with shards on several nodes. */
export type WalkKind = DatabaseKind | 'citus';
const shards = 2;
let cluster: Promise<Cluster> | undefined;

/** Ends the nodes that walks with shards have started. */
export async function stopCluster(): Promise<void> {
  await (await cluster)?.stop();
  cluster = undefined;
}

async function createDatabase(kind: WalkKind): Promise<string> {
  if (kind !== 'citus') return (await databaseWithTenants(kind)).database;
  cluster ??= startCluster(['fsync=off']);
  const database = await (await cluster).createWithShards(shards);
  await using direct = await openDirect(database, fakeClock('2020-01-01T00:00:00.000Z'));
  await createTenants(direct.ports);
  return database;
}

type Provider = Awaited<ReturnType<typeof startProvider>>;
type NewUser = Pick<User, 'id' | 'email' | 'type' | 'home'>;

/** In ms. */
const restsFor = 200;

/** Two real cores on one database, with the walk's clock, and a provider. */
export class World {
  readonly cores: (RunningCore & { database: Switch })[] = [];
  readonly clock: FakeClock;
  readonly provider: Provider;
  readonly #kind: WalkKind;
  readonly #database: string;
  #direct: DirectAccess;
  readonly #cookies = new Map<Id, string>();
  readonly #secrets = new Map<Id, string>();
  #outcomes = 0;

  private constructor(kind: WalkKind, clock: FakeClock, database: string, direct: DirectAccess, provider: Provider) {
    this.#kind = kind;
    this.clock = clock;
    this.#database = database;
    this.#direct = direct;
    this.provider = provider;
  }

  /** Also tells the model who exists. */
  static async open(kind: WalkKind, model: Model): Promise<World> {
    // The walk decides when a silent provider responds.
    timeouts.answer = day;
    takeTimers();
    const database = await createDatabase(kind);
    const clock = fakeClock(new Date(model.now).toISOString());
    const direct = await openDirect(database, clock);
    const provider = await startProvider((outcome) => world.#reportSurely(outcome));
    const world = new World(kind, clock, database, direct, provider);
    for (const node of await world.#storage.query<Pick<Node, 'id' | 'kind' | 'parent' | 'name'>>(selectNodes)) model.add(node);
    for (const user of await world.#storage.query<NewUser>(selectUsers)) model.addUser(user);
    await world.start();
    await world.start();
    return world;
  }

  async start(): Promise<void> {
    const database = new Switch();
    const environment = {
      ...{ DIALER: 'webhook', DIALER_URL: this.provider.url, DIALER_SECRETS: signingSecret, DIALER_CONCURRENCY: '50' },
      ...{ RETENTION_DAYS: String(retentionDays), LOG_LEVEL: 'info', WEB_CONSOLE: 'off' },
    };
    const options = { clock: this.clock, environment, randomness: dice };
    const core = { ...(await switches.run(database, () => startCoreHere(this.#database, options))), database };
    this.cores.push(core);
    await until(() => countSweeps(core) > 0);
  }

  /** Stops a core the way a signal does, and starts another one. */
  async restart(which: number): Promise<void> {
    await this.#end(this.#pick(which));
    await this.start();
  }

  /** Replaces a SQLite database with a backup of itself, as an administrator does. @returns false on PostgreSQL, whose tools this doesn't need */
  async restore(): Promise<boolean> {
    if (this.#kind !== 'sqlite') return false;
    const backup = join(freshDirectory(), 'backup');
    await this.#storage.query('VACUUM INTO ?', [backup]);
    for (const core of [...this.cores]) await this.#end(core);
    await this.#direct.close();
    await restoreSqlite(this.#database.slice('sqlite:'.length), backup, new Date());
    this.#direct = await openDirect(this.#database, this.clock);
    await this.start();
    await this.start();
    return true;
  }

  #pick(which: number): RunningCore & { database: Switch } {
    const core = this.cores[which % this.cores.length];
    if (!core) throw new Error('No core is running.');
    return core;
  }

  async #end(core: RunningCore & { database: Switch }): Promise<void> {
    this.cores.splice(this.cores.indexOf(core), 1);
    this.#outcomes += await countOutcomes(core);
    await core.close();
  }

  async close(): Promise<void> {
    await this.provider.answerSilent(false);
    try {
      for (const core of [...this.cores]) await this.#end(core);
      await this.provider.close();
      await this.#direct.close();
    } finally {
      giveTimersBack();
    }
  }

  /** Repeats the report of an outcome until a core has stored it. */
  async #reportSurely(outcome: object): Promise<void> {
    for (let core = 0; this.cores.length > 0; core++) {
      const status = await this.report(core, outcome).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 204) return;
      await pause(5);
    }
  }

  // Requests

  url(core: number): string {
    return this.cores[core % this.cores.length]?.url ?? 'http://127.0.0.1:1';
  }

  request(core: number, method: string, path: string, asked: Ask = {}): Promise<Answer> {
    return ask(method, this.url(core) + path, asked);
  }

  /** @param code the time step of the code to enter after the password; null for none */
  async signIn(core: number, { id, email, lastCode }: User, code: number | null): Promise<number> {
    let answer = await this.request(core, 'POST', '/console/session', { body: { email, password } });
    const cookie = readCookies(answer);
    const enterCode = (one: number) =>
      this.request(core, 'POST', '/console/session/second-factor', { cookie, body: { code: this.#codeAt(id, one) } });
    // Sometimes tries a used code first, which must be refused.
    const { status } = code !== null && code % 3 === 0 ? await enterCode(lastCode ?? 0) : { status: 401 };
    if (status !== 401) throw new Error(`A used code of ${email} should be refused, but got ${status}.`);
    if (code !== null) answer = await enterCode(code);
    if (answer.status === 201) this.#cookies.set(id, readCookies(answer));
    return answer.status;
  }

  async enroll(viewer: Viewer, core: number, code: number): Promise<Answer> {
    const begun = await this.as(viewer, core, 'POST', '/console/second-factor', { currentPassword: password });
    if (begun.status !== 201) return begun;
    this.#secrets.set(viewer.user, textAt(begun, 'secret'));
    return this.as(viewer, core, 'POST', '/console/second-factor/confirmation', { code: this.#codeAt(viewer.user, code) });
  }

  removeFactor(viewer: Viewer, core: number, code: number): Promise<Answer> {
    return this.as(viewer, core, 'DELETE', '/console/second-factor', { code: this.#codeAt(viewer.user, code) });
  }

  #codeAt(user: string, code: number): string {
    return authenticator(this.#secrets.get(user) ?? '', () => code * codeEvery).code();
  }

  as(viewer: Viewer, core: number, method: string, path: string, body?: object): Promise<Answer> {
    const { user, tenancy } = viewer;
    return this.request(core, method, path, {
      cookie: this.#cookies.get(user) ?? 'none=1',
      ...(tenancy ? { headers: { 'Callkey-Tenancy': `${tenancy.kind}/${tenancy.id}` } } : {}),
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

  /** Makes the dialers look for due calls now. */
  wake(): void {
    for (const { database } of this.cores) database.poll();
  }

  /**
   * Waits until no core has anything to do: each dialer waits for its next poll, and no statement runs.
   *
   * @returns false if that takes longer than a moment
   */
  async rest(): Promise<boolean> {
    const deadline = performance.now() + restsFor;
    // A core needs some turns of the event loop before it sees the provider's response.
    for (let turns = 0; turns < 3; ) {
      await turn();
      if (!this.#isBusy) turns++;
      else if (performance.now() > deadline) return false;
      else {
        turns = 0;
        await Promise.race([nextChange(), pause(5)]);
      }
    }
    return true;
  }

  get #isBusy(): boolean {
    return this.provider.isBusy() || this.cores.some(({ database }) => !database.isIdle);
  }

  /**
   * Makes the cores do their work for every minute and every hour, and waits until they have done it, because otherwise they'd use a later
   * time.
   */
  async sweep(): Promise<void> {
    const before = this.cores.map(countSweeps);
    for (const { database } of this.cores) for (const sweep of database.sweeps) sweep();
    await until(() => this.cores.every((core, n) => countSweeps(core) > (before[n] ?? 0)));
  }

  async addUser(type: UserType, accountId: Id | null, partnerId: Id | null): Promise<NewUser> {
    const email = `user${this.#cookies.size}-${testRandomness.id()}@example.com`;
    const input = { email, name: 'Somebody New', userType: type, accountId, partnerId };
    const { user } = await createUser(this.#ports, operator, input, password);
    return { id: user.id, email, type, home: accountId ?? partnerId };
  }

  faults(): readonly Fault[] {
    if (this.#kind === 'sqlite') return faults.slice(0, 3);
    // A crash would end everyone's connections to a server that tests share.
    return process.env['TEST_POSTGRES_URL'] === undefined || this.#kind === 'citus' ? faults : faults.slice(0, 4);
  }

  /** Begins a fault once a core has sent some more statements. @returns a function that ends it */
  async fault(fault: Fault, which: number, after: number): Promise<() => Promise<void>> {
    const core = this.#pick(which);
    const { database } = core;
    const codes = this.#kind === 'sqlite' ? sqliteCodes : postgresCodes;
    let done: Promise<unknown> = Promise.resolve();
    const begin = () => {
      // A core's statement begins the fault, but the connections that it opens are the walk's.
      done = switches.run(null, () => (fault === 'a crash' ? this.#crash() : this.#storage.query(endSessions)));
    };
    if (fault === 'a lost result') database.cut(after, codes.loss, 'lose');
    else database.cut(after, codes.outage, fault === 'ended sessions' || fault === 'a crash' ? begin : undefined);
    return async () => {
      await done;
      if (fault !== 'a core ends') return database.mend();
      database.cut(0, codes.outage);
      await this.provider.answerSilent(false);
      await this.#end(core);
      await this.start();
    };
  }

  /** Moves the clock once a core has sent some more statements. @returns a function that makes sure that it has moved */
  moveClock(ms: number, which: number, after: number): () => void {
    const { database } = this.#pick(which);
    let left = ms;
    const move = () => {
      this.clock.advance(left);
      left = 0;
    };
    database.cut(after, '', move);
    return () => {
      database.mend();
      move();
    };
  }

  /** Kills a process of PostgreSQL. The server then ends all its other processes, and recovers from its log. */
  async #crash(): Promise<void> {
    const others = `SELECT pid FROM pg_stat_activity WHERE ${isOtherSession}`;
    const pids = (await this.#storage.query<{ pid: number }>(others)).map(({ pid }) => pid);
    const [first] = pids;
    if (first !== undefined) process.kill(first, 'SIGKILL');
    const areGone = async () => (await this.#storage.query<{ pid: number }>(others)).every(({ pid }) => !pids.includes(pid));
    await until(() => areGone().catch(() => false));
    if (this.#kind !== 'citus') return;
    const lost = 'SELECT 1 FROM run_command_on_all_nodes($$SELECT 1$$, give_warning_for_connection_errors := true) WHERE NOT success';
    await until(async () => (await this.#storage.query(lost).catch(() => [1])).length === 0);
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
    // If a fault has ended connections between nodes, a node notices that when it uses one. Each of the walk's connections has its own.
    const lock = () => this.#lock(places);
    const transactions = await lock().catch(lock).catch(lock).catch(lock);
    const results = Promise.all(work());
    await Promise.race([results, pause(10)]).finally(() => Promise.all(transactions.map((trx) => trx.rollback())));
    return results;
  }

  async #lock(places: Parameters<World['whileLocked']>[1]) {
    const shards = shardsOf(this.#storage);
    const transactions = await Promise.all(shards.map((shard) => shard.write.transaction()));
    try {
      for (const [n, trx] of this.#kind !== 'sqlite' && !places ? transactions.entries() : [])
        await trx.raw(`LOCK TABLE calls${n === 0 ? ', users' : ''} IN EXCLUSIVE MODE`);
      for (const place of this.#kind !== 'sqlite' ? (places ?? []) : [])
        await transactions[shards.indexOf(shardOf(this.#storage, place[1]))]?.raw(placeElsewhere, [testRandomness.id(), ...place]);
      return transactions;
    } catch (error) {
      // Otherwise, a walk that fails here would never end, because closing the database waits for the transactions.
      await Promise.all(transactions.map((trx) => trx.rollback()));
      throw error;
    }
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

  // The state of the database

  get #ports() {
    return this.#direct.ports;
  }

  get #storage() {
    return this.#direct.storage.database;
  }

  /**
   * Returns the stage of each call, and how many times the provider was asked to make it.
   *
   * @param countsListed whether to count the do-not-call entries: after a fault, an opt-out may have been lost together with its response
   */
  async look(countsListed: boolean) {
    const rows = await inEachShard(this.#storage, (shard) => shard.query<{ id: Id; seen: string }>(selectCalls));
    const [listed] = countsListed ? await this.#storage.query<{ numbers: number }>('SELECT count(*) AS numbers FROM do_not_call') : [];
    const calls = new Map(rows.flat().map(({ id, seen }) => [id, seen]));
    return { calls, handoffs: this.provider.handoffs, listed: listed ? Number(listed.numbers) : null };
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

/** Counts a core's hourly sweeps by the line that each of them logs. */
function countSweeps({ log }: RunningCore): number {
  return log.filter(({ msg }) => msg === 'audit events sealed').length;
}
