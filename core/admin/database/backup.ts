import { randomUUID } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  createWriteStream,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { Knex } from 'knex';
import { pageUrl } from '#contract/pages.ts';
import { auditEvent } from '../../domain/audit/audit.ts';
import { errorCode, Problem } from '../../domain/problem.ts';
import { adminCommand } from '../../program.ts';
import { flushToDisk, giveName } from '../../server/start/session-secrets.ts';
import type { Lane } from '../../storage/engine/database.ts';
import { explainDatabaseError } from '../../storage/engine/errors.ts';
import { schemaState } from '../../storage/migrate.ts';
import type { Storage } from '../../storage/storage.ts';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';
import { ownSchema, ownTableList, quoted, requireSameServer, startPostgresTool, waitForTool } from './postgres-tools.ts';
import { openSqliteFile } from './restore-sqlite.ts';

export function backupCommand(program: Command, { withDatabase }: Runner): void {
  const command = program.command('backup <file>').description('write a consistent copy of the database; cores can keep running');
  withExamples(command, 'backup /backups/callkey-2026-11-22.db').action(withDatabase(runBackup, 'inspect'));
}

async function runBackup(context: AdminContext, path: string): Promise<void> {
  const { storage, location, output, resolveFile } = context;
  const file = resolveFile(path);
  refuseExisting(file);
  if (location.kind === 'postgres') await refuseShards(storage);
  const unfinished = findUnfinished(file);
  const partial = `${file}.unfinished-${randomUUID().slice(0, 8)}`;
  createFile(partial);
  try {
    if (location.kind === 'sqlite') await copyDatabase(storage.database, location.filename, partial);
    else await dump(storage.database, location.url, partial);
    flushToDisk(partial);
    if (!giveName(partial, file)) refuseExisting(file);
    flushToDisk(dirname(file));
  } catch (error) {
    const explained = explainDatabaseError(error);
    throw explained ? new Error(`Couldn't create the backup ${file}: ${explained.cause}. ${explained.remedy}`.trimEnd()) : error;
  } finally {
    for (const suffix of ['', ...companions]) rmSync(`${partial}${suffix}`, { force: true });
  }
  const recorded = await record(context, file);
  const lines = [recorded ? `Wrote ${file}.` : `Wrote ${file}, but couldn't record the backup in the database.`];
  for (const other of unfinished)
    lines.push(`${other} belongs to a backup that was killed or is still running. If no backup is running, delete this file.`);
  output.answer({ backup: { file }, recorded, unfinished }, lines.join('\n'));
}

/** The files that belong to an unfinished backup. */
const companions = ['-journal', '-source', '-source-wal', '-source-shm'];

async function refuseShards(storage: Storage): Promise<void> {
  // Read the schema to find the shards. Ignore that it's newer, because a newer database can be backed up, too.
  await storage.schema().catch((error) => {
    if (!(error instanceof Problem && error.code === 'conflict')) throw error;
  });
  if (storage.database.shards().length === 0) return;
  const why = "A copy of a database with shards wouldn't be consistent.";
  throw new Problem('conflict', `${why} Back up its nodes instead: see ${pageUrl('core/docs/scaling.md#back-up')}`);
}

/** Copies a SQLite database, and checks the copy. On a read-only disk, SQLite can't open one, because it can't create the WAL's index. */
async function copyDatabase({ read }: Lane, filename: string, file: string): Promise<void> {
  if (!isOnReadOnlyDisk(filename)) await read.raw('VACUUM INTO ?', [file]);
  else {
    copyUnchanged(filename, `${file}-source`);
    await useFile(`${file}-source`, (source) => source.raw('VACUUM INTO ?', [file]));
  }
  const [health]: { quick_check: string }[] = await useFile(file, (copy) => copy.raw('PRAGMA quick_check(1)'));
  if (health?.quick_check !== 'ok') throw new Error(`The copy is damaged: ${health?.quick_check}. Run ${adminCommand} check.`);
}

async function useFile<Result>(filename: string, use: (database: Knex) => Promise<Result>): Promise<Result> {
  const database = openSqliteFile(filename);
  return use(database).finally(() => database.destroy());
}

