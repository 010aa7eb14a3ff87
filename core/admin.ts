import { text } from 'node:stream/consumers';
import { Command, CommanderError } from 'commander';
import { UnreadableFile } from '#contract/files/text-file.ts';
import { expandHelp } from '#contract/text/shell.ts';
import { stripControls } from '#contract/text/terminal-text.ts';
import { restoreTlsChecks, tlsChecksWarning } from '#contract/tls-checks.ts';
import { auditCommands } from './admin/audit.ts';
import type { Access, AdminContext, Settings } from './admin/command-line.ts';
import { type Output, oneLine, outputTo, toOperator } from './admin/command-line.ts';
import { contactCommands } from './admin/contact.ts';
import { backupCommand } from './admin/database/backup.ts';
import { checkCommand } from './admin/database/check.ts';
import { clockCommands } from './admin/database/clock.ts';
import { migrateCommand } from './admin/database/migrate.ts';
import { restoreCommand } from './admin/database/restore.ts';
import { retentionCommands } from './admin/database/retention.ts';
import { shardCommands } from './admin/database/shards.ts';
import { dialerCommands } from './admin/dialer.ts';
import { contactLimitsCommands, dialingCommands } from './admin/dialing.ts';
import { directoryCommands } from './admin/directory.ts';
import { doNotCallCommands } from './admin/do-not-call.ts';
import { resolveCallerFile } from './admin/files.ts';
import { importCommand } from './admin/import.ts';
import { keyCommands } from './admin/key.ts';
import { portsWithoutCore } from './admin/ports.ts';
import { callingHoursCommands, numbersCommands } from './admin/rules.ts';
import { sessionCommands, userCommands } from './admin/user.ts';
import { ImportInterrupted } from './domain/directory/import.ts';
import { Problem } from './domain/problem.ts';
import { adminCommand, adminName, version } from './program.ts';
import { ConfigError, readDatabaseLocation, readMaxActiveKeys, readRetentionDays } from './server/start/config.ts';
import { systemClock } from './server/start/system.ts';
import { databaseErrorText } from './storage/engine/errors.ts';
import { openStorage, type Storage, unobserved } from './storage/storage.ts';

const notes = `
Exit codes: 0 success · 1 failure, or check found a problem · 2 usage error or invalid input · 3 not found · 4 conflict · 5 database unreachable

Set DATABASE_URL to choose the database (default: sqlite:./data/callkey.db). Cores can keep running, except during restore and shards create.
The create, import and migrate commands create the database that DATABASE_URL names, but never the default one. Only migrate updates an older schema.`;

function createProgram(): Command {
  const program = new Command(adminName)
    .description('Manage a self-hosted Callkey server from the server itself.')
    .version(version, '--version', 'show the version')
    .option('--json', 'print the result, including errors, as one JSON object')
    .addHelpText('after', notes)
    .showHelpAfterError('(run with --help for usage)')
    .configureOutput({ writeErr: (message) => asJson || process.stderr.write(stripControls(message)) })
    .exitOverride();
  const groups = [
    ...[directoryCommands, userCommands, keyCommands, sessionCommands, contactCommands, doNotCallCommands, callingHoursCommands],
    ...[numbersCommands, retentionCommands, auditCommands, clockCommands, dialerCommands, dialingCommands, contactLimitsCommands],
    ...[importCommand, backupCommand, restoreCommand, migrateCommand, shardCommands, checkCommand],
  ];
  for (const add of groups) add(program, { withDatabase, withoutDatabase });
  return program;
}

function withDatabase<Input extends unknown[]>(run: (context: AdminContext, ...input: Input) => Promise<unknown>, access: Access = 'use') {
  return withoutDatabase((settings, ...input: Input) => useDatabase(settings, access, (context) => run(context, ...input)));
}

async function useDatabase<Result>(settings: Settings, access: Access, use: (context: AdminContext) => Promise<Result>): Promise<Result> {
  const mayCreate = (access === 'fill' || access === 'migrate') && settings.isDatabaseNamed;
  const storage = openStorage(settings.location, systemClock, unobserved, mayCreate ? 'make' : 'refuse');
  try {
    if (access === 'use' || access === 'fill') await requireSchema(storage, access === 'fill');
    return await use(createContext(settings, storage));
  } finally {
    await storage.close();
  }
}

