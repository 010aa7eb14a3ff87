import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pageUrl } from '#contract/pages.ts';
import { Problem } from '../../domain/problem.ts';
import { adminCommand } from '../../program.ts';
import type { Lane } from '../../storage/engine/database.ts';
import { explainDatabaseError, toProblem } from '../../storage/engine/errors.ts';
import { applicationName, migrationLock, openPostgres } from '../../storage/engine/postgres/postgres.ts';
import { migrationsTable } from '../../storage/engine/tables.ts';
import { schemaState } from '../../storage/migrate.ts';
import { ownSchema, ownTableList, readTool, requireSameServer, startPostgresTool, waitForTool } from './postgres-tools.ts';
import { findRevived, missingMigrations, nothing, type RestoreResult, readGone } from './restore-result.ts';

export async function restorePostgres(url: string, file: string): Promise<RestoreResult> {
  const backup = await inspect(url, file);
  const database = openPostgres(url);
  try {
    await requireSameServer(database, url);
    const isEmpty = await requireReadable(database);
    const gone = isEmpty ? null : await readGone(database.read);
    const own = await assertNoOtherConnections(database);
    const schema = await ownSchema(database);
    if (schema !== backup.schema) throw wrongSchemaError(file, backup.schema, schema);
    await replaceAll(url, file, own, schema);
    return { before: null, revived: gone ? await findRevived(gone, database.read) : nothing, missing: backup.missing };
  } finally {
    await database.close();
  }
}

/**
 * Refuses a database with another schema, because what it calls otherwise wouldn't be read, and tables that this program doesn't know
 * wouldn't be dropped. A migration would later fail because of them.
 *
 * @returns whether it's empty
 */
async function requireReadable(database: Lane): Promise<boolean> {
  const { isEmpty, missing } = await schemaState(database).catch((error: unknown) => {
    throw toProblem(error);
  });
  if (database.shards().length > 0)
    throw new Problem('conflict', `A database with shards can't be restored from one file. See ${pageUrl('core/docs/scaling.md#back-up')}`);
  if (!isEmpty && missing.length > 0)
    throw new Problem('conflict', `The database's schema is out of date. Run ${adminCommand} migrate, then restore.`);
  return isEmpty;
}

/** Returns the error for a backup from another schema: `pg_restore` restores tables only into the schema that they came from. */
function wrongSchemaError(file: string, from: string, to: string): Problem {
  const what = `The tables in ${file} are in the schema ${from}, but this user's search_path resolves to ${to}.`;
  return new Problem('conflict', `${what} Create the schema ${from}, then restore as a user whose search_path starts with it.`);
}

/** Reads from a dump which schema it contains, and which migrations it doesn't have yet. */
async function inspect(url: string, file: string): Promise<{ schema: string; missing: string[] }> {
  try {
    closeSync(openSync(file, 'r'));
  } catch (error) {
    throw new Problem('invalid', `Couldn't read ${file}: ${explainDatabaseError(error)?.cause ?? String(error)}.`);
  }
  const tool = startPostgresTool(url, 'pg_restore', ['--data-only', `--table=${migrationsTable}`, '--file=-', file]);
  const sql = await readTool(tool).catch((error) => {
    throw tool.messages() === '' ? error : new Problem('invalid', `Couldn't restore ${file}: ${error.message}`);
  });
  const copied = /^COPY (.+)\.\S+ \((.*)\) FROM stdin;\n([\s\S]*?)^\\\.$/m.exec(sql);
  const [, schema = '', columns = '', rows = ''] = copied ?? [];
  const column = columns.split(', ').indexOf('name');
  const applied = rows.split('\n').flatMap((row) => row.split('\t')[column] || []);
  return { schema: unquoted(schema), missing: missingMigrations(applied, file) };
}

/** Removes the quotes that PostgreSQL adds to a name that isn't a plain word. */
const unquoted = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);

/** @returns the ID of the server process that serves this connection */
export async function assertNoOtherConnections(database: Lane): Promise<number> {
  const [connections] = await database.query<{ own: number; others: number }>(
    `SELECT pg_backend_pid() AS own, (SELECT count(*) FROM pg_stat_activity WHERE ${otherSessions('pg_backend_pid()')}) AS others`,
  );
  if (!connections || connections.others > 0) {
    const what = 'A core, or another admin command, is connected to the database. Stop it, then try again.';
    throw new Problem('conflict', `${what} If you use a connection pooler, restart it: it keeps connections open for minutes.`);
  }
  return connections.own;
}

