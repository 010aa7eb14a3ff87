/** Knex documents that a client class can be extended and given as `client`; it ships no types for the dialects' own. */
declare module 'knex/lib/dialects/postgres/index.js' {
  import { Knex } from 'knex';
  import type { Client as Connection, QueryConfig, QueryResult } from 'pg';

  export type Query = { sql: string; bindings?: readonly unknown[]; options?: Partial<QueryConfig>; response?: QueryResult };

  export default class Client extends Knex.Client {
    /** The driver reads it at the start of `acquireRawConnection`. */
    connectionSettings: { connectionString: string };
    acquireRawConnection(): Promise<Connection>;
    _query(connection: Connection, query: Query): Promise<Query>;
  }
}
