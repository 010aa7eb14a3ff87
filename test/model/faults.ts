import { AsyncLocalStorage } from 'node:async_hooks';
import { PostgresClient } from '../../core/storage/engine/postgres/postgres-connection.ts';
import { SqliteClient } from '../../core/storage/engine/sqlite/sqlite.ts';
import { day } from './basics.ts';

let change = Promise.withResolvers<void>();
/** Resolves when a core has finished a statement, or its dialer starts to wait for its next poll. */
export const nextChange = () => change.promise;
export function noteChange(): void {
  change.resolve();
  change = Promise.withResolvers();
}

/** How the connection between a core and its database is disturbed once the core has sent some more statements. */
export type Cut = {
  /** How many more statements run first. */
  after: number;
  /** The error of all statements after them. */
  code?: string;
  /** If set, only one statement is affected: `lose` runs it, but loses its result; a function is called before it runs. */
  once?: 'lose' | (() => void);
};

/** The functions that wake the dialers that wait for their next poll, by the timer that each of them waits for. */
const polls = new Map<NodeJS.Timeout, { by: Switch; wake: () => void }>();

/** Makes the dialers look for due calls now. */
export function wakeDialers(): void {
  for (const { wake } of [...polls.values()]) wake();
}

/** Stands between a core, its database and its timers. */
export class Switch {
  /** The work that the core does every minute or hour. */
  readonly sweeps: { work: () => void; every: number }[] = [];
  cut: Cut | undefined;
  /** How many statements are running, and connections being opened. */
  #running = 0;

  /** Whether the core has nothing to do. */
  get isIdle(): boolean {
    return this.#running === 0 && polls.values().some(({ by }) => by === this);
  }

  /** Counts work of the core until it has ended. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
      noteChange();
    }
  }

  /** Sends a statement, if it isn't cut off. Rollbacks never are, because the database does them by itself. */
  async run<Result>(sql: string, send: () => Promise<Result>): Promise<Result> {
    const cut = !/^ROLLBACK/i.test(sql) && this.cut && this.cut.after-- <= 0 ? this.cut : undefined;
    const fail = (): never => {
      throw Object.assign(new Error('The walk has cut the core off from its database.'), { code: cut?.code });
    };
    if (cut && !cut.once) fail();
    if (cut) this.cut = undefined;
    if (typeof cut?.once === 'function') cut.once();
    return this.during(async () => {
      const result = await send();
      return cut?.once === 'lose' ? fail() : result;
    });
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
  const by = switches.getStore();
  if (!by) return openSqlite.call(this);
  const connection = await by.during(() => openSqlite.call(this));
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
  if (!by) return openPostgres.call(this);
  const connection = await by.during(() => openPostgres.call(this));
  const query: (...args: unknown[]) => Promise<unknown> = connection.query.bind(connection);
  const guarded = (given: object, ...more: unknown[]) =>
    by.run('text' in given ? String(given.text) : String(given), () => query(given, ...more));
  Reflect.set(connection, 'query', guarded);
  return connection;
};

/** In ms: how often dialers look for due calls, and the shortest interval of housekeeping. */
const pollEvery = 1_000;
export const sweepEvery = 60_000;

export const realTimers = { setTimeout, clearTimeout, setInterval };
type Work = (...args: unknown[]) => void;

function setPoll(work: Work, ms?: number, ...rest: unknown[]) {
  // A dialer that waits for a pace waits for the walk's clock.
  const by = ms === pollEvery || work.name === 'poll' ? switches.getStore() : null;
  if (!by) return realTimers.setTimeout(work, ms, ...rest);
  const wake = () => {
    polls.delete(timer);
    work();
  };
  const timer = realTimers.setTimeout(wake, ms);
  polls.set(timer, { by, wake });
  noteChange();
  return timer;
}

/**
 * Replaces the timers of the cores' dialers and housekeeping, so that a walk through a year doesn't wait for them. All other code still
 * gets real timers.
 */
export const walkTimers = {
  // `setTimeout` has properties, such as the function for `promisify`.
  setTimeout: Object.assign(setPoll, realTimers.setTimeout),
  clearTimeout(timer?: NodeJS.Timeout) {
    if (timer) polls.delete(timer);
    realTimers.clearTimeout(timer);
  },
  setInterval(work: Work, ms = 0, ...rest: unknown[]) {
    const by = ms >= sweepEvery ? switches.getStore() : null;
    if (!by) return realTimers.setInterval(work, ms, ...rest);
    by.sweeps.push({ work, every: ms });
    // In a walk that takes longer than a minute, housekeeping would run between any two commands.
    return realTimers.setInterval(() => undefined, day);
  },
};
