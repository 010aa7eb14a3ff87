/** What the codes of SQLite and of the file system come to. */
const causes: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_NOTADB/, 'the file is not a database'],
  [/^SQLITE_CORRUPT/, 'the database file is damaged'],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process holds its lock'],
  [/^(SQLITE_READONLY|EROFS)/, 'it is read-only'],
  [/^(SQLITE_FULL|ENOSPC|EDQUOT)/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'the disk fails'],
  [/^(SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM)/, 'permission denied'],
  [/^ENOENT/, 'there is no such file or folder'],
  [/^ENOTDIR/, 'a part of its path is no folder'],
  [/^EISDIR/, 'it is a folder'],
  [/^SQLITE_CANTOPEN/, 'the file cannot be opened (a folder, or permission denied)'],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'its host is not known'],
  [/^(EHOSTUNREACH|ENETUNREACH)/, 'its host cannot be reached'],
  [/^(ECONNRESET|EPIPE)/, 'the connection broke'],
  [/^ETIMEDOUT/, 'no answer'],
];
const timeout = /timeout|timed out/i;

/**
 * What went wrong with a database, in a few words: "connection refused at 127.0.0.1:5432". Never the address that was given, which may
 * have a password in it, nor the statement.
 *
 * @returns undefined for an error that is no database's
 */
export function databaseErrorText(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (code === 'ECONNREFUSED') return `connection refused${placeOf(error)}`;
  const known = causes.find(([pattern]) => pattern.test(code));
  if (known) return known[1];
  // PostgreSQL says it best itself, with the names. Knex puts the statement before it.
  if (/^[0-9A-Z]{5}$/.test(code) && 'severity' in error) return error.message.split(' - ').at(-1)?.split('\n')[0];
  if (error.name === 'KnexTimeoutError' || (code === '' && timeout.test(error.message))) return 'no answer';
  return databaseErrorText(error.cause);
}

/** A host name may have several addresses, each refused. */
function placeOf(error: Error): string {
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(one instanceof Error && 'address' in one && 'port' in one)) return '';
  return ` at ${one.address}:${one.port}`;
}
