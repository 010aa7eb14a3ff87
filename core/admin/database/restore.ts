import type { Command } from 'commander';
import { timestamp } from '#contract/text/text.ts';
import { describeLimits, revokeApiKeys } from '../../domain/api-keys.ts';
import { readableEmail } from '../../domain/directory/readable-email.ts';
import { deleteUser, disableUser } from '../../domain/directory/users.ts';
import { adminCommand } from '../../program.ts';
import { systemClock } from '../../server/start/system.ts';
import { inChunks } from '../../storage/engine/database.ts';
import { databaseErrorText } from '../../storage/engine/errors.ts';
import { requireFile } from '../../storage/engine/sqlite/sqlite-file.ts';
import { type AdminContext, type Runner, type Settings, shortName, table, withExamples } from '../command-line.ts';
import { cancelMarked } from '../key.ts';
import { findUser } from '../user.ts';
import { restorePostgres } from './restore-postgres.ts';
import type { RestoreResult, Revived, RevivedKey } from './restore-result.ts';
import { describeChanges, reduceAgain } from './restore-rights.ts';
import { restoreSqlite } from './restore-sqlite.ts';

export function restoreCommand(program: Command, { withoutDatabase }: Runner): void {
  const command = program
    .command('restore <file>')
    .description(
      'replace the database with a backup; stop all cores first. Lists the revoked keys, the deleted or disabled users, and the reduced rights that the backup brings back',
    );
  command.option('--revoke-again', 'revoke these keys again, delete or disable these users again, and reduce these rights again');
  withExamples(command, 'restore /backups/callkey-2026-11-22.db', 'restore /backups/callkey-2026-11-22.db --revoke-again').action(
    withoutDatabase(runRestore),
  );
}

/** Replaces a database that no core uses, completely or not at all. Omits sessions, which would undo sign-outs and password resets. */
async function runRestore(settings: Settings, path: string, { revokeAgain = false }: { revokeAgain?: boolean }): Promise<boolean> {
  const { location, isDatabaseNamed, output, resolveFile } = settings;
  const file = resolveFile(path);
  if (location.kind === 'sqlite' && !isDatabaseNamed) requireFile(location.filename);
  const restored =
    location.kind === 'sqlite'
      ? await restoreSqlite(location.filename, file, new Date(systemClock.now()))
      : await restorePostgres(location.url, file);
  const { before, revived, missing } = restored;
  const canRevoke = revokeAgain && revived !== null && missing.length === 0;
  const failure = canRevoke ? await settings.useDatabase((context) => revokeAll(context, revived)).then(() => null, toError) : null;
  const isRevokedAgain = canRevoke && failure === null;
  const shown = revived && toReadable(revived);
  const json = {
    restored: { file, before, missing },
    revokedAgain: isRevokedAgain,
    revokedApiKeys: shown?.apiKeys.map(keyJson) ?? null,
    deletedUsers: shown?.users.map(({ deletedAt, areCallsDue, ...user }) => ({ ...user, deletedAt: timestamp(deletedAt) })) ?? null,
    changedUsers: shown?.widened.users.map(({ was, ...user }) => user) ?? null,
    limitedApiKeys: shown?.widened.keys ?? null,
    disabledUsers: shown?.enabled.map(({ disabledAt, ...user }) => ({ ...user, disabledAt: timestamp(disabledAt) })) ?? null,
  };
  // Show the list in any case: it comes from the replaced database, so a second restore couldn't show it again.
  output.answer(json, formatResult(file, { ...restored, revived: shown }, isRevokedAgain));
  if (failure) {
    const reason = databaseErrorText(failure, location) ?? failure.message;
    output.error('failed', `Couldn't revoke everything again, so do the rest of the list yourself before you start a core: ${reason}`);
  }
  return isRevokedAgain || !revokeAgain;
}

