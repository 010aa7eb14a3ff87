import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { settleEvery } from '../../core/dialer/loop.ts';
import { PostgresClient } from '../../core/storage/engine/postgres/postgres-connection.ts';
import { SqliteClient } from '../../core/storage/engine/sqlite/sqlite-connection.ts';
import { day } from './people.ts';

let change = Promise.withResolvers<void>();
/** Resolves when a core has finished a statement, or its dialer waits. */
export const nextChange = () => change.promise;
export function noteChange(): void {
  change.resolve();
  change = Promise.withResolvers();
}

/** Stands between a core, its database and its timers. Can make all statements after a given number fail. */
export class Switch {
  /** What wakes the dialer while it waits for its next poll, by its timer. */
  readonly polls = new Map<unknown, () => void>();
  /** The work that the core does every minute or hour. */
  readonly sweeps: (() => void)[] = [];
  /** How many statements are running. */
  #running = 0;
  #left = Number.POSITIVE_INFINITY;
  #code = '';
  #instead: 'lose' | (() => void) | undefined;

  /** @param instead only one statement is affected: `lose` runs it, but loses its result; a function is called before it runs */
  cut(after: number, code: string, instead?: 'lose' | (() => void)): void {
    this.#left = after;
    this.#code = code;
    this.#instead = instead;
  }

  mend(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  /** Whether the core has nothing to do. */
  get isIdle(): boolean {
    return this.#running === 0 && this.polls.size > 0;
  }

  /** Makes the dialer look for due calls now. */
  poll(): void {
    for (const wake of [...this.polls.values()]) wake();
  }

  /** Sends a statement, if it isn't cut off. Rollbacks never are, because the database does them by itself. */
  async run<Result>(sql: string, send: () => Promise<Result>): Promise<Result> {
    const isCut = !/^ROLLBACK/i.test(sql) && this.#left-- <= 0;
    const fail = (): never => {
      throw Object.assign(new Error('The walk has cut the core off from its database.'), { code: this.#code });
    };
    if (isCut && !this.#instead) fail();
    if (isCut) this.mend();
    if (isCut && typeof this.#instead === 'function') this.#instead();
    this.#running++;
    try {
      const result = await send();
      return isCut && this.#instead === 'lose' ? fail() : result;
    } finally {
      this.#running--;
      noteChange();
    }
  }
}

/** The switch of the core that runs this code; null for the walk's own code. */
export const switches = new AsyncLocalStorage<Switch | null>();

/** Replaces a method that takes SQL, or runs a prepared statement, and calls back. */
function guardCallback(target: object, name: string, by: Switch): void {
  const real: (...args: unknown[]) => unknown = Reflect.get(target, name).bind(target);
  const guarded = (...args: unknown[]) => {
    const done = args.pop();
    if (typeof done !== 'function') return void real(...args, done);
    const send = () =>
      new Promise<() => void>((resolve) =>
        real(...args, function (this: unknown, ...results: unknown[]) {
          resolve(() => done.apply(this, results));
        }),
      );
    by.run(String(args[0]), send).then(
      (callBack) => callBack(),
      (error) => done.call({}, error),
    );
  };
  Reflect.set(target, name, guarded);
}

const { acquireRawConnection: openSqlite } = SqliteClient.prototype;
SqliteClient.prototype.acquireRawConnection = async function () {
  const connection = await openSqlite.call(this);
  const by = switches.getStore();
  if (!by) return connection;
  for (const name of ['all', 'run', 'exec']) guardCallback(connection, name, by);
  const prepare = connection.prepare.bind(connection);
  const prepareGuarded = (sql: string, done: () => void) => {
    const statement = prepare(sql, done);
    for (const name of ['all', 'run']) guardCallback(statement, name, by);
    return statement;
  };
  Reflect.set(connection, 'prepare', prepareGuarded);
  return connection;
};

const { acquireRawConnection: openPostgres } = PostgresClient.prototype;
PostgresClient.prototype.acquireRawConnection = async function () {
  const by = switches.getStore();
  const connection = await openPostgres.call(this);
  if (!by) return connection;
  const query: (...args: unknown[]) => Promise<unknown> = connection.query.bind(connection);
  const guarded = (given: object, ...more: unknown[]) =>
    by.run('text' in given ? String(given.text) : String(given), () => query(given, ...more));
  Reflect.set(connection, 'query', guarded);
  return connection;
};

/** In ms: how often dialers look for due calls, and the shortest interval of housekeeping. */
const pollEvery = 1_000;
const sweepEvery = 60_000;

const waiting = new WeakMap<NodeJS.Timeout, Switch>();
type Work = (...args: unknown[]) => void;

const { setTimeout: realTimeout, clearTimeout: realClear, setInterval: realInterval } = globalThis;
const { setTimeout: realPause } = timers;

/** Replaces the timers of the cores' dialers and housekeeping, so that a walk through a year doesn't wait for them. */
const replaced = {
  setTimeout(work: Work, ms?: number, ...rest: unknown[]) {
    const by = ms === pollEvery ? switches.getStore() : null;
    if (!by) return realTimeout(work, ms, ...rest);
    const wake = () => {
      by.polls.delete(timer);
      work();
    };
    const timer = realTimeout(wake, ms);
    by.polls.set(timer, wake);
    waiting.set(timer, by);
    noteChange();
    return timer;
  },
  clearTimeout(timer?: NodeJS.Timeout) {
    if (timer) waiting.get(timer)?.polls.delete(timer);
    realClear(timer);
  },
  setInterval(work: Work, ms = 0, ...rest: unknown[]) {
    const by = ms >= sweepEvery ? switches.getStore() : null;
    if (!by) return realInterval(work, ms, ...rest);
    by.sweeps.push(work);
    // In a walk that takes longer than a minute, housekeeping would run between any two commands.
    return realInterval(() => undefined, day);
  },
};
// `setTimeout` has properties, such as the function for `promisify`.
const taken = { ...replaced, setTimeout: Object.assign(replaced.setTimeout, realTimeout) };
// After an outage, a dialer stores what it knows with the next attempt.
const pause = ((ms, ...rest) => realPause(ms === settleEvery && switches.getStore() ? 5 : ms, ...rest)) satisfies typeof realPause;

export function takeTimers(): void {
  Object.assign(globalThis, taken);
  Object.assign(timers, { setTimeout: pause });
  syncBuiltinESMExports();
}

export function giveTimersBack(): void {
  Object.assign(globalThis, { setTimeout: realTimeout, clearTimeout: realClear, setInterval: realInterval });
  Object.assign(timers, { setTimeout: realPause });
  syncBuiltinESMExports();
}
