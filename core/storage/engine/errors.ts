import { errorCode, Problem, unauthorizedDetail } from '../../domain/problem.ts';

const sqliteOutage = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|NOMEM|CORRUPT|NOTADB|PROTOCOL|MISUSE)/;
const sqliteData = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE|ERROR)/;
/**
 * PostgreSQL's SQLSTATE classes for connection, authorization, missing database, rollback, resources, intervention and system errors, and
 * the code for a read-only transaction.
 */
const postgresOutage = /^(08|28|3D|40|53|55|57|58|25006)/;
/**
 * PostgreSQL's SQLSTATE classes for data, constraints, rollbacks and limits. Rollbacks are included because of deadlocks: a request that
 * then runs again, in a statement of its own, doesn't cause one.
 */
const postgresData = /^(22|23|40|54)/;
const lockNotAvailable = '55P03';
const socketOutage = /^(ECONN|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/;
const outageMessage =
  /Connection terminated|connection timeout|timeout expired|Query read timeout|not queryable|Unable to acquire a connection|aborted/i;

/** Thrown for a database file that would lose writes. SQLite itself doesn't notice. */
export class UnsafeFileError extends Error {
  override name = 'UnsafeFileError';
  /** SQLite's own code for a file that was moved. */
  readonly code = 'SQLITE_READONLY_DBMOVED';
  readonly reason: string;
  readonly remedy: string;

  constructor(file: string, what: string, remedy: string) {
    super(`The database file ${file} ${what}. ${remedy}`);
    this.reason = `the file ${file} ${what}`;
    this.remedy = remedy;
  }
}

/** Thrown for a PostgreSQL server, or a pooler in front of it, that the operator has to change. */
export class UnusableServer extends Error {
  override name = 'UnusableServer';
  /** SQLSTATE: object not in prerequisite state. */
  readonly code = '55000';
  readonly reason: string;
  readonly remedy: string;

  constructor(reason: string, remedy: string) {
    super(`${reason}. ${remedy}`);
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

/** Whether the database refused a value. */
export function isDataError(error: unknown): boolean {
  const code = errorCode(error);
  return sqliteData.test(code) || (/^[0-9A-Z]{5}$/.test(code) && postgresData.test(code));
}

export function isUniqueViolation(error: unknown): boolean {
  const code = errorCode(error);
  return code === '23505' || (code === 'SQLITE_CONSTRAINT' && error instanceof Error && /UNIQUE constraint/.test(error.message));
}

export function isForeignKeyViolation(error: unknown): boolean {
  const code = errorCode(error);
  return code === '23503' || (code === 'SQLITE_CONSTRAINT' && error instanceof Error && /FOREIGN KEY constraint/.test(error.message));
}

/** Reports that a user was deleted during their own request. */
export function rejectOrphan(error: unknown): never {
  throw isForeignKeyViolation(error) ? new Problem('unauthorized', unauthorizedDetail) : error;
}

/** Whether another process holds SQLite's lock. */
export function isLocked(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(errorCode(error));
}

/** Thrown if a list's statement was interrupted because it took too long. */
export class TookTooLong extends Error {
  constructor(cause: unknown) {
    super('The statement took too long.', { cause });
    this.name = 'TookTooLong';
  }
}

/** Thrown if a node hasn't confirmed a change in time. This isn't a Problem, because knex changes the messages of errors. */
export class NotOnAllNodes extends Error {
  constructor(cause: unknown) {
    super('A node has not confirmed a change.', { cause });
    this.name = 'NotOnAllNodes';
  }
}

const notOnAllNodes =
  "A node of the database hasn't confirmed the latest changes, and may use the previous state for a while. Once all nodes are back, repeat the request to make sure that the changes are in effect.";
const tookTooLong = 'This took too long and was stopped. Narrow the search, or choose a smaller account or campaign.';

/** Turns an outage into a problem that asks the caller to retry, and returns other errors unchanged. */
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
