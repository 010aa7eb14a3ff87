import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { Command, CommanderError, Option } from 'commander';
import { userTypes } from '#contract/console.ts';
import * as commands from './admin/commands.ts';
import { type Output, outputTo, stripControls } from './admin/output.ts';
import { ConfigError, readDatabaseLocation, readRetentionDays } from './config.ts';
import { ImportInterrupted } from './domain/import.ts';
import { Problem } from './domain/problem.ts';
import { argon2Passwords } from './passwords.ts';
import { databaseErrorText } from './storage/error-text.ts';
import { isOutage } from './storage/errors.ts';
import { openStorage, type Storage, unobserved } from './storage/index.ts';
import { requireFile } from './storage/sqlite-file.ts';
import { systemClock, systemRandomness } from './system.ts';

const exitCodes = `
Exit codes: 0 done · 1 failed, or something is wrong · 2 wrong usage or input · 3 no such thing · 4 conflict · 5 database not reached

The database is the one that DATABASE_URL names (sqlite:./data/callkey.db by default). A core may be running on it, except for restore.
A database that is named and does not exist yet is made by add, import and migrate. Only migrate brings an older schema up to date.`;

const cancelOption = () => new Option('--cancel-queued-calls', 'also cancel calls that the keys have placed and nobody has dialed yet');
const passwordOption = () => new Option('--password-stdin', 'read the password from standard input, instead of making a one-time password');

function createProgram(): Command {
  const program = new Command('admin')
    .description("The self-hoster's tool, on the machine itself.")
    .option('--json', 'answer with one JSON object')
    .addHelpText('after', exitCodes)
    .showHelpAfterError('(add --help for how it is used)')
    .configureOutput({ writeErr: (text) => process.stderr.write(stripControls(text)) })
    .exitOverride();

  const partner = program.command('partner').description('resellers, who own accounts');
  partner.command('add').argument('<name>').description('add a partner').action(run(commands.partnerAdd, 'one to fill'));

  const account = program.command('account').description('customers, who belong to a partner and own campaigns');
  account
    .command('add')
    .argument('<name>')
    .requiredOption('--partner <id>', 'the partner that it belongs to')
    .description('add an account')
    .action(run(commands.accountAdd, 'one to fill'));

  const campaign = program.command('campaign').description('campaigns of an account');
  campaign
    .command('add')
    .argument('<name>')
    .requiredOption('--account <id>', 'the account that it belongs to')
    .description('add a campaign')
    .action(run(commands.campaignAdd, 'one to fill'));

  const user = program.command('user').description('people who sign in to the console');
  user
    .command('add')
    .argument('<email>')
    .requiredOption('--name <name>', 'as others see it')
    .addOption(new Option('--type <type>', 'what the user may see and do').choices(userTypes).makeOptionMandatory())
    .option('--account <id>', "an account user's account, or the one that a partner user is tied to")
    .option('--partner <id>', "a partner user's partner")
    .addOption(passwordOption())
    .description('add a user')
    .action(run(commands.userAdd, 'one to fill'));
  user.command('list').description('list all users').action(run(commands.userList));
  user
    .command('password')
    .argument('<email>')
    .addOption(passwordOption())
    .description('give a user a new password, and end their sessions')
    .action(run(commands.userPassword));
  user
    .command('delete')
    .argument('<email>')
    .addOption(cancelOption())
    .description('delete a user, with their API keys and sessions')
    .action(run(commands.userDelete));

  const key = program.command('key').description('API keys, of everybody');
  key.command('list').description('list the newest keys').action(run(commands.keyList));
  key
    .command('revoke')
    .argument('<id>')
    .addOption(cancelOption())
    .description('revoke a key: it holds from the very next request on, and cannot be undone')
    .action(run(commands.keyRevoke));

  const session = program.command('session').description('who is signed in');
  session.command('revoke').argument('<email>').description("end all of a user's sessions").action(run(commands.sessionRevoke));

  const retention = program
    .command('retention')
    .description('erasing the contact data of calls that ended long ago (RETENTION_DAYS, 90 by default)');
  retention.command('show').description('how many calls are due').action(run(commands.retentionShow));
  retention.command('run').description('erase them now; a core does it each hour').action(run(commands.retentionRun));

  program
    .command('import')
    .argument('<file>')
    .description('bring partners, accounts, campaigns and users to what a JSON file says, in steps; run again, it does what is missing')
    .action(run(commands.importFile, 'one to fill'));
  program
    .command('backup')
    .argument('<file>')
    .description('write a consistent copy of the database')
    .action(run(commands.backup, 'one as it is'));
  program
    .command('restore')
    .argument('<file>')
    .description(
      'put a backup in the place of the whole database, while no core runs; list the API keys revoked and users deleted since, who live again',
    )
    .action(async (file: string) => {
      const location = readDatabaseLocation(process.env);
      if (location.kind === 'sqlite' && !isDatabaseNamed()) requireFile(location.filename);
      await commands.restoreFile({ location, output: output(), now: systemClock.now().toJSDate() }, file);
    });
  program
    .command('migrate')
    .description('bring the schema up to date, as a core does when it starts')
    .action(run(commands.migrateSchema, 'one to migrate'));
  program
    .command('check')
    .option('--repair', 'count API keys again where the kept counts are wrong')
    .description('look for what is wrong; change nothing unless asked to')
    .action(run(commands.check, 'one as it is'));
  return program;
}

