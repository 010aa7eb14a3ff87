/**
 * According to Knex's documentation, a client class can be extended and passed as `client`, but there are no types for the dialects'
 * classes.
 */
declare module 'knex/lib/dialects/postgres/index.js' {
  import { Knex } from 'knex';
  import type { Client as Connection, QueryConfig, QueryResult } from 'pg';

  /** The number of shards; 0 if there are none. Known only after the migrations have been read. */
  export type Sharding = { count: number };
  export type Query = { sql: string; bindings?: readonly unknown[]; options?: Partial<QueryConfig>; response?: QueryResult };

  export default class Client extends Knex.Client {
    config: Knex.Config & { sharding: Sharding; shard?: string };
    _driver(): { Client: typeof Connection };
    /** The driver reads these settings at the start of `acquireRawConnection`. */
    connectionSettings: { connectionString: string };
    acquireRawConnection(): Promise<Connection>;
    _query(connection: Connection, query: Query): Promise<Query>;
  }
}

declare module 'knex/lib/dialects/sqlite3/index.js' {
  import { Knex } from 'knex';
  import type { Database } from 'sqlite3';
  import type { FileGuard } from './sqlite/sqlite-file.ts';

  export default class Client extends Knex.Client {
    connectionSettings: { filename: string; guard: FileGuard };
    transaction(...args: unknown[]): Knex.Transaction;
    acquireRawConnection(): Promise<Database>;
    destroyRawConnection(connection: Database): Promise<void>;
    _query(connection: Database, query: unknown): Promise<unknown>;
  }
}

declare module 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js' {
  import type { Knex } from 'knex';
  import type { Database } from 'sqlite3';

  /** The internals of a transaction, which knex's types don't include. */
  interface Transaction extends Knex.Transaction {
    query(...args: unknown[]): never;
    begin(connection: Database): Promise<unknown>;
    on(event: 'query-error', listener: (error: Error, query: { sql: string }) => void): this;
  }
  const Transaction: new (...args: unknown[]) => Transaction;
  export default Transaction;
}
