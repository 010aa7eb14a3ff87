import type { Command } from 'commander';
import { timestamp } from '#contract/text/text.ts';
import { revokeVisible } from '../../domain/api-keys.ts';
import { deleteUser, disableUser } from '../../domain/directory/users.ts';
import { adminCommand } from '../../program.ts';
import { systemClock } from '../../server/start/system.ts';
import { databaseErrorText } from '../../storage/engine/error-text.ts';
import { requireFile } from '../../storage/engine/sqlite/sqlite-file.ts';
import { everyKey } from '../key.ts';
import type { AdminContext, Runner, Settings } from '../program/context.ts';
import { withExamples } from '../program/help.ts';
import { shortName, table } from '../program/table.ts';
import { findUser } from '../user.ts';
import { restorePostgres } from './restore-postgres.ts';
import type { RestoreResult, Revived, RevivedKey, RevivedUser } from './restore-result.ts';
import { restoreSqlite } from './restore-sqlite.ts';

export function restoreCommand(program: Command, { withoutDatabase }: Runner): void {
  const command = program
    .command('restore')
    .argument('<file>')
    .description(
      'replace the database with a backup; stop all cores first. Lists the revoked keys and the deleted or disabled users that the backup brings back',
    );
  command.option('--revoke-again', 'revoke these keys again, and delete or disable these users again');
  withExamples(command, 'restore /backups/callkey-2026-11-22.db', 'restore /backups/callkey-2026-11-22.db --revoke-again').action(
    withoutDatabase(runRestore),
  );
}

/**
 * Replaces the database with a backup, completely or not at all, and only if no core is using it. Doesn't restore sessions, because that
 * would undo sign-outs and the effect of password resets.
 */
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
  const json = {
    restored: { file, before, missing },
    revokedAgain: isRevokedAgain,
    revokedApiKeys: revived?.apiKeys.map(keyJson) ?? null,
    deletedUsers: revived?.users.map(userJson) ?? null,
    disabledUsers: revived?.enabled.map(({ disabledAt, ...user }) => ({ ...user, disabledAt: timestamp(disabledAt) })) ?? null,
  };
  // Show the list in any case: it comes from the replaced database, so a second restore couldn't show it again.
  output.answer(json, formatResult(file, restored, isRevokedAgain));
  if (failure) {
    const reason = databaseErrorText(failure, location) ?? failure.message;
    output.error('failed', `Couldn't revoke everything again, so do the rest of the list yourself before you start a core: ${reason}`);
  }
  return isRevokedAgain || !revokeAgain;
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

async function revokeAll({ ports, actor }: AdminContext, { apiKeys, users, enabled }: Revived): Promise<void> {
  for (const { email } of enabled) await disableUser(ports, actor, await findUser(ports, email));
  for (const { email } of users) await deleteUser(ports, actor, await findUser(ports, email), false);
  // Skip the keys of deleted users, because they were deleted with the users.
  const deleted = new Set(users.map(({ id }) => id));
  for (const { id, creatorId } of apiKeys) if (!deleted.has(creatorId)) await revokeVisible(ports, everyKey, actor, id, false);
}

function keyJson({ creatorId, creatorName, revokedAt, ...key }: RevivedKey) {
  return { ...key, owner: { id: creatorId, name: creatorName }, revokedAt: timestamp(revokedAt) };
}

function userJson({ deletedAt, ...user }: RevivedUser) {
  return { ...user, deletedAt: timestamp(deletedAt) };
}

function formatResult(file: string, { before, revived, missing }: RestoreResult, isRevokedAgain: boolean): string {
  const lines = [
    before === null ? `Restored ${file}.` : `Restored ${file}. The previous database is now ${before}.`,
    'All sessions have ended. Users must sign in again, with the passwords they had at the time of the backup.',
    'Do-not-call entries that were added after the backup are missing, so calls to these numbers can be dialed.',
    'Later changes to key limits, users, second factors, calling hours and number rules are undone, too. Repeat them before you start a core.',
  ];
  if (missing.length > 0) lines.push(`The backup's schema is out of date (missing ${missing.join(', ')}): run ${adminCommand} migrate.`);
  lines.push(
    revived ? unknownAfter : "Couldn't read the previous database, so the API keys that were revoked after the backup are unknown.",
  );
  for (const { rows, head, was, warning, remedy } of revived ? toRevivedLists(revived) : []) {
    if (rows.length === 0) continue;
    const outcome = isRevokedAgain ? `and have been ${was} again.` : `${warning}, run ${adminCommand} ${remedy}`;
    lines.push('', `These ${head.what} were ${was} after the backup ${outcome}`, table(head.columns, rows));
  }
  return lines.join('\n');
}

const unknownAfter =
  'Any API keys and users listed below come from the previous database. If that database had lost data, some may be missing.';

type RevivedList = { head: { what: string; columns: string[] }; rows: string[][]; was: string; warning: string; remedy: string };

function toRevivedLists({ apiKeys, users, enabled }: Revived): RevivedList[] {
  const key = ({ id, name, creatorName, revokedAt }: RevivedKey) => [id, shortName(name), shortName(creatorName), timestamp(revokedAt)];
  return [
    {
      head: { what: 'API keys', columns: ['ID', 'NAME', 'OWNER', 'REVOKED'] },
      rows: apiKeys.map(key),
      ...{ was: 'revoked', warning: 'and now WORK AGAIN. To revoke them', remedy: 'key revoke ID...' },
    },
    {
      head: { what: 'users', columns: ['EMAIL', 'NAME', 'DELETED'] },
      rows: users.map(({ email, name, deletedAt }) => [email, shortName(name), timestamp(deletedAt)]),
      ...{ was: 'deleted', warning: 'and now CAN SIGN IN AGAIN. To delete them', remedy: 'user delete EMAIL' },
    },
    {
      head: { what: 'users', columns: ['EMAIL', 'NAME', 'DISABLED'] },
      rows: enabled.map(({ email, name, disabledAt }) => [email, shortName(name), timestamp(disabledAt)]),
      ...{ was: 'disabled', warning: 'and now ARE ENABLED AGAIN, with their API keys. To disable them', remedy: 'user disable EMAIL' },
    },
  ];
}
