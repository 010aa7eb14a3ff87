import type { Command } from 'commander';
import { timestamp } from '#contract/text.ts';
import { adminCommand } from '../program.ts';
import { requireFile } from '../storage/sqlite-file.ts';
import { systemClock } from '../system.ts';
import type { Runner, Settings } from './context.ts';
import { withExamples } from './help.ts';
import { restorePostgres } from './restore-postgres.ts';
import type { RestoreResult, RevivedKey, RevivedUser } from './restore-result.ts';
import { restoreSqlite } from './restore-sqlite.ts';
import { shortName, table } from './table.ts';

export function restoreCommand(program: Command, { withoutDatabase }: Runner): void {
  const command = program
    .command('restore')
    .argument('<file>')
    .description(
      'replace the database by a backup, while no core runs; list the revoked keys, and the deleted and disabled users, that it brings back',
    );
  withExamples(command, 'restore /backups/callkey-2026-11-22.db').action(withoutDatabase(runRestore));
}

/**
 * Puts a backup in the place of the database: all of it or nothing, and not while a core runs on it. Does not restore sessions, which would
 * undo a sign-out or a password reset.
 */
async function runRestore({ location, isDatabaseNamed, output, fileOf }: Settings, path: string): Promise<void> {
  const file = fileOf(path);
  if (location.kind === 'sqlite' && !isDatabaseNamed) requireFile(location.filename);
  const restored =
    location.kind === 'sqlite'
      ? await restoreSqlite(location.filename, file, systemClock.now().toJSDate())
      : await restorePostgres(location.url, file);
  const { before, revived, missing } = restored;
  const json = {
    restored: { file, before, missing },
    revokedApiKeys: revived?.apiKeys.map(keyJson) ?? null,
    deletedUsers: revived?.users.map(userJson) ?? null,
    disabledUsers: revived?.enabled.map(({ disabledAt, ...user }) => ({ ...user, disabledAt: timestamp(disabledAt) })) ?? null,
  };
  output.answer(json, textOf(file, restored));
}

function keyJson({ creatorId, creatorName, revokedAt, ...key }: RevivedKey) {
  return { ...key, owner: { id: creatorId, name: creatorName }, revokedAt: timestamp(revokedAt) };
}

function userJson({ deletedAt, ...user }: RevivedUser) {
  return { ...user, deletedAt: timestamp(deletedAt) };
}

function textOf(file: string, { before, revived, missing }: RestoreResult): string {
  const lines = [
    before === null ? `Restored ${file}.` : `Restored ${file}. The database that was there is now ${before}.`,
    'All sessions have ended: all users sign in again, with the password that they had at the time of the backup.',
  ];
  if (missing.length > 0)
    lines.push(`The backup's schema is older (it lacks ${missing.join(', ')}): run ${adminCommand} migrate, or start a core.`);
  if (!revived) lines.push('The database that was there cannot be read: the API keys that were revoked since the backup are not known.');
  if (revived && revived.apiKeys.length > 0) {
    const rows = revived.apiKeys.map(({ id, name, creatorName, revokedAt }) => [
      id,
      shortName(name),
      shortName(creatorName),
      timestamp(revokedAt),
    ]);
    lines.push('', `These API keys were revoked since the backup and WORK AGAIN. Revoke them: ${adminCommand} key revoke ID`);
    lines.push(table(['ID', 'NAME', 'OWNER', 'REVOKED'], rows));
  }
  if (revived && revived.users.length > 0) {
    const rows = revived.users.map(({ email, name, deletedAt }) => [email, shortName(name), timestamp(deletedAt)]);
    lines.push('', `These users were deleted since the backup and CAN SIGN IN AGAIN. Delete them: ${adminCommand} user delete EMAIL`);
    lines.push(table(['E-MAIL', 'NAME', 'DELETED'], rows));
  }
  if (revived && revived.enabled.length > 0) {
    const rows = revived.enabled.map(({ email, name, disabledAt }) => [email, shortName(name), timestamp(disabledAt)]);
    lines.push(
      '',
      `These users were disabled since the backup and GET IN AGAIN, with their API keys. Disable them: ${adminCommand} user disable EMAIL`,
    );
    lines.push(table(['E-MAIL', 'NAME', 'DISABLED'], rows));
  }
  return lines.join('\n');
}
