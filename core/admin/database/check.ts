import { existsSync, statSync } from 'node:fs';
import type { Command } from 'commander';
import { counted } from '#contract/text/count.ts';
import { timestamp } from '#contract/text/text.ts';
import { findDialerTrouble, readQueue } from '../../domain/calls/dialing.ts';
import { requireTrustedClock } from '../../domain/clock.ts';
import type { Ports } from '../../domain/ports.ts';
import { countUnreadable } from '../../domain/sign-in/second-factor.ts';
import { adminCommand } from '../../program.ts';
import { createSecretBox, missingSecret } from '../../server/sealed-secrets.ts';
import { readConfig } from '../../server/start/config.ts';
import { readSecret, secretFilePath } from '../../server/start/session-secrets.ts';
import { systemRandomness } from '../../server/start/system.ts';
import { countRows, type DatabaseLocation, type Lane } from '../../storage/engine/database.ts';
import { explainDatabaseError } from '../../storage/engine/errors.ts';
import { freeBytes, requireRights } from '../../storage/engine/health.ts';
import { findClusterFaults, findRoleFaults } from '../../storage/engine/postgres/cluster.ts';
import type { Storage } from '../../storage/storage.ts';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';

export function checkCommand(program: Command, { withDatabase }: Runner): void {
  const command = program.command('check').description('check the database for problems; changes nothing');
  withExamples(command, 'check').action(withDatabase(runCheck, 'inspect'));
}

async function runCheck({ storage, location, output, ports }: AdminContext): Promise<boolean> {
  const findings = await lookForProblems(storage, location, ports);
  const ok = findings.every((finding) => finding.ok);
  const lines = findings.map((finding) => `${finding.ok ? 'ok   ' : 'FAIL '}  ${finding.name}: ${finding.detail}`);
  if (findings.filter((finding) => !finding.ok).length > 1) lines.push('Fix the first problem first: the others may come from it.');
  output.answer({ ok, checks: findings }, lines.join('\n'));
  return ok;
}

type Finding = { name: string; ok: boolean; detail: string };

/** Looks for problems that could make a core lose data or let strangers in, in the order in which to fix them. */
async function lookForProblems(storage: Storage, location: DatabaseLocation, ports: Ports): Promise<Finding[]> {
  const { database } = storage;
  const reachable = await attempt('database', async () => {
    await database.read.raw('SELECT 1');
    return location.kind === 'sqlite' ? `connected to ${location.filename}` : 'connected';
  });
  if (!reachable.ok) return [reachable];
  const schema = await attempt('schema', async () => {
    const { missing } = await storage.schema();
    if (missing.length > 0) throw new Error(`missing ${missing.join(', ')}: run ${adminCommand} migrate, or start a core`);
    return 'complete';
  });
  const specific = location.kind === 'sqlite' ? await checkSqlite(database, location.filename) : await checkPostgres(database);
  if (!schema.ok) return [reachable, ...specific, schema];
  const rights = await attempt('rights', () => requireRights(database, location).then(() => 'sufficient'));
  const clock = await attempt('clock', () => requireTrustedClock(ports).then(() => 'plausible'));
  const enabled = database.read('users').whereNull('disabled_at');
  const users = await attempt('users', async () => `${await countRows(enabled)} can sign in`);
  const factors = await checkSecondFactors(ports, location);
  const dialer = await attempt('dialer', () => describeDialer(ports));
  return [reachable, ...specific, rights, schema, clock, users, ...factors, dialer];
}

async function checkSecondFactors(ports: Ports, location: DatabaseLocation): Promise<Finding[]> {
  const secrets = findSessionSecrets(location);
  if (secrets.length === 0) return [];
  const look = async () => {
    const unreadable = await countUnreadable({ ...ports, secretBox: createSecretBox(secrets, systemRandomness) });
    if (unreadable > 0) throw new Error(`${counted(unreadable, 'user')}: ${missingSecret}`);
    return 'can be decrypted with the session secrets';
  };
  return [await attempt('second factors', look)];
}

