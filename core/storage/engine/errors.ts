import { errorCode, Problem, unauthorized } from '../../domain/problem.ts';
import type { DatabaseLocation } from './database.ts';
import { parseAddresses } from './postgres/postgres-address.ts';

const sqliteOutage = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|NOMEM|CORRUPT|NOTADB|PROTOCOL|MISUSE)/;
const sqliteData = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE|ERROR)/;
/**
 * PostgreSQL's SQLSTATE classes for connection, authorization, missing database, rollback, resources, intervention and system errors, and
 * the codes for a read-only transaction and for sessions that the server ended because a transaction took too long.
 */
const postgresOutage = /^(08|28|3D|40|53|55|57|58|25006|25P0[34])/;
/** SQLSTATEs: data, constraints, rollbacks, limits. A request that runs again by itself after a rollback doesn't cause another deadlock. */
const postgresData = /^(22|23|40|54)/;
const lockNotAvailable = '55P03';
const socketOutage = /^(ECONN|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/;
const outageMessage =
  /Connection terminated|connection timeout|timeout expired|Query read timeout|not queryable|Unable to acquire a connection|error establishing an SSL connection|aborted/i;

/** Thrown for a file, a PostgreSQL server or a pooler that the operator has to fix, with SQLite's or PostgreSQL's own code. */
export class UnusableDatabase extends Error {
  override name = 'UnusableDatabase';
  readonly code: string;
  readonly reason: string;
  readonly remedy: string;

  constructor(code: string, reason: string, remedy: string, message = `${reason}. ${remedy}`) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.remedy = remedy;
  }
}

/**
 * Whether a database with shards has lost one of its nodes during the statement, or during a commit. Other errors of the level ERROR mean
 * that nothing was changed, but after this one, something may have been.
 */
function isLostNode(error: unknown): boolean {
  const code = errorCode(error);
  if (!(error instanceof Error && 'severity' in error && error.severity === 'ERROR')) return false;
  return /^(08|57P0)/.test(code) || (code === 'XX000' && lostConnection.test(`${error.message} ${'where' in error ? error.where : ''}`));
}

/** A node that didn't accept the connection hasn't seen the statement. */
const neverReached = /Connection refused|the database system is|No route to host/;
const lostConnection = /server closed the connection|while executing command on|connection to the remote node|failure on connection/;

/** Whether an error means that the database can't be reached or written to. */
export function isOutage(error: unknown): boolean {
  const code = errorCode(error);
  if (isLostNode(error)) return true;
  if (sqliteOutage.test(code) || socketOutage.test(code) || (/^[0-9A-Z]{5}$/.test(code) && postgresOutage.test(code))) return true;
  return error instanceof Error && (error.name === 'KnexTimeoutError' || (code === '' && outageMessage.test(error.message)));
}

/** Whether a single row of a batch may have caused an error: the database refused its value, or another process has locked it. */
export function isSingleRowError(error: unknown): boolean {
  return isDataError(error) || errorCode(error) === lockNotAvailable;
}

/**
 * Errors after which SQLite hasn't written the last page of a commit. Errors of fsync aren't among them, because a crash may still bring
 * that commit back.
 */
const sqliteUndone = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|CANTOPEN|CORRUPT|NOTADB|MISUSE)/;

/**
 * Whether the statement that failed with this error has changed nothing, and never will. This isn't certain if PostgreSQL ended the session
 * or didn't respond, because it may have committed before that.
 */
export function isUndone(error: unknown): boolean {
  if (error instanceof Problem || isSingleRowError(error) || sqliteUndone.test(errorCode(error))) return true;
  if (!(error instanceof Error)) return false;
  if ('severity' in error && error.severity === 'ERROR') return !isLostNode(error) || neverReached.test(error.message);
  // The driver's message "not queryable" means that it hasn't sent the statement.
  return /not queryable/.test(error.message);
}

export function isDataError(error: unknown): boolean {
  const code = errorCode(error);
  return sqliteData.test(code) || (/^[0-9A-Z]{5}$/.test(code) && postgresData.test(code));
}

export const isUniqueViolation = (error: unknown) => violates(error, '23505', /UNIQUE constraint/);
export const isForeignKeyViolation = (error: unknown) => violates(error, '23503', /FOREIGN KEY constraint/);