type Run<Input extends unknown[]> = (deps: commands.AdminDeps, ...input: Input) => Promise<unknown>;

/** What a command asks of the database: "one as it is" may have an older schema, or none. */
type On = 'one to fill' | 'one to migrate' | 'one that is there' | 'one as it is';

/** Opens what a command works with, and closes it again. A command that finds something wrong answers false. */
function run<Input extends unknown[]>(command: Run<Input>, on: On = 'one that is there') {
  return async (...input: [...Input, ...unknown[]]): Promise<void> => {
    const location = readDatabaseLocation(process.env);
    const mayMake = (on === 'one to fill' || on === 'one to migrate') && isDatabaseNamed();
    const storage = openStorage(location, systemClock, unobserved, mayMake ? 'make' : 'refuse');
    try {
      if (on === 'one to fill' || on === 'one that is there') await requireSchema(storage, on === 'one to fill');
      const ports = {
        clock: systemClock,
        randomness: systemRandomness,
        passwords: argon2Passwords(systemRandomness),
        throttle: storage.throttle,
        stores: storage.stores,
        onOutcome: () => undefined,
      };
      const retentionDays = readRetentionDays(process.env);
      const deps = { ports, storage, location, output: output(), retentionDays, readInput: () => text(process.stdin), pauseImport };
      // Commander adds the command itself after a command's own arguments and options.
      if ((await command(deps, ...(input.slice(0, -1) as Input))) === false) process.exitCode = 1;
    } finally {
      await storage.close();
    }
  };
}

/** A migration can take long and cannot be undone: none happens on the way to something else. */
async function requireSchema(storage: Storage, mayFill: boolean): Promise<void> {
  const { isEmpty, missing } = await storage.schema();
  if (missing.length === 0) return;
  if (!isEmpty) {
    const what = `The schema of the database is behind this program (it lacks ${missing.join(', ')}).`;
    throw new Problem('conflict', `${what} Make a backup, then run: npm run admin -- migrate`);
  }
  if (!mayFill) throw new Problem('conflict', 'The database is empty. Check DATABASE_URL, or run: npm run admin -- migrate');
  await storage.migrate();
}

const interruption: { by?: NodeJS.Signals } = {};

/**
 * SQLite's lock is not fair: after a while, who waits for it looks only every 100 ms. Without a pause as long, the next step would take
 * it again before a running core has looked. An import that is interrupted ends between two steps, and shows the passwords it has made.
 */
async function pauseImport(): Promise<void> {
  if (process.listenerCount('SIGINT') === 0) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => Object.assign(interruption, { by: signal }));
  }
  await setTimeout(120);
  if (interruption.by) throw new Error(`${interruption.by} was received.`);
}

/** A forgotten DATABASE_URL must not end in a second database, which the core knows nothing of. */
function isDatabaseNamed(): boolean {
  return (process.env['DATABASE_URL'] ?? '') !== '';
}

function output(): Output {
  return outputTo(process, program.opts<{ json?: true }>().json ?? false);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ConfigError) return 2;
  if (!(error instanceof Problem)) return 1;
  if (error.code === 'invalid') return 2;
  if (error.status === 404) return 3;
  if (error.status === 409) return 4;
  return error.status === 503 ? 5 : 1;
}

/** One line for a person: what went wrong, and why. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof ImportInterrupted) {
    return `The import stopped on the way (${textOf(error.cause)}) What is shown above is in the database: run it again for the rest.`;
  }
  if (error instanceof Problem && !isOutage(error.cause)) return error.message;
  const cause = databaseErrorText(error);
  return cause === undefined ? error.message : `The database cannot be reached or written: ${cause}.`;
}

// Whoever reads the answer may stop reading: `admin user list | head -1`.
process.stdout.on('error', () => process.exit());

const program = createProgram();
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
  // Commander has said its own already.
  if (!(error instanceof CommanderError)) output().note(`error: ${textOf(error)}`);
}