function findSessionSecrets(location: DatabaseLocation): readonly string[] {
  const { DATABASE_URL, SESSION_SECRETS, SESSION_SECRETS_FILE } = process.env;
  if (SESSION_SECRETS || SESSION_SECRETS_FILE)
    return readConfig({ DATABASE_URL, SESSION_SECRETS, SESSION_SECRETS_FILE }).sessionSecrets ?? [];
  const file = location.kind === 'sqlite' && secretFilePath(location);
  return file && existsSync(file) ? [readSecret(file).secret].filter((secret) => secret !== '') : [];
}

/** Describes the queue of due calls. @throws Error if a running core has recorded that the provider isn't accepting calls */
async function describeDialer(ports: Ports): Promise<string> {
  const trouble = await findDialerTrouble(ports);
  if (trouble) throw new Error(`the provider hasn't accepted a call since ${timestamp(trouble.since)}: ${trouble.reason}`);
  const { due, oldestSeconds } = await readQueue(ports);
  const minutes = Math.floor(oldestSeconds / 60);
  return due === 0 ? 'no calls are due' : `${counted(due, 'due call')}; the oldest has been due for ${counted(minutes, 'minute')}`;
}

async function checkSqlite({ read }: Lane, filename: string): Promise<Finding[]> {
  const integrity = await attempt('integrity', async () => {
    const rows: { quick_check: string }[] = await read.raw('PRAGMA quick_check(5)');
    const complaints = rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
    if (complaints.length > 0) throw new Error(complaints.join('; '));
    const orphans: unknown[] = await read.raw('PRAGMA foreign_key_check');
    if (orphans.length > 0) throw new Error(`${counted(orphans.length, 'row')} with references to rows that don't exist`);
    return 'no problems found';
  });
  const room = await attempt('disk', async () => describeFreeSpace(filename));
  const secretFile = secretFilePath({ kind: 'sqlite', filename });
  const hasSecret = existsSync(secretFile);
  const files = hasSecret ? [filename, secretFile] : [filename];
  return [integrity, room, ...files.map(checkPrivacy), ...(hasSecret ? [checkSecret(secretFile)] : [])];
}

/** In MB. This is enough for a day with many calls, or for a migration. */
const minFreeMegabytes = 256;

function describeFreeSpace(filename: string): string {
  const megabytes = Math.floor((freeBytes({ kind: 'sqlite', filename }) ?? 0) / 1_048_576);
  if (megabytes < minFreeMegabytes) throw new Error(`only ${megabytes} MB of free space for ${filename}: free up some disk space`);
  return `${megabytes} MB of free space`;
}

function checkSecret(file: string): Finding {
  const { fault } = readSecret(file);
  return { name: 'session secret', ok: fault === null, detail: fault ?? 'valid' };
}

function checkPrivacy(file: string): Finding {
  const isPrivate = process.platform === 'win32' || (statSync(file).mode & 0o077) === 0;
  return {
    name: 'privacy',
    ok: isPrivate,
    detail: isPrivate ? `only its owner can read ${file}` : `other users can read ${file}: chmod 600 ${file}`,
  };
}

async function checkPostgres(database: Lane): Promise<Finding[]> {
  const durability = attempt('durability', async () => {
    const risks = await database.risks();
    if (risks.length > 0) throw new Error(risks.join(' '));
    return 'placed calls survive a power failure';
  });
  const primary = attempt('primary', async () => {
    await database.checkWritable();
    return 'connected to the primary';
  });
  const shards = database.shards().length;
  const cluster = attempt('shards', async () => {
    const faults = [...(await findClusterFaults(database)), ...(await findRoleFaults(database))];
    if (faults.length > 0) throw new Error(faults.join('; '));
    return counted(shards, 'shard');
  });
  return Promise.all([durability, primary, ...(shards > 0 ? [cluster] : [])]);
}

async function attempt(name: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { name, ok: true, detail: await look() };
  } catch (error) {
    const { cause = error instanceof Error ? error.message : String(error), remedy = '' } = explainDatabaseError(error) ?? {};
    return { name, ok: false, detail: remedy === '' ? cause : `${cause}. ${remedy}` };
  }
}
