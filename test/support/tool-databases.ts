import { systemClock } from '../../core/server/start/system.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, unobserved } from '../../core/storage/storage.ts';
import { type PostgresServer, startPostgresOfTools } from '../../scripts/support/postgres.ts';
import { type DatabaseKind, databaseKinds, emptyDatabase, freshDatabase } from './databases.ts';
import { skip } from './skip.ts';

type ToolDatabases = { kind: DatabaseKind; freshDatabase(): Promise<string>; emptyDatabase(): Promise<string> };

/** Runs the same tests on SQLite and on a PostgreSQL of the same release as this machine's tools, such as pg_dump. */
export function onToolDatabases(tests: (on: ToolDatabases) => void): void {
  for (const kind of databaseKinds)
    describe(`on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, function () {
      this.timeout(120_000);
      let server: PostgresServer | undefined;
      let template: string | undefined;
      before(async function () {
        if (kind === 'sqlite') return;
        server = await startPostgresOfTools();
        // No npm package contains pg_dump, pg_restore and psql.
        if (!server) return skip(this, 'no PostgreSQL with its tools in /usr/lib/postgresql');
        template = await migratedDatabase(server);
      });
      after(() => server?.stop());
      tests({
        kind,
        freshDatabase: () => server?.createDatabase(template) ?? freshDatabase(kind),
        emptyDatabase: () => server?.createDatabase() ?? emptyDatabase(kind),
      });
    });
}

/** @returns the name of a database with the whole schema and no rows */
async function migratedDatabase(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase();
  const location = parseDatabaseUrl(url);
  const storage = openStorage(location, systemClock, unobserved);
  await storage.migrate().finally(() => storage.close());
  return new URL(url).pathname.slice(1);
}
