import { errorCode } from '../../domain/problem.ts';
import type { DatabaseLocation } from './database.ts';
import { UnsafeFileError, UnusableServer } from './errors.ts';
import { parseAddresses } from './postgres/postgres-address.ts';

/** The reason why a database doesn't work, and what to do about it. `remedy` is empty for an error that isn't in the table. */
type Explanation = { cause: string; remedy: string };

/** Causes by the error codes of SQLite, the file system and sockets. */
const causes: readonly (readonly [code: RegExp, cause: string, remedy: string])[] = [
  [/^SQLITE_NOTADB/, "the file isn't a SQLite database", "Set DATABASE_URL to a Callkey database, or to a file that doesn't exist yet."],
  [/^SQLITE_CORRUPT/, 'the file is damaged', 'Restore a backup.'],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked it', 'Stop that process, or try again.'],
  [
    /^SQLITE_READONLY_DBMOVED/,
    'the file was moved, deleted or replaced',
    'Stop the core, put the file and its -wal file back, and start the core again.',
  ],
  [/^(SQLITE_READONLY|EROFS)/, 'it is read-only', 'Give this user write access to the file and its folder.'],
  [/^(SQLITE_FULL|ENOSPC|EDQUOT)/, 'the disk is full', 'Free up some disk space.'],
  [/^(SQLITE_IOERR|EIO)/, 'the disk is failing', 'Check the disk.'],
  [/^(SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM)/, 'permission denied', 'Give this user read and write access to the file and its folder.'],
  [/^SQLITE_CANTOPEN/, "the file can't be opened", 'Check that the path names a file in a folder that this user can write to.'],
  [/^ENOENT/, 'no such file or folder', 'Check the path.'],
  [/^ENOTDIR/, "part of its path isn't a folder", 'Check the path.'],
  [/^EISDIR/, 'it is a folder', 'Use the path of a file.'],
  [/^ECONNREFUSED/, 'connection refused', 'Start PostgreSQL there, or fix the address.'],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'unknown host name', 'Check the host name in DATABASE_URL.'],
  [/^(EHOSTUNREACH|ENETUNREACH)/, 'the host is unreachable', 'Check the network between this machine and the host.'],
  [/^(ECONNRESET|EPIPE)/, 'the connection was lost', 'Check that PostgreSQL is running there, then try again.'],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE))/,
    "this machine doesn't trust the authority that issued the server's certificate",
    "Set sslrootcert to the file with that authority's certificate.",
  ],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)/, "the server's certificate isn't valid at this time", 'Renew it, or check the clocks.'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID/, "the server's certificate is for another host name", 'Use a host name that the certificate contains.'],
  [/^(ERR_OSSL_|ERR_TLS_|EPROTO)/, 'TLS failed', 'Check that sslrootcert, sslcert and sslkey name the right PEM files.'],
  [/^ETIMEDOUT/, 'no response', 'Check the address and any firewalls in between.'],
];

/** Remedies by SQLSTATE. PostgreSQL's own message describes the cause best, because it contains the names. */
const remedies: ReadonlyMap<string, string> = new Map([
  ['3F000', 'Create a schema, and set search_path to it.'],
  ['3D000', 'Create the database first, with createdb.'],
  ['28P01', 'Fix the username or password in DATABASE_URL.'],
  ['28000', 'Check the user in DATABASE_URL, and pg_hba.conf on the server.'],
  ['42501', 'Grant the user that permission.'],
  ['25006', 'Set DATABASE_URL to the primary server.'],
  ['53300', 'Raise max_connections, or stop other programs that use the server.'],
  ['57P01', 'Try again when the server is up.'],
  ['57P02', 'Try again when the server is up.'],
  ['57P03', 'Try again when the server is up.'],
]);

/**
 * Says why a database doesn't work. Doesn't mention the statement or the address, which may contain a password.
 *
 * @returns undefined for an error that wasn't caused by a database, file or connection
 */
export function explainDatabaseError(error: unknown): Explanation | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof UnsafeFileError || error instanceof UnusableServer) return { cause: error.reason, remedy: error.remedy };
  const code = errorCode(error);
  const known = causes.find(([pattern]) => pattern.test(blocksPath(error) ? 'ENOTDIR' : code));
  if (known) return { cause: `${known[1]}${readPath(error)}${readAddress(error)} (${code})`, remedy: known[2] };
  if ('severity' in error || /^\d[0-9A-Z]{4}$/.test(code)) {
    return { cause: `${serverMessage(error)} (${code})`, remedy: remedies.get(code) ?? '' };
  }
  if (/client password must be a (non-empty )?string/.test(error.message)) {
    return { cause: 'PostgreSQL requires a password, and none is set', remedy: 'Add it to DATABASE_URL.' };
  }
  if (/server does not support SSL/.test(error.message)) {
    return { cause: "the server doesn't use TLS", remedy: 'Turn on ssl in postgresql.conf, or remove sslmode from DATABASE_URL.' };
  }
  if (error.name === 'KnexTimeoutError' || (code === '' && /timeout|timed out/i.test(error.message))) {
    return { cause: 'no response', remedy: 'Check the address and any firewalls in between.' };
  }
  return explainDatabaseError(error.cause);
}

/** Returns one sentence about what happened and one about what to do, for a core that's starting and for `admin`. */
export function databaseErrorText(error: unknown, location: DatabaseLocation): string | undefined {
  const explained = explainDatabaseError(error);
  return explained && `Can't use the database ${formatLocation(location)}: ${explained.cause}. ${explained.remedy}`.trimEnd();
}

function formatLocation(location: DatabaseLocation): string {
  if (location.kind === 'sqlite') return location.filename;
  const addresses = parseAddresses(location.url).map((address) => new URL(address));
  const name = addresses[0]?.pathname.slice(1) ?? '';
  const hosts = addresses.map(({ host }) => host).join(', ');
  return hosts === '' ? name : `${name} at ${hosts}`;
}

/** Whether a file blocks the path. If there's a file where a folder should be, mkdir reports that it already exists. */
function blocksPath(error: Error): boolean {
  return errorCode(error) === 'EEXIST' && 'syscall' in error && error.syscall === 'mkdir';
}

/** Returns the server's message, because knex puts the statement before it. */
function serverMessage(error: Error): string {
  return (error.message.split(' - ').at(-1)?.split('\n')[0] ?? '').replace(/\.$/, '');
}

/** Returns the file that's missing, such as the one in `sslrootcert`: the database isn't a file then. */
function readPath(error: Error): string {
  return errorCode(error) === 'ENOENT' && 'path' in error && typeof error.path === 'string' ? `: ${error.path}` : '';
}

/**
 * Returns the address that couldn't be reached. A host name can have several addresses, and all of them may have refused the connection.
 */
function readAddress(error: Error): string {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return cause instanceof Error && 'address' in cause && 'port' in cause ? ` at ${cause.address}:${cause.port}` : '';
}