function violates(error: unknown, sqlState: string, message: RegExp): boolean {
  const code = errorCode(error);
  return code === sqlState || (code === 'SQLITE_CONSTRAINT' && error instanceof Error && message.test(error.message));
}

/** Reports that a user was deleted during their own request. */
export function rejectOrphan(error: unknown): never {
  throw isForeignKeyViolation(error) ? unauthorized() : error;
}

export function isLocked(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(errorCode(error));
}

/** Thrown if a list's statement was interrupted because it took too long. */
export class TookTooLong extends Error {
  override name = 'TookTooLong';
}

/** Thrown if a node hasn't confirmed a change in time. This isn't a Problem, because knex changes the messages of errors. */
export class NotOnAllNodes extends Error {
  override name = 'NotOnAllNodes';
}

const notOnAllNodes =
  "A node of the database hasn't confirmed the latest changes, and may use the previous state for a while. Once all nodes are back, repeat the request to make sure that the changes are in effect.";
const tookTooLong = 'This took too long and was stopped. Narrow the search, or choose a smaller account or campaign.';

/** Turns an outage into a problem that asks the caller to retry, and returns other errors unchanged, such as `ResultUnknown`. */
export function toProblem(error: unknown): unknown {
  // Don't return 503, because it asks for the same request again. That would take just as long, and clients such as the console would
  // repeat it forever.
  if (error instanceof TookTooLong)
    return new Problem('invalid', tookTooLong, { cause: error, errors: [{ path: 'search', message: tookTooLong }] });
  if (error instanceof NotOnAllNodes) return new Problem('unavailable', notOnAllNodes, { cause: error, retryAfter: 5 });
  if (!isOutage(error)) return error;
  const what = isLocked(error) ? 'The database is busy with another process.' : "The database can't be reached or written to.";
  return new Problem('unavailable', `${what} Try again shortly.`, { cause: error, retryAfter: 2 });
}

/** Returns stores whose methods report outages as problems. */
export function reportingOutages<Stores extends Readonly<Record<keyof Stores, object>>>(stores: Stores): Stores {
  const reporting = Object.entries<object>(stores).map(([name, store]) => {
    const methods = Object.entries<(...args: never[]) => Promise<unknown>>({ ...store }).map(([method, run]) => [
      method,
      async (...args: never[]) => {
        try {
          return await run(...args);
        } catch (error) {
          throw toProblem(error);
        }
      },
    ]);
    return [name, Object.fromEntries(methods)];
  });
  return Object.fromEntries(reporting);
}

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
  [/^(ELOOP|ENAMETOOLONG)/, 'its path is invalid', 'Check the path.'],
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
  ['25006', 'Set DATABASE_URL to the primary server, and turn off default_transaction_read_only.'],
  ['53100', 'Free up some disk space on the server.'],
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
  if (error instanceof UnusableDatabase) return { cause: error.reason, remedy: error.remedy };
  const code = errorCode(error);
  const known = causes.find(([pattern]) => pattern.test(blocksPath(error) ? 'ENOTDIR' : code));
  if (known) return { cause: `${known[1]}${readPath(error)}${readAddress(error)} (${code})`, remedy: known[2] };
  if ('severity' in error || /^\d[0-9A-Z]{4}$/.test(code)) {
    return {
      cause: `${serverMessage(error)} (${code})`,
      remedy: remedies.get(code) ?? (isFatal(error) ? 'Check the user, the database and the options in DATABASE_URL.' : ''),
    };
  }
  if (/client password must be a (non-empty )?string/.test(error.message)) {
    return { cause: 'PostgreSQL requires a password, and none is set', remedy: 'Add it to DATABASE_URL.' };
  }
  if (/Connection terminated|error establishing an SSL connection/.test(error.message)) {
    return { cause: 'the connection was closed', remedy: 'Check the host and port in DATABASE_URL, and that PostgreSQL is running there.' };
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
  const hosts = addresses.map(({ host }) => decodeURIComponent(host)).join(', ');
  return hosts === '' ? name : `${name} at ${hosts}`;
}

/** Whether PostgreSQL, or a pooler in front of it, refused or ended the connection. */
const isFatal = (error: Error) => 'severity' in error && error.severity === 'FATAL';

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

/** Returns the address that couldn't be reached: the first one, if a host name has several. */
function readAddress(error: Error): string {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return cause instanceof Error && 'address' in cause && 'port' in cause ? ` at ${cause.address}:${cause.port}` : '';
}