function isOnReadOnlyDisk(filename: string): boolean {
  try {
    accessSync(dirname(filename), constants.W_OK);
    return false;
  } catch (error) {
    return errorCode(error) === 'EROFS';
  }
}

/** Copies a database and its WAL. @throws Problem `conflict` if a core is writing to them, through another mount of the same disk */
function copyUnchanged(from: string, to: string): void {
  const files = ['', '-wal'].filter((suffix) => existsSync(`${from}${suffix}`));
  const look = () =>
    files.map((suffix) => {
      const { mtimeNs, size } = statSync(`${from}${suffix}`, { bigint: true });
      return `${mtimeNs} ${size}`;
    });
  const before = look();
  for (const suffix of files) {
    copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
    chmodSync(`${to}${suffix}`, 0o600);
  }
  if (look().join() !== before.join())
    throw new Problem('conflict', `A core is writing to ${from}. Run the backup where the disk isn't mounted read-only.`);
}

/** Finds unfinished backups' files. A backup has another name until it's complete, so that it's never mistaken for a complete one. */
function findUnfinished(file: string): string[] {
  try {
    const names = readdirSync(dirname(file)).filter((name) => /\.unfinished-[0-9a-f]{8}(-journal|-source(-wal|-shm)?)?$/.test(name));
    return names.map((name) => join(dirname(file), name));
  } catch {
    // Ignore the error, because creating a file in that folder will report it.
    return [];
  }
}

/** Records an audit event, from which the core computes the latest backup's age. An older or read-only database can't store it. */
async function record({ storage, ports, caller: { actor } }: AdminContext, file: string): Promise<boolean> {
  try {
    if ((await storage.schema()).missing.length > 0) return false;
    const subject = { kind: 'backup', id: ports.randomness.id(), name: basename(file) } as const;
    await ports.stores.activity.record(auditEvent(ports, actor, 'backup.created', subject, null));
    return true;
  } catch {
    return false;
  }
}

function refuseExisting(file: string): void {
  if (!lstatSync(file, { throwIfNoEntry: false })) return;
  throw new Problem('conflict', `The file ${file} already exists. Choose another name, or move the file.`);
}

function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    throw new Problem('invalid', `Couldn't write ${file}: ${explainDatabaseError(error)?.cause ?? String(error)}.`);
  }
}

/** Writes a dump for `pg_restore`, with only Callkey's tables, because the database may also contain those of other programs. */
async function dump(database: Lane, url: string, file: string): Promise<void> {
  await requireSameServer(database, url);
  const schema = await ownSchema(database);
  const args = [...(await chooseSchema(database, schema)), ...(await excludeOtherObjects(database, schema))];
  const tool = startPostgresTool(url, 'pg_dump', ['--format=custom', ...args]);
  // Pipe the output through this process, so that pg_dump fails at its next write if this process is killed. Otherwise, pg_dump would keep
  // its locks and block migrations.
  await Promise.all([waitForTool(tool), pipeline(tool.child.stdout, createWriteStream(file, { flags: 'r+' }))]);
  // Reads all of the dump, and writes it nowhere.
  await waitForTool(startPostgresTool(url, 'pg_restore', ['--file=/dev/null', file]));
}

/** Selects what to dump. With `--schema=public`, `pg_restore` would create the schema `public`, which every database already has. */
async function chooseSchema(database: Lane, schema: string): Promise<string[]> {
  if (schema !== 'public') return [`--schema=${quoted(schema)}`];
  const others = await database.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace WHERE nspname <> 'public' AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'`,
  );
  const exclusions = others.map(({ name }) => `--exclude-schema=${quoted(name)}`);
  // Name one extension, because pg_dump then excludes all others. Every database has this one, and it's never dumped.
  return [...exclusions, '--extension=plpgsql', '-B', '--no-publications', '--no-subscriptions'];
}

async function excludeOtherObjects(database: Lane, schema: string): Promise<string[]> {
  // Another release may have tables that this program doesn't know.
  const isCurrent = await schemaState(database).then(
    ({ missing }) => missing.length === 0,
    () => false,
  );
  if (!isCurrent) return [];
  const others = await database.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = quote_ident(current_schema())::regnamespace
       AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname NOT IN (${ownTableList})`,
  );
  return others.map(({ name }) => `--exclude-table=${quoted(schema)}.${quoted(name)}`);
}