/** Makes the addresses readable, for what is shown. */
function toReadable({ apiKeys, users, enabled, widened }: Revived): Revived {
  const readable = <User extends { email: string }>(user: User): User => ({ ...user, email: readableEmail(user.email) });
  return {
    apiKeys,
    users: users.map(readable),
    enabled: enabled.map(readable),
    widened: { ...widened, users: widened.users.map(readable) },
  };
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

async function revokeAll(context: AdminContext, { apiKeys, users, enabled, widened }: Revived): Promise<void> {
  // Do as much as possible before reporting what failed.
  const failures = await reduceAgain(context, widened);
  const { ports, caller } = context;
  for (const { email } of enabled) await disableUser(ports, caller, await findUser(ports, email));
  // Revoke the keys of deleted users before deleting the users, because the queued calls of some of these keys may have been kept.
  for (const cancels of [true, false]) {
    const keys = apiKeys.filter(({ callsCancelled }) => callsCancelled === cancels);
    for (const [reason, group] of Map.groupBy(keys, (key) => key.reason)) {
      const ids = group.map(({ id }) => id);
      for (const chunk of inChunks(ids))
        await revokeApiKeys(ports, caller, { ids: chunk, cancelQueuedCalls: cancels && 'later', note: reason ?? undefined });
    }
  }
  for (const { email, areCallsDue } of users) await deleteUser(ports, caller, await findUser(ports, email), areCallsDue);
  if (!(await cancelMarked(context)))
    failures.push("some queued calls couldn't be cancelled. Start a core with DIALER=off: it cancels them within a minute.");
  if (failures.length > 0) throw new Error(failures.join('; '));
}

function keyJson({ creatorId, creatorName, revokedAt, ...key }: RevivedKey) {
  return { ...key, owner: { id: creatorId, name: creatorName }, revokedAt: timestamp(revokedAt) };
}

function formatResult(file: string, { before, revived, missing }: RestoreResult, isRevokedAgain: boolean): string {
  const lines = [
    before === null ? `Restored ${file}.` : `Restored ${file}. The previous database is now ${before}.`,
    'All sessions have ended. Users must sign in again, with the passwords they had at the time of the backup.',
    'Do-not-call entries that were added after the backup are missing, so calls to these numbers can be dialed.',
    'Calls are in the state that they had at the time of the backup, so calls that were cancelled or dialed since then can be dialed again.',
    `Contacts that were erased after the backup are back. To erase them, run ${adminCommand} contact erase NUMBER.`,
    'Later changes to key limits, users, second factors, calling hours, number rules, paces and contact limits are undone, too. Repeat them before you start a core.',
    `Dialing that was stopped after the backup is no longer stopped. To see what is stopped, run ${adminCommand} dialing list.`,
  ];
  if (missing.length > 0) lines.push(`The backup's schema is out of date (missing ${missing.join(', ')}): run ${adminCommand} migrate.`);
  lines.push(revived ? unknownAfter : unreadable);
  for (const { rows, head, was, warning, remedy } of revived ? toRevivedLists(revived) : []) {
    if (rows.length === 0) continue;
    const outcome = isRevokedAgain ? `and have been ${was} again.` : `${warning}, run ${adminCommand} ${remedy}`;
    lines.push('', `These ${head.what} were ${was} after the backup ${outcome}`, table(head.columns, rows));
  }
  return lines.join('\n');
}

const unknownAfter =
  'Any API keys and users listed below come from the previous database. If that database had lost data, some may be missing.';

const unreadable = `Couldn't read the previous database, so the API keys that were revoked after the backup are unknown, and so is whether their queued calls were cancelled. Find out, for example from the keys' owners. Before you start a core, run ${adminCommand} key revoke --cancel-queued-calls ID...`;

type RevivedList = { head: { what: string; columns: string[] }; rows: string[][]; was: string; warning: string; remedy: string };

const cancelToo = ', with --cancel-queued-calls if QUEUED CALLS is "cancelled"';

function toRevivedLists({ apiKeys, users, enabled, widened }: Revived): RevivedList[] {
  const key = ({ id, name, creatorName, revokedAt, callsCancelled }: RevivedKey) => [
    ...[id, shortName(name), shortName(creatorName), timestamp(revokedAt), callsCancelled ? 'cancelled' : 'kept'],
  ];
  return [
    {
      head: { what: 'API keys', columns: ['ID', 'NAME', 'OWNER', 'REVOKED', 'QUEUED CALLS'] },
      rows: apiKeys.map(key),
      ...{ was: 'revoked', warning: 'and now WORK AGAIN. To revoke them', remedy: `key revoke ID...${cancelToo}` },
    },
    {
      head: { what: 'users', columns: ['EMAIL', 'NAME', 'DELETED'] },
      rows: users.map(({ email, name, deletedAt }) => [email, shortName(name), timestamp(deletedAt)]),
      ...{
        was: 'deleted',
        warning: 'and now CAN SIGN IN AGAIN. To delete them, first revoke their API keys, then',
        remedy: 'user delete EMAIL',
      },
    },
    {
      head: { what: 'users', columns: ['EMAIL', 'NAME', 'DISABLED'] },
      rows: enabled.map(({ email, name, disabledAt }) => [email, shortName(name), timestamp(disabledAt)]),
      ...{ was: 'disabled', warning: 'and now ARE ENABLED AGAIN, with their API keys. To disable them', remedy: 'user disable EMAIL' },
    },
    {
      head: { what: 'users', columns: ['EMAIL', 'NAME', 'CHANGED'] },
      rows: widened.users.map((user) => [user.email, shortName(user.name), describeChanges(user)]),
      ...{
        was: 'changed',
        warning: 'and now HAVE THEIR EARLIER RIGHTS, passwords, links and second factors. To change them',
        remedy: 'user move, user password, user link remove or user second-factor reset',
      },
    },
    {
      head: { what: 'API keys', columns: ['ID', 'NAME', 'LIMITS'] },
      rows: widened.keys.map(({ id, name, ...limits }) => [id, shortName(name), describeLimits({ version: '', timeZone: '', ...limits })]),
      ...{ was: 'limited', warning: 'and now HAVE THEIR EARLIER LIMITS. To limit them', remedy: 'key limit ID' },
    },
  ];
}
