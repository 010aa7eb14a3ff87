import { chownSync, constants, copyFileSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import knex, { type Knex } from 'knex';
import { Problem } from '../../domain/problem.ts';
import { adminCommand } from '../../program.ts';
import { flushToDisk, giveName } from '../../server/start/session-secrets.ts';
import { quiet } from '../../storage/engine/database.ts';
import { explainDatabaseError, isLocked } from '../../storage/engine/errors.ts';
import { migrationsTable } from '../../storage/engine/tables.ts';
import { isCurrent } from '../../storage/migrate.ts';
import { findRevived, missingMigrations, nothing, type RestoreResult, type Revived, readGone } from './restore-result.ts';

/** Companion files. SQLite would apply the replaced database's first three to the restored one. With the fourth, cores don't start. */
const companions = ['-wal', '-shm', '-journal', '-overwritten'];

export async function restoreSqlite(filename: string, file: string, now: Date): Promise<RestoreResult> {
  const target = existsSync(filename) ? realpathSync(filename) : filename;
  refuseLiveFile(file, target);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '');
  const copy = `${target}.restoring-${stamp}-${process.pid}`;
  try {
    copyFileSync(file, copy, constants.COPYFILE_EXCL);
    await chmod(copy, 0o600);
    const missing = await prepare(copy, file);
    copyOwner(copy, existsSync(target) ? target : dirname(target));
    flushToDisk(copy);
    const before = toUnusedName(`${target}.before-restore-${stamp}`);
    const replaced = existsSync(target) ? await replace(target, copy, before) : place(target, copy, before);
    return { ...replaced, missing };
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Error(`Couldn't put the backup in place: ${explainDatabaseError(error)?.cause ?? String(error)}.`);
  } finally {
    for (const suffix of ['', ...companions]) rmSync(`${copy}${suffix}`, { force: true });
  }
}

/** Adds a number if an earlier restore in the same second has used the name. */
function toUnusedName(name: string): string {
  const isUsed = (each: string) => ['', ...companions].some((suffix) => existsSync(`${each}${suffix}`));
  let unused = name;
  for (let n = 2; isUsed(unused); n++) unused = `${name}-${n}`;
  return unused;
}

function refuseLiveFile(file: string, target: string): void {
  if (!existsSync(file)) throw new Problem('invalid', `${file} doesn't exist. Specify the path of a backup.`);
  if (!statSync(file).isFile()) throw new Problem('invalid', `${file} isn't a file. Specify the path of a backup.`);
  if (existsSync(target) && realpathSync(file) === realpathSync(target))
    throw new Problem('invalid', `${file} is the database itself. Specify the path of a backup.`);
  const live = ['-wal', '-journal'].find((suffix) => existsSync(`${file}${suffix}`) && statSync(`${file}${suffix}`).size > 0);
  if (live)
    throw new Problem(
      'invalid',
      `${file}${live} exists, so ${file} is a database in use, not a backup. To create a backup, run ${adminCommand} backup.`,
    );
}

/** Checks and prepares the copy of a backup. @returns the migrations that the backup doesn't have yet */
async function prepare(copy: string, file: string): Promise<string[]> {
  const database = openSqliteFile(copy);
  try {
    const [health]: { quick_check: string }[] = await database.raw('PRAGMA quick_check(1)');
    if (health?.quick_check !== 'ok') throw new Problem('invalid', `${file} is damaged: ${health?.quick_check}. Restore another backup.`);
    // The check above doesn't notice if the file is truncated within an empty last page.
    const [page]: { page_size: number }[] = await database.raw('PRAGMA page_size');
    if (page && statSync(file).size % page.page_size !== 0) throw new Problem('invalid', `${file} is truncated. Restore another backup.`);
    const missing = missingMigrations(await readApplied(database), file);
    await database.raw('PRAGMA journal_mode = DELETE');
    await database('sessions').delete();
    return missing;
  } catch (error) {
    const explained = explainDatabaseError(error);
    throw explained ? new Problem('invalid', `Couldn't restore ${file}: ${explained.cause}.`) : error;
  } finally {
    await database.destroy();
  }
}

/** Moves the copy into place. A deleted database may have left its companion files behind. */
function place(target: string, copy: string, before: string): Omit<RestoreResult, 'missing'> {
  moveCompanions(target, before);
  if (!giveName(copy, target)) throw inUseError(target);
  flushToDisk(dirname(target));
  return { before: null, revived: nothing };
}

async function replace(target: string, copy: string, before: string): Promise<Omit<RestoreResult, 'missing'>> {
  const database = openSqliteFile(target);
  try {
    const revived = await lock(database, copy, target);
    giveName(target, before);
    moveCompanions(target, before);
    // A rename replaces the file in one step, so a core that starts now finds either the old or the new database.
    renameSync(copy, target);
    flushToDisk(dirname(target));
    return { before, revived };
  } finally {
    await database.destroy();
  }
}

/**
 * Locks the database, so that no other connection can use it until this one is closed. SQLite leaves WAL mode only if no other connection
 * has the file open, and then writes the WAL back to the file. Outside WAL mode, an exclusive transaction also keeps readers out.
 *
 * @returns null if the database can't be read, because a damaged database is a reason to restore
 */
async function lock(database: Knex, copy: string, target: string): Promise<Revived | null> {
  try {
    await database.raw('ATTACH ? AS backup', [copy]);
    await database.raw('PRAGMA busy_timeout = 1000');
    await database.raw('PRAGMA main.journal_mode = DELETE');
    await database.raw('BEGIN EXCLUSIVE');
    const [mode]: { journal_mode: string }[] = await database.raw('PRAGMA main.journal_mode');
    if (mode?.journal_mode !== 'delete') throw inUseError(target);
    return await compare(database);
  } catch (error) {
    if (isLocked(error)) throw inUseError(target);
    if (error instanceof Problem || explainDatabaseError(error) === undefined) throw error;
    return null;
  }
}

function inUseError(target: string): Problem {
  return new Problem('conflict', `${target} is in use. Stop the core and any other program that has it open, then restore again.`);
}

/** @returns null if the replaced database has another schema, so what happened in it is unknown */
async function compare(database: Knex): Promise<Revived | null> {
  const applied = await readApplied(database);
  if (applied.length === 0) return nothing;
  return isCurrent(applied) ? findRevived(await readGone(database), (table) => database(`backup.${table}`)) : null;
}

async function readApplied(database: Knex): Promise<string[]> {
  return (await database.schema.hasTable(migrationsTable)) ? database(migrationsTable).pluck('name') : [];
}

function moveCompanions(target: string, before: string): void {
  for (const suffix of companions) if (existsSync(`${target}${suffix}`)) renameSync(`${target}${suffix}`, `${before}${suffix}`);
}

/** Copies the file's owner, because the core's own user must be able to open a file that root has restored. */
function copyOwner(copy: string, like: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(like);
  chownSync(copy, uid, gid);
}

/** Opens a single connection without the core's settings, because they would change the file. */
export function openSqliteFile(filename: string): Knex {
  return knex({
    client: 'sqlite3',
    connection: { filename, flags: ['OPEN_READWRITE'] },
    useNullAsDefault: true,
    compileSqlOnError: false,
    log: quiet,
    pool: { min: 1, max: 1 },
  });
}
