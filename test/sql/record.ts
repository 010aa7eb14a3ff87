import { mock } from 'node:test';
import pg from 'pg';
import sqlite3 from 'sqlite3';
import { knownLists } from '../../core/storage/protection/known-lists.ts';
import { type DatabaseKind, freshDatabase } from '../support/databases.ts';
import { createTenants, openDirect } from '../support/tenants.ts';
import { type Runs, setUpOnce } from './fixtures.ts';
import { formatSql } from './format.ts';
import { createRuns } from './statements.ts';

/** The stores whose statements each file lists. */
const files = {
  calls: ['calls', 'dialing', 'callList'],
  keys: ['apiKeys', 'keyUse'],
  users: ['users', 'sessions', 'links', 'secondFactors', 'throttle'],
  directory: ['tenancies', 'directory', 'imports'],
  audit: ['activity', 'auditChain'],
  housekeeping: ['retention', 'contacts', 'clock'],
  protection: ['protection', 'numberImports', 'knownLists'],
} as const satisfies Record<string, readonly (keyof Runs | 'keyUse' | 'knownLists')[]>;

/** Whether a statement isn't recorded: it starts or ends a transaction, or sets up a connection. */
const isUnlisted = (sql: string) => /^(BEGIN|COMMIT|ROLLBACK|PRAGMA|SET |DISCARD PLANS|SELECT pg_backend_pid|select version)/i.test(sql);

/** Runs each method of each store. @returns the text of each file by its path in core/storage/sql */
export async function recordAll(kind: DatabaseKind): Promise<Map<string, string>> {
  const statements = new Map<string, Set<string>>();
  const running: string[] = [];
  const stopListening = listen((sql) => {
    const [name] = running;
    if (name !== undefined && !isUnlisted(sql)) statements.set(name, (statements.get(name) ?? new Set()).add(formatSql(sql)));
  });
  /** @returns a function that records its statements under this name */
  function recorded<Args extends unknown[], Result>(name: string, run: (...args: Args) => Promise<Result>) {
    return async (...args: Args): Promise<Result> => {
      running.push(name);
      return run(...args).finally(() => running.pop());
    };
  }

  // On a busy machine, the storage would write key use, or read lists, in the middle of another method.
  mock.timers.enable({ apis: ['setInterval'] });
  const { ports, storage, close } = await openDirect(await freshDatabase(kind));
  // Only one connection, because the order of concurrent statements would vary on several.
  for (const { client } of [...storage.database.pools.values()].flat()) client.pool.max = 1;
  const stores = { ...storage.stores, throttle: storage.throttle, imports: storage.imports };
  try {
    await setUpOnce(recorded('directory.setUp', stores.directory.setUp), ports);
    const tenants = await createTenants(ports);
    const runs = createRuns({ ports, storage, tenants });
    for (const [store, methods] of Object.entries(runs)) {
      for (const [method, run] of Object.entries(methods)) {
        await run(recorded(`${store}.${method}`, Reflect.get(Reflect.get(stores, store), method)));
      }
    }
    const lists = knownLists(storage.database);
    lists.unlistedAt(tenants.campaign.id, '');
    const refresh = recorded('knownLists.refresh', lists.refresh);
    await refresh();
    await storage.database.write('partners').increment('lists_version');
    await refresh();
  } finally {
    await recorded('keyUse.write', close)();
    mock.timers.reset();
    stopListening();
  }
  return new Map(
    Object.entries(files).map(([file, listed]) => {
      const sections = listed.flatMap((store) => Array.from(statements).filter(([section]) => section.startsWith(`${store}.`)));
      const texts = sections.flatMap(([section, all]) => [`-- ${section}`, ...all]);
      return [`${kind}/${file}.sql`, `${texts.join('\n\n')}\n`];
    }),
  );
}

/** Listens to every statement sent to a database, however it's made. @returns a function that stops listening */
function listen(onStatement: (sql: string) => void): () => void {
  const { prototype } = sqlite3.Statement;
  const { all, run } = prototype;
  const { query } = pg.Client.prototype;
  const withListener = (method: typeof all) =>
    function (this: sqlite3.Statement, ...args: unknown[]) {
      onStatement(String(Reflect.get(this, 'sql')));
      return Reflect.apply(method, this, args);
    };
  Object.assign(prototype, { all: withListener(all), run: withListener(run) });
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, statement: string | pg.QueryConfig, ...args: unknown[]) {
      onStatement(typeof statement === 'string' ? statement : statement.text);
      return Reflect.apply(query, this, [statement, ...args]);
    },
  });
  return () => {
    Object.assign(prototype, { all, run });
    Object.assign(pg.Client.prototype, { query });
  };
}