const otherSessions = (own: string) => `datname = current_database() AND application_name = '${applicationName}' AND pid <> ${own}`;

/**
 * Replaces all of Callkey's tables in one transaction, and nothing else in the schema. `pg_restore --clean` would drop only
 * what the backup contains, so if a later release had added a table, its migration would then fail. A core that starts during the restore
 * waits for the migrations' lock.
 */
async function replaceAll(url: string, file: string, own: number, schema: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'callkey-restore-'));
  try {
    const list = join(folder, 'list');
    writeFileSync(list, await listOwnEntries(url, file));
    await replaceObjects(url, own, ['--no-owner', `--schema=${schema}`, `--use-list=${list}`, '--file=-', file]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function replaceObjects(url: string, own: number, args: readonly string[]): Promise<void> {
  const psql = startPostgresTool(url, 'psql', ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1', '--file=-']);
  const { stdin } = psql.child;
  psql.child.stdout.resume();
  const done = waitForTool(psql);
  // `done` is awaited below. Without this handler, a rejection before then would end the process.
  done.catch(() => undefined);
  stdin.write(opening(own));
  const restoring = startPostgresTool(url, 'pg_restore', args);
  const copied = pipeline(restoring.child.stdout, withoutTransactionTimeout, stdin, { end: false });
  // If psql fails, nothing reads pg_restore's output anymore, so pg_restore would wait forever.
  psql.child.once('close', () => restoring.child.kill());
  const failure = await Promise.all([waitForTool(restoring), copied]).then(
    () => undefined,
    (error: unknown) => error,
  );
  // Without the COMMIT, the server rolls everything back.
  stdin.end(failure === undefined ? 'RESET search_path;\nDELETE FROM sessions;\nCOMMIT;\n' : '');
  await done;
  if (failure !== undefined) throw failure;
}

/** In bytes. More than the settings at the start of pg_restore's output. */
const settingsSize = 4_096;

/**
 * Removes a setting that pg_restore writes from version 17 on, because earlier servers don't have it, and would refuse the whole restore.
 * `opening` has already set it for servers that do.
 */
async function* withoutTransactionTimeout(output: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0);
  const edited = (bytes: Buffer) => Buffer.from(bytes.toString('latin1').replace(/^SET transaction_timeout = 0;\n/m, ''), 'latin1');
  for await (const chunk of output) {
    if (start === undefined) yield chunk;
    else start = Buffer.concat([start, chunk]);
    if (start === undefined || start.length < settingsSize) continue;
    yield edited(start);
    start = undefined;
  }
  if (start !== undefined) yield edited(start);
}

/** Selects Callkey's lines from a table of contents, which also lists other programs' functions and types in the same schema. */
async function listOwnEntries(url: string, file: string): Promise<string> {
  const listed = await readTool(startPostgresTool(url, 'pg_restore', ['--list', file]));
  return listed
    .split('\n')
    .filter((line) => ownEntry.test(line))
    .join('\n');
}

const ofTables =
  '(?:TABLE|TABLE DATA|SEQUENCE|SEQUENCE SET|SEQUENCE OWNED BY|DEFAULT|CONSTRAINT|CHECK CONSTRAINT|FK CONSTRAINT|INDEX|TRIGGER) ';
const ownEntry = new RegExp(`^\\d+; \\d+ \\d+ (?:${ofTables}|ACL .+ (?:TABLE|SEQUENCE) )`);

/** Builds the start of the SQL script. It doesn't use CASCADE, so that another program's view stops the restore instead of disappearing. */
const opening = (
  own: number,
) => `BEGIN \\; SELECT set_config(name, '0', true) FROM pg_settings WHERE name ~ '(statement|session|transaction)_timeout$' \\g /dev/null
SELECT pg_advisory_xact_lock(${migrationLock}) \\g /dev/null
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_stat_activity WHERE ${otherSessions(String(own))}) THEN RAISE EXCEPTION 'a core connected in the meantime'; END IF;
END $$;
DO $$ DECLARE found text; BEGIN
  SELECT string_agg(c.oid::regclass::text, ', ') INTO found FROM pg_class c
  WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p') AND c.relname IN (${ownTableList});
  IF found IS NOT NULL THEN EXECUTE 'DROP TABLE ' || found; END IF;
END $$;
`;