function withoutDatabase<Input extends unknown[]>(run: (settings: Settings, ...input: Input) => Promise<unknown>) {
  return async (...input: Input): Promise<void> => {
    if ((await run(readSettings(), ...input)) === false) process.exitCode = 1;
  };
}

function readSettings(): Settings {
  const isDatabaseNamed = ['DATABASE_URL', 'DATABASE_URL_FILE'].some((name) => (process.env[name] ?? '').trim() !== '');
  const settings: Settings = {
    location: readDatabaseLocation(process.env),
    isDatabaseNamed,
    output,
    resolveFile: (path) => resolveCallerFile(process.env, path),
    useDatabase: (use) => useDatabase(settings, 'use', use),
  };
  return settings;
}

function createContext(settings: Settings, storage: Storage): AdminContext {
  return {
    ...settings,
    ports: {
      ...portsWithoutCore(storage),
      serverName: URL.parse(process.env['PUBLIC_URL'] ?? '')?.hostname ?? '',
      maxActiveKeys: readMaxActiveKeys(process.env),
    },
    storage,
    caller: toOperator(process.env),
    configuredDays: readRetentionDays(process.env),
    readInput: () => text(process.stdin),
  };
}

/** Requires a complete schema. A migration may take long and can't be undone, so no command migrates as a side effect. */
async function requireSchema(storage: Storage, mayFill: boolean): Promise<void> {
  const { isEmpty, missing } = await storage.schema();
  if (missing.length === 0) return;
  if (!isEmpty) {
    const what = `The database schema is out of date (missing ${missing.join(', ')}).`;
    throw new Problem('conflict', `${what} Back up the database, then run: ${adminCommand} migrate`);
  }
  if (!mayFill) throw new Problem('conflict', `The database is empty. Check DATABASE_URL, or run: ${adminCommand} migrate`);
  await storage.migrate();
}

/** The exit codes of problems by their status. All others have 1. */
const exitCodes: Readonly<Record<number, number>> = { 404: 3, 409: 4, 503: 5 };

/** @returns `code`, for programs, is a problem's code, `usage`, `configuration`, or `failed` for everything else */
function toFailure(error: unknown): { exitCode: number; code: string; message: string } {
  if (error instanceof CommanderError) {
    const isMissing = error.code === 'commander.help';
    const message = isMissing ? 'Missing command. For a list of commands, run with --help.' : error.message.replace(/^error: /, '');
    return { exitCode: error.exitCode === 0 ? 0 : 2, code: 'usage', message };
  }
  if (error instanceof ConfigError) return { exitCode: 2, code: 'configuration', message: error.message };
  if (error instanceof UnreadableFile) return { exitCode: 2, code: 'invalid', message: oneLine(error.message) };
  if (error instanceof ImportInterrupted) {
    const message = `The import stopped before it finished: ${toFailure(error.cause).message} Everything counted above was imported. Run the import again to finish.`;
    return { exitCode: 1, code: 'failed', message };
  }
  if (!(error instanceof Error)) return { exitCode: 1, code: 'failed', message: String(error) };
  const message = databaseErrorText(error, readDatabaseLocation(process.env)) ?? error.message;
  if (!(error instanceof Problem)) return { exitCode: 1, code: 'failed', message };
  return { exitCode: error.code === 'invalid' ? 2 : (exitCodes[error.status] ?? 1), code: error.code, message };
}

// Without a listener, the error would end the process. `answer` handles it.
process.stdout.on('error', () => undefined);

// Look at the arguments, because some of Commander's errors occur before it has read all options.
const asJson = process.argv.includes('--json');
const output: Output = outputTo(process, asJson);
if (restoreTlsChecks(process.env) && !asJson) process.stderr.write(`${tlsChecksWarning}\n`);
try {
  await createProgram().parseAsync(expandHelp(process.argv.slice(2)), { from: 'user' });
} catch (error) {
  const { exitCode, code, message } = toFailure(error);
  process.exitCode = exitCode;
  // Commander has already shown its own errors, and a request for help isn't an error.
  const isShown = error instanceof CommanderError && (!asJson || error.exitCode === 0);
  if (!isShown) output.error(code, message);
}
