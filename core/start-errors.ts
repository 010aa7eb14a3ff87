import { ConfigError } from './config.ts';
import { Problem } from './domain/problem.ts';
import type { DatabaseLocation } from './storage/database.ts';
import { isOutage } from './storage/errors.ts';

/** Why a listener does not come up, with the variable to change. Any other error stays as it is. */
export function asListenError(error: unknown, listener: 'public' | 'management', { host, port }: { host: string; port: number }): unknown {
  const prefix = listener === 'management' ? 'MANAGEMENT_' : '';
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new ConfigError(
        `${prefix}PORT`,
        `${port} on ${host} is taken by another listener (EADDRINUSE). Stop that one, or give another port.`,
      );
    case 'EACCES':
      return new ConfigError(
        `${prefix}PORT`,
        `this user may not listen on ${port} (EACCES). Give a port above 1023, or grant CAP_NET_BIND_SERVICE.`,
      );
    case 'EADDRNOTAVAIL':
      return new ConfigError(`${prefix}HOST`, `${host} is no address of this machine (EADDRNOTAVAIL).`);
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ConfigError(`${prefix}HOST`, `${host} is not known (${codeOf(error)}). Give an IP address of this machine.`);
    default:
      return error;
  }
}

/** Why the database cannot be used, in one line without its password. What is no fault of the database's stays as it is. */
export function asDatabaseError(error: unknown, location: DatabaseLocation): unknown {
  // A store reports an outage as a problem for callers: what went wrong is its cause.
  const cause = error instanceof Problem && error.cause instanceof Error ? error.cause : error;
  const known = location.kind === 'sqlite' ? sqliteReason(cause, location.filename) : postgresReason(cause, new URL(location.url));
  if (known !== null) return new ConfigError('DATABASE_URL', known);
  if (error instanceof Problem || isOutage(error)) return new ConfigError('DATABASE_URL', oneLine(messageOf(cause)));
  return error;
}

function sqliteReason(error: unknown, filename: string): string | null {
  const code = codeOf(error);
  switch (code) {
    case 'SQLITE_NOTADB':
      return `${filename} is not a SQLite database.`;
    case 'SQLITE_CORRUPT':
      return `${filename} is damaged (${code}). Restore a backup.`;
    case 'SQLITE_BUSY':
      return `${filename} is locked by another process (${code}).`;
    case 'SQLITE_FULL':
    case 'ENOSPC':
      return `there is no room left on the disk of ${filename} (${code}).`;
    case 'SQLITE_READONLY':
    case 'SQLITE_CANTOPEN':
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `${filename} and its folder cannot be written by this user (${code}).`;
    case 'EISDIR':
      return `${filename} is a folder. Give the path of a file.`;
    case 'ENOTDIR':
    case 'EEXIST':
      return `${filename} is beneath something that is not a folder (${code}).`;
    default:
      return null;
  }
}

function postgresReason(error: unknown, { host, pathname, username }: URL): string | null {
  const database = decodeURIComponent(pathname.slice(1));
  const user = decodeURIComponent(username);
  const code = codeOf(error);
  const message = messageOf(error);
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${host}: connection refused (${code}). Is PostgreSQL running there?`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host of ${host} is not known (${code}).`;
    case '3D000':
      return `the database ${database} does not exist. Create it first: createdb ${database}`;
    case '28P01':
      return `PostgreSQL at ${host} refuses the password of the user ${user}.`;
    case '28000':
      return `PostgreSQL at ${host} does not let the user ${user} in: ${oneLine(message)}`;
  }
  if (/client password must be a (non-empty )?string/.test(message)) return `PostgreSQL at ${host} asks for a password, and there is none.`;
  if (code === 'ETIMEDOUT' || /timeout/i.test(message)) return `PostgreSQL at ${host} does not answer: ${oneLine(message)}`;
  return /^(42501|25006|53300|57P0\d)$/.test(code) ? oneLine(message) : null;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim();
}
