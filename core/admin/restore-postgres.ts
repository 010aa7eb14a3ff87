import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Problem } from '../domain/problem.ts';
import { inChunks } from '../storage/chunks.ts';
import type { Database } from '../storage/database.ts';
import { databaseErrorText } from '../storage/error-text.ts';
import { schemaOf } from '../storage/migrations/index.ts';
import { openDatabase } from '../storage/open.ts';
import { ended, startPostgresTool } from './postgres-tools.ts';
import type { Restored, Revived } from './restore.ts';

export async function restorePostgres(url: string, file: string): Promise<Restored> {
  const missing = await missingIn(url, file);
  const database = openDatabase({ kind: 'postgres', url }, 'refuse');
  try {
    const gone = await goneFrom(database);
    await replaceAll(url, file, await refuseOthers(database));
    return { before: null, revived: await backAmong(database, gone), missing };
  } finally {
    await database.close();
  }
}

/** Reads the list of migrations out of a dump. @returns what its schema lacks */
async function missingIn(url: string, file: string): Promise<string[]> {
  try {
    closeSync(openSync(file, 'r'));
  } catch (error) {
    throw new Problem('invalid', `${file} cannot be read: ${databaseErrorText(error) ?? String(error)}.`);
  }
  const tool = startPostgresTool(url, 'pg_restore', ['--data-only', '--table=schema_migrations', '--file=-', file]);
  const [, sql] = await Promise.all([
    ended(tool).catch((error) => {
      throw tool.complaint() === '' ? error : new Problem('invalid', `${file} cannot be restored: ${error.message}`);
    }),
    tool.child.stdout ? text(tool.child.stdout) : '',
  ]);
  const copied = /^COPY \S+ \((.*)\) FROM stdin;\n([\s\S]*?)^\\\.$/m.exec(sql);
  const column = copied?.[1]?.split(', ').indexOf('name') ?? -1;
  const applied = (copied?.[2] ?? '').split('\n').flatMap((row) => row.split('\t')[column] ?? []);
  if (!applied.includes('001-core')) throw new Problem('invalid', `${file} is no backup of Callkey.`);
  return schemaOf(applied, file).missing;
}

/** @returns the process on the server that this one is connected to */
async function refuseOthers({ read }: Database): Promise<number> {
  const { rows }: { rows: { own: number; others: number }[] } = await read.raw(
    `SELECT pg_backend_pid() AS own, (SELECT count(*) FROM pg_stat_activity WHERE ${others('pg_backend_pid()')}) AS others`,
  );
  if (rows[0] === undefined || rows[0].others > 0) {
    throw new Problem('conflict', 'A core, or another admin command, is connected to the database. Stop it, then restore again.');
  }
  return rows[0].own;
}

const others = (own: string) => `datname = current_database() AND application_name = 'callkey' AND pid <> ${own}`;

type Gone = { apiKeys: Revived['apiKeys']; users: { id: string; deletedAt: number }[] };

/** The keys and users that are gone from the database as it is. */
async function goneFrom({ read }: Database): Promise<Gone> {
  if (!(await read.schema.hasTable('retired_api_keys'))) return { apiKeys: [], users: [] };
  return {
    apiKeys: await read('retired_api_keys')
      .select('id', 'name', 'creator_id as creatorId', 'creator_name as creatorName', 'retired_at as revokedAt')
      .orderBy(['retired_at', 'id']),
    users: await read('audit_events')
      .where({ action: 'user.deleted' })
      .groupBy('subject_id')
      .select('subject_id as id', read.raw('max(at) AS "deletedAt"'))
      .orderBy('deletedAt'),
  };
}

/** Those who were gone and are there again. */
async function backAmong({ read }: Database, gone: Gone): Promise<Revived> {
  const keys = new Set<string>();
  for (const ids of inChunks(gone.apiKeys.map(({ id }) => id))) {
    for (const id of await read('api_keys').whereIn('id', ids).pluck('id')) keys.add(id);
  }
  const users = new Map<string, { email: string; name: string }>();
  for (const ids of inChunks(gone.users.map(({ id }) => id))) {
    const rows: { id: string; email: string; name: string }[] = await read('users').select('id', 'email', 'name').whereIn('id', ids);
    for (const { id, ...user } of rows) users.set(id, user);
  }
  return {
    apiKeys: gone.apiKeys.filter(({ id }) => keys.has(id)),
    users: gone.users.flatMap(({ id, deletedAt }) => {
      const user = users.get(id);
      return user ? [{ id, ...user, deletedAt }] : [];
    }),
  };
}

/**
 * In one transaction. `pg_restore --clean` drops only what the backup has, so what a later release added would stay in the way of its
 * migration: the script of pg_restore runs after all has been dropped, as the dump has all of the database in it. A core that starts
 * meanwhile waits for the lock of the migrations.
 */
async function replaceAll(url: string, file: string, own: number): Promise<void> {
  const psql = startPostgresTool(url, 'psql', ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1', '--file=-']);
  const { stdin } = psql.child;
  psql.child.stdout?.resume();
  const done = ended(psql);
  // It is awaited below, once pg_restore has ended.
  done.catch(() => undefined);
  stdin?.write(opening(own));
  const restoring = startPostgresTool(url, 'pg_restore', ['--no-owner', '--file=-', file]);
  if (stdin) restoring.child.stdout?.pipe(stdin, { end: false });
  // Where psql fails, pg_restore would wait for somebody to read on.
  psql.child.once('close', () => restoring.child.kill());
  const failure = await ended(restoring).then(
    () => undefined,
    (error: unknown) => error,
  );
  // Without the COMMIT, all of it is rolled back.
  stdin?.end(failure === undefined ? 'RESET search_path;\nDELETE FROM sessions;\nCOMMIT;\n' : '');
  await done;
  if (failure !== undefined) throw failure;
}

const opening = (own: number) => `BEGIN;
SELECT pg_advisory_xact_lock(27975062105318777) \\g /dev/null
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_stat_activity WHERE ${others(String(own))}) THEN RAISE EXCEPTION 'a core has connected meanwhile'; END IF;
END $$;
DO $$ DECLARE command text; BEGIN
  FOR command IN
    SELECT format('DROP TABLE IF EXISTS %s CASCADE', c.oid::regclass) FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    UNION ALL
    SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', p.oid::regprocedure) FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.prokind = 'f'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
  LOOP EXECUTE command; END LOOP;
END $$;
`;
