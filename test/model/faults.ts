import { AsyncLocalStorage } from 'node:async_hooks';
import { PostgresClient } from '../../core/storage/engine/postgres/postgres-connection.ts';
import { SqliteClient } from '../../core/storage/engine/sqlite/sqlite-connection.ts';

let change = Promise.withResolvers<void>();
/** Resolves when a core has finished a statement, or its dialer waits. */
export const nextChange = () => change.promise;
export function noteChange(): void {
  change.resolve();
  change = Promise.withResolvers();
}

/** Stands between a core and its database, and can make all statements after a given number fail. */
export class Switch {
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

  get isBusy(): boolean {
    return this.#running > 0;
  }

  /** @returns a function to call when the statement has finished */
  begin(): () => void {
    this.#running++;
    return () => {
      this.#running--;
      noteChange();
    };
  }

  mend(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  /** @returns the error of a statement, and whether it runs anyway. Rollbacks don't fail, because the database does them by itself */
  judge(sql: string): { error?: Error; isRun: boolean } {
    if (/^ROLLBACK/i.test(sql) || this.#left-- > 0) return { isRun: true };
    const error = Object.assign(new Error('The walk has cut the core off from its database.'), { code: this.#code });
    if (!this.#instead) return { error, isRun: false };
    this.mend();
    if (this.#instead === 'lose') return { error, isRun: true };
    this.#instead();
    return { isRun: true };
  }
}

/** The switch of the core that runs this code; null for the walk's own code. */
export const switches = new AsyncLocalStorage<Switch | null>();

type Method = (...args: unknown[]) => unknown;

/** Replaces a method that takes SQL, or runs a prepared statement, and calls back. */
function guardCallback(target: object, name: string, by: Switch): void {
  const real: Method = Reflect.get(target, name).bind(target);
  const guarded: Method = (...args) => {
    const done = args.pop();
    if (typeof done !== 'function') return real(...args, done);
    const { error, isRun } = by.judge(String(args[0]));
    if (!isRun) return process.nextTick(() => done.call({}, error));
    const finish = by.begin();
    return real(...args, function (this: unknown, ...results: unknown[]) {
      finish();
      done.apply(this, error ? [error] : results);
    });
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
  const query: Method = connection.query.bind(connection);
  const guarded = async (given: object, ...more: unknown[]) => {
    const { error, isRun } = by.judge('text' in given ? String(given.text) : String(given));
    const finish = by.begin();
    try {
      const result = isRun ? await query(given, ...more) : null;
      if (error) throw error;
      return result;
    } finally {
      finish();
    }
  };
  Reflect.set(connection, 'query', guarded);
  return connection;
};
