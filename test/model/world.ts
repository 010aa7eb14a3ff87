import { join } from 'node:path';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import type { Knex } from 'knex';
import { sign } from '#contract/calls/signature.ts';
import type { UserType } from '#contract/console/common.ts';
import { restoreSqlite } from '../../core/admin/database/restore-sqlite.ts';
import { departures, settling } from '../../core/dialer/loop.ts';
import { timeouts } from '../../core/dialer/webhook.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { verifyChain } from '../../core/domain/audit/audit-chain.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Randomness } from '../../core/domain/ports.ts';
import { callLane, callLanes, inCallLanes } from '../../core/storage/engine/call-lanes.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import { afterEachFile } from '../support/clean-up.ts';
import { type FakeClock, fakeClock, testRandomness } from '../support/clock.ts';
import { countSweeps, type RunningCore, startCoreHere } from '../support/core.ts';
import { type DatabaseKind, freshDirectory } from '../support/databases.ts';
import { type Answer, type Ask, ask, readCookies, textAt, untilServed } from '../support/http.ts';
import { type Cluster, startCluster } from '../support/postgres-node.ts';
import { signingSecret } from '../support/provider.ts';
import {
  type Authenticator,
  authenticator,
  createTenants,
  type DirectAccess,
  databaseWithTenants,
  openDirect,
  password,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';
import { day } from './basics.ts';
import { type Cut, nextChange, realTimers, Switch, sweepEvery, switches, walkTimers } from './faults.ts';
import { type Model, retentionDays } from './model.ts';
import type { Id, Node, User, Viewer } from './people.ts';
import { startProvider } from './provider.ts';

/** The stage of each call, the time when it's due or when it ended, and who answered. */
const selectCalls = `SELECT contact_id AS id, CASE state WHEN 'dialing' THEN handoff ELSE state END || ' at ' || coalesce(due_at, ended_at)
  || coalesce(' by ' || answered_by, '') || CASE WHEN phone IS NULL THEN ', erased' ELSE '' END AS seen FROM calls`;

const selectNodes = `SELECT id, 'partner' AS kind, NULL AS parent, name FROM partners
  UNION ALL SELECT id, 'account', partner_id, name FROM accounts UNION ALL SELECT id, 'campaign', account_id, name FROM campaigns
  ORDER BY id`;
const selectUsers = 'SELECT id, email, user_type AS type, coalesce(account_id, partner_id) AS home FROM users ORDER BY id';

const placeElsewhere = `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, placed_at)
  SELECT ?, id, account_id, ?, '', 'queued', 0 FROM campaigns WHERE id = ? ON CONFLICT DO NOTHING`;

/** Makes every delay between two attempts the shortest one. */
const dice: Randomness = { ...testRandomness, bytes: (size) => (size === 4 ? new Uint8Array(size) : testRandomness.bytes(size)) };

/** What can happen to the cores during a request. The last two only happen to PostgreSQL. */
const faults = ['a core ends', 'an outage', 'a lost result', 'ended sessions', 'a crash'] as const;
export type Fault = (typeof faults)[number] | 'a clock move';
/** The errors of statements in an outage (a full disk, or a server that's starting), and of statements that the database may have run. */
const sqliteCodes = { outage: 'SQLITE_FULL', loss: 'SQLITE_IOERR' };
const postgresCodes = { outage: '57P03', loss: '57P01' };
const otherSessions = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';

/** `citus` is a PostgreSQL database with shards on several nodes. */
export type WalkKind = DatabaseKind | 'citus';
const shards = 2;
let cluster: Promise<Cluster> | undefined;
afterEachFile(async () => (await cluster)?.stop());

async function createDatabase(kind: WalkKind): Promise<string> {
  if (kind !== 'citus') return (await databaseWithTenants(kind)).database;
  cluster ??= startCluster();
  const database = await (await cluster).createWithShards(shards);
  await using direct = await openDirect(database, fakeClock('2020-01-01T00:00:00.000Z'));
  await createTenants(direct.ports);
  return database;
}

/** Identifies the call that a request places. */
export type Place = readonly [requestId: string, campaign: string];
type Core = RunningCore & { database: Switch };
type NewUser = Pick<User, 'id' | 'email' | 'type' | 'home'>;

/** In ms. */
const restsFor = 200;

/** What the walk changes, for the other files of its process. */
const answerTime = timeouts.answer;
const settlesEvery = settling.every;

/** Two real cores on one database, with the walk's clock, and a provider. */
export class World {
  readonly cores: Core[] = [];
  readonly clock: FakeClock;
  readonly provider: Awaited<ReturnType<typeof startProvider>>;
  readonly #kind: WalkKind;
  readonly #database: string;
  #direct: DirectAccess;
  readonly #cookies = new Map<Id, string>();
  readonly #apps = new Map<Id, Authenticator>();
  #outcomes = 0;
  #newUsers = 0;

  private constructor(kind: WalkKind, clock: FakeClock, database: string, direct: DirectAccess, provider: World['provider']) {
    this.#kind = kind;
    this.clock = clock;
    this.#database = database;
    this.#direct = direct;
    this.provider = provider;
  }

  /** Starts two cores on a new database, and adds its partners, accounts, campaigns and users to the model. */
  static async open(kind: WalkKind, model: Model): Promise<World> {
    // This way, only the walk decides when the silent provider responds, and a dialer that couldn't store a result soon tries again.
    timeouts.answer = day;
    settling.every = 5;
    // The walk's clock stands still while a busy machine lets calls leave late.
    departures.mayBeLate = true;
    Object.assign(globalThis, walkTimers);
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
  }

  /** Stops a core the way a signal does, and starts another one. */
  async restart(core: Core): Promise<void> {
    await this.#end(core);
    await this.start();
  }

  /**
   * Replaces a SQLite database with a backup of itself, as an administrator does. @returns false on PostgreSQL, where it does nothing, so
   * that a walk doesn't need PostgreSQL's tools
   */
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

  pick(which: number): Core {
    const core = this.cores[which % this.cores.length];
    if (!core) throw new Error('No core is running.');
    return core;
  }

  async #end(core: Core): Promise<void> {
    this.cores.splice(this.cores.indexOf(core), 1);
    this.#outcomes += await countOutcomes(core);
    await core.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // After a failure, cores may still hand off calls, and they wait for the responses when they stop.
    this.provider.isUp = false;
    await this.provider.answerSilent(false);
    try {
      for (const core of [...this.cores]) await this.#end(core);
      await this.provider.close();
      await this.#direct.close();
    } finally {
      Object.assign(globalThis, realTimers);
      timeouts.answer = answerTime;
      settling.every = settlesEvery;
      departures.mayBeLate = false;
    }
  }

  /** Repeats the report of an outcome until a core has stored it. */
  async #reportSurely(outcome: object): Promise<void> {
    const isStored = async (core: number) => (await this.report(core, outcome).catch(() => null))?.status === 204;
    for (let core = 0; this.cores.length > 0 && !(await isStored(core)); core++) await pause(5);
  }

  // Requests

  async request(core: number, method: string, path: string, asked: Ask = {}): Promise<Answer> {
    return ask(method, this.pick(core).url + path, asked);
  }

  /** @param code the time step of the code to enter after the password; null for none */
  async signIn(core: number, { id, email, lastCode }: User, code: number | null): Promise<void> {
    let answer = await untilServed(() => this.request(core, 'POST', '/console/session', { body: { email, password } }));
    const cookie = readCookies(answer);
    // Sometimes tries a used code first, which must be refused.
    for (const step of code === null ? [] : code % 3 === 0 ? [lastCode ?? 0, code] : [code]) {
      answer = await this.request(core, 'POST', '/console/session/second-factor', { cookie, body: { code: this.codeAt(id, step) } });
      if (step !== code && answer.status !== 401) throw new Error(`A used code of ${email} should be refused, but got ${answer.status}.`);
    }
    if (answer.status !== 201) throw new Error(`${email} should be able to sign in, but got ${answer.status}.`);
    this.#cookies.set(id, readCookies(answer));
  }

  async enroll(viewer: Viewer, core: number, code: number): Promise<Answer> {
    const begun = await this.as(viewer, core, 'POST', '/console/second-factor', { currentPassword: password });
    this.#apps.set(
      viewer.user,
      authenticator(textAt(begun, 'secret'), () => 0),
    );
    return this.as(viewer, core, 'POST', '/console/second-factor/confirmation', { code: this.codeAt(viewer.user, code) });
  }

  /** @param step the number of the time step in which the user's app shows the code */
  codeAt(user: Id, step: number): string | undefined {
    return this.#apps.get(user)?.code(step);
  }

  as({ user, tenancy }: Viewer, core: number, method: string, path: string, body?: object): Promise<Answer> {
    return this.request(core, method, path, {
      cookie: this.#cookies.get(user) ?? 'none=1',
      ...(tenancy ? { headers: { 'Callkey-Tenancy': `${tenancy.kind}/${tenancy.id}` } } : {}),
      body,
    });
  }

  report(core: number, outcome: object, secret = signingSecret): Promise<Answer> {
    const raw = JSON.stringify(outcome);
    const headers = { ...sign('any', raw, secret, Math.floor(this.clock.now() / 1_000)) };
    return this.request(core, 'POST', '/dialer/outcomes', { raw, headers });
  }

  // Time and faults

  /** Confirms the clock as an administrator, as after a long pause. */
  async acceptClock(): Promise<void> {
    await this.#direct.ports.stores.clock.set(this.clock.now());
  }

  /**
   * Waits until no core has anything to do: each dialer waits for its next poll, and no statement runs.
   *
   * @returns false if that takes longer than a moment
   */
  async rest(): Promise<boolean> {
    const deadline = performance.now() + restsFor;
    const isBusy = () => this.provider.isBusy() || this.cores.some(({ database }) => !database.isIdle);
    // A core needs some turns of the event loop before it sees the provider's response.
    for (let turns = 0; turns < 3; ) {
      await turn();
      if (!isBusy()) turns++;
      else if (performance.now() > deadline) return false;
      else {
        turns = 0;
        await Promise.race([nextChange(), pause(5)]);
      }
    }
    return true;
  }

  /** Makes the cores do their per-minute and hourly work once. Waits until it's done, because otherwise it might see a later time. */
  async sweep(): Promise<void> {
    const before = this.cores.map(countSweeps);
    for (const { database } of this.cores) for (const { work } of database.sweeps) work();
    await until(() => this.cores.every((core, n) => countSweeps(core) > (before[n] ?? 0)));
  }

  /** Makes the cores do their per-minute work once. */
  sweepEachMinute(): void {
    for (const { database } of this.cores) for (const { work, every } of database.sweeps) if (every === sweepEvery) work();
  }

  async addUser(type: UserType, accountId: Id | null, partnerId: Id | null): Promise<NewUser> {
    const email = `user${++this.#newUsers}@example.com`;
    const input = { email, name: 'Somebody New', userType: type, accountId, partnerId };
    const { user } = await createUser(this.#direct.ports, operator, input, password);
    return { id: user.id, email, type, home: accountId ?? partnerId };
  }

  faults(): readonly Fault[] {
    return this.#kind === 'sqlite' ? faults.slice(0, 3) : faults;
  }

  /** Begins a fault once a core has sent some more statements. @param ms how far the clock moves @returns a function that ends the fault */
  async fault(fault: Fault, core: Core, after: number, ms: number): Promise<() => Promise<void>> {
    const { database } = core;
    const { outage, loss } = this.#kind === 'sqlite' ? sqliteCodes : postgresCodes;
    const to = this.clock.now() + ms;
    const moveClock = () => this.clock.advance(to - this.clock.now());
    let done: Promise<unknown> = Promise.resolve();
    // The fault begins within a statement of a core, but must run as the walk's own code. Otherwise, its connections would count as the
    // core's.
    const begin = (work: () => Promise<unknown>) => () => {
      done = switches.run(null, work);
    };
    const cuts: Readonly<Record<Fault, Omit<Cut, 'after'>>> = {
      'a core ends': { code: outage },
      'an outage': { code: outage },
      'a lost result': { code: loss, once: 'lose' },
      'ended sessions': { once: begin(() => this.#endSessions()) },
      'a crash': { once: begin(() => this.#crash()) },
      'a clock move': { once: moveClock },
    };
    database.cut = { after, ...cuts[fault] };
    return async () => {
      await done;
      moveClock();
      database.cut = undefined;
      if (fault !== 'a core ends') return;
      database.cut = { after: 0, code: outage };
      await this.provider.answerSilent(false);
      await this.restart(core);
    };
  }

  async #endSessions(): Promise<void> {
    await this.#storage.query(`SELECT pg_terminate_backend(pid) ${otherSessions}`);
  }

  /** Kills a process of PostgreSQL. The server then ends all its other processes, and recovers from its log. */
  async #crash(): Promise<void> {
    // A server that tests share mustn't crash, because that would end everyone's connections.
    if (this.#kind === 'postgres' && process.env['TEST_POSTGRES_URL'] !== undefined) return this.#endSessions();
    const findSessions = async () => (await this.#storage.query<{ pid: number }>(`SELECT pid ${otherSessions}`)).map(({ pid }) => pid);
    const before = await findSessions();
    if (before[0] !== undefined) process.kill(before[0], 'SIGKILL');
    await until(async () => (await findSessions().catch(() => before)).every((pid) => !before.includes(pid)));
    if (this.#kind !== 'citus') return;
    const lost = 'SELECT 1 FROM run_command_on_all_nodes($$SELECT 1$$, give_warning_for_connection_errors := true) WHERE NOT success';
    await until(async () => (await this.#storage.query(lost).catch(() => [1])).length === 0);
  }

  /**
   * Keeps everyone from writing while the work begins, as a backup or an administrator's transaction does.
   *
   * @param places on PostgreSQL, only these calls can't be written, because another transaction is about to place them
   */
  async whileLocked<Result>(work: () => Promise<Result>[], places?: readonly Place[]): Promise<Result[]> {
    // A fault may have ended connections between nodes. A node notices that only when it uses one, and then the statement fails. Each of
    // the walk's connections to the database uses other connections between nodes, so several attempts may fail.
    const lock = () => this.#lock(places);
    const transactions = await lock().catch(lock).catch(lock).catch(lock);
    const results = Promise.all(work());
    await Promise.race([results, pause(10)]).finally(() => rollBack(transactions));
    return results;
  }

  async #lock(places: readonly Place[] | undefined): Promise<Knex.Transaction[]> {
    const shards = callLanes(this.#storage);
    const transactions = await Promise.all(shards.map((shard) => shard.write.transaction()));
    if (this.#kind === 'sqlite') return transactions;
    try {
      for (const [n, trx] of places ? [] : transactions.entries())
        await trx.raw(`LOCK TABLE calls${n === 0 ? ', users' : ''} IN EXCLUSIVE MODE`);
      for (const place of places ?? [])
        await transactions[shards.indexOf(callLane(this.#storage, place[1]))]?.raw(placeElsewhere, [testRandomness.id(), ...place]);
      return transactions;
    } catch (error) {
      // Otherwise, a walk that fails here would never end, because closing the database waits for the transactions.
      await rollBack(transactions);
      throw error;
    }
  }

  // The state of the database

  get #storage(): Lane {
    return this.#direct.storage.database;
  }

  /** Returns the stage of each call, how many times the provider was asked to make it, and how many numbers each do-not-call list has. */
  async look() {
    const rows = await inCallLanes(this.#storage, (shard) => shard.query<{ id: Id; seen: string }>(selectCalls));
    const lists = await this.#storage.query<{ id: Id; numbers: number }>(
      'SELECT scope_id AS id, count(*) AS numbers FROM do_not_call GROUP BY scope_id',
    );
    const calls = new Map(rows.flat().map(({ id, seen }) => [id, seen]));
    return { calls, handoffs: this.provider.handoffs, listed: new Map(lists.map(({ id, numbers }) => [id, Number(numbers)])) };
  }

  /** Returns how many outcomes the cores' metrics count, including those of cores that have ended. */
  async outcomes(): Promise<number> {
    const running = await Promise.all(this.cores.map(countOutcomes));
    return running.reduce((sum, count) => sum + count, this.#outcomes);
  }

  async auditFaults(): Promise<string[]> {
    await this.#direct.ports.stores.auditChain.extend();
    return (await verifyChain(this.#direct.ports.stores.auditChain, [])).faults;
  }
}

const rollBack = (transactions: readonly Knex.Transaction[]) => Promise.all(transactions.map((trx) => trx.rollback()));

async function countOutcomes({ managementUrl }: RunningCore): Promise<number> {
  const { text } = await ask('GET', `${managementUrl}/metrics`);
  return [...text.matchAll(/^callkey_outcomes_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}
