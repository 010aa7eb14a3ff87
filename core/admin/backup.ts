import { closeSync, openSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { auditEvent } from '../domain/audit.ts';
import { codeOf } from '../domain/error-code.ts';
import { Problem } from '../domain/problem.ts';
import type { Database } from '../storage/database.ts';
import { explainDatabaseError } from '../storage/error-text.ts';
import type { AdminContext, Runner } from './context.ts';
import { flushToDisk } from './flush.ts';
import { withExamples } from './help.ts';
import { ended, ownSchema, startPostgresTool } from './postgres-tools.ts';

export function backupCommand(program: Command, { withDatabase }: Runner): void {
  const command = program.command('backup').argument('<file>').description('write a consistent copy of the database, while cores work on');
  withExamples(command, 'backup /backups/callkey-2026-11-22.db').action(withDatabase(runBackup, 'inspect'));
}

async function runBackup(context: AdminContext, path: string): Promise<void> {
  const { storage, location, output, fileOf } = context;
  const file = fileOf(path);
  createFile(file);
  try {
    if (location.kind === 'sqlite') await storage.database.read.raw('VACUUM INTO ?', [file]);
    else await dump(storage.database, location.url, file);
    flushToDisk(file);
  } catch (error) {
    rmSync(file, { force: true });
    const explained = explainDatabaseError(error);
    throw explained ? new Error(`The backup ${file} cannot be made: ${explained.cause}. ${explained.remedy}`.trimEnd()) : error;
  }
  const recorded = await record(context, file);
  output.answer({ backup: { file }, recorded }, recorded ? `Wrote ${file}.` : `Wrote ${file}. The database could not record that.`);
}

/** From its audit event a core tells the age of the last backup. A database of an older schema, or a read-only one, takes no event. */
async function record({ storage, ports, actor }: AdminContext, file: string): Promise<boolean> {
  try {
    if ((await storage.schema()).missing.length > 0) return false;
    const subject = { kind: 'backup', id: ports.randomness.id(), name: basename(file) } as const;
    await ports.stores.activity.record(auditEvent(ports, actor, 'backup.created', subject, null));
    return true;
  } catch {
    return false;
  }
}

/** @throws Problem `conflict` rather than to write over a file */
function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw new Problem('conflict', `The file ${file} exists already. Give another name, or move it away.`);
    throw new Problem('invalid', `${file} cannot be written: ${explainDatabaseError(error)?.cause ?? String(error)}.`);
  }
}

/** In the format of PostgreSQL's own tool, which `pg_restore` reads. Others may have schemas in the same database. */
async function dump(database: Database, url: string, file: string): Promise<void> {
  // In quotes it is a name; otherwise a pattern.
  const quoted = `"${(await ownSchema(database)).replaceAll('"', '""')}"`;
  await ended(startPostgresTool(url, 'pg_dump', ['--format=custom', `--schema=${quoted}`, `--file=${file}`]));
}
