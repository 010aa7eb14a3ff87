import { existsSync, statSync } from 'node:fs';
import type { Database, DatabaseLocation } from '../storage/database.ts';
import { databaseErrorText } from '../storage/error-text.ts';
import type { Storage } from '../storage/index.ts';
import { countWrongCounts, repairCounts } from '../storage/key-counts.ts';

export type Finding = { name: string; ok: boolean; detail: string };

/** Looks for what would make a core lose something or let somebody in. Changes nothing but what is to be repaired. */
export async function findings(storage: Storage, location: DatabaseLocation, repair: boolean): Promise<Finding[]> {
  const { database } = storage;
  const reachable = await attempt('database', async () => {
    await database.read.raw('SELECT 1');
    return 'answers';
  });
  if (!reachable.ok) return [reachable];
  const schema = await attempt('schema', async () => {
    const { missing } = await storage.schema();
    if (missing.length > 0) throw new Error(`lacks ${missing.join(', ')}: run npm run admin -- migrate, or start a core`);
    return 'is complete';
  });
  const users = schema.ok ? [await attempt('users', async () => `${await storage.stores.users.count()} can sign in`)] : [];
  const tallies = schema.ok ? [await attempt('tallies', () => recount(database, repair))] : [];
  const particular = location.kind === 'sqlite' ? await sqliteFindings(database, location.filename) : await postgresFindings(database);
  return [reachable, schema, ...users, ...tallies, ...particular];
}

/** How many keys there are is kept beside them, and counted here one by one. */
async function recount(database: Database, repair: boolean): Promise<string> {
  const wrong = await countWrongCounts(database);
  if (wrong === 0) return 'agree with the API keys';
  if (!repair) throw new Error(`${wrong} kept counts of API keys are wrong: run npm run admin -- check --repair`);
  await repairCounts(database);
  return `counted again: ${wrong} kept counts of API keys were wrong`;
}

async function sqliteFindings({ read }: Database, filename: string): Promise<Finding[]> {
  const integrity = await attempt('integrity', async () => {
    const rows: { quick_check: string }[] = await read.raw('PRAGMA quick_check(5)');
    const complaints = rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
    if (complaints.length > 0) throw new Error(complaints.join('; '));
    const orphans: unknown[] = await read.raw('PRAGMA foreign_key_check');
    if (orphans.length > 0) throw new Error(`${orphans.length} rows refer to nothing`);
    return 'holds';
  });
  const files = [filename, `${filename}.session-secret`].filter((file) => existsSync(file));
  return [integrity, ...files.map(privacyOf)];
}

function privacyOf(file: string): Finding {
  const isPrivate = process.platform === 'win32' || (statSync(file).mode & 0o077) === 0;
  return {
    name: 'privacy',
    ok: isPrivate,
    detail: isPrivate ? `${file} is its owner's alone` : `${file} can be read by others: chmod 600 ${file}`,
  };
}

/** The server's settings under which an answered call outlives a power cut. `synchronous_commit` is set by each connection. */
async function postgresFindings({ read }: Database): Promise<Finding[]> {
  const durability = ['fsync', 'full_page_writes'].map((setting) =>
    attempt(setting, async () => {
      const { rows }: { rows: { value: string }[] } = await read.raw('SELECT current_setting(?) AS value', [setting]);
      if (rows[0]?.value !== 'on') throw new Error('is off on the server: placed calls may be lost in a power cut. Turn it on');
      return 'is on';
    }),
  );
  const primary = attempt('primary', async () => {
    const { rows }: { rows: { standby: boolean }[] } = await read.raw('SELECT pg_is_in_recovery() AS standby');
    if (rows[0]?.standby) throw new Error('this is a standby: give the address of the primary');
    return 'is the primary';
  });
  return Promise.all([...durability, primary]);
}

async function attempt(name: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { name, ok: true, detail: await look() };
  } catch (error) {
    return { name, ok: false, detail: databaseErrorText(error) ?? (error instanceof Error ? error.message : String(error)) };
  }
}
