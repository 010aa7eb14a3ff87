import { errorCode, Problem } from '../../domain/problem.ts';
import type { DatabaseLocation } from '../../storage/engine/database.ts';
import { databaseErrorText, explainDatabaseError, isOutage } from '../../storage/engine/errors.ts';
import { ConfigError } from './config.ts';

/** Explains in one line why a listener can't start, and which variable to change. Returns any other error unchanged. */
export function toListenError(error: unknown, listener: 'public' | 'management', { host, port }: { host: string; port: number }): unknown {
  const prefix = listener === 'management' ? 'MANAGEMENT_' : '';
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return new ConfigError(
        `${prefix}PORT`,
        `${port} on ${host} is already in use (EADDRINUSE). Stop the program that uses it, or choose another port.`,
      );
    case 'EACCES':
      return new ConfigError(
        `${prefix}PORT`,
        `this user isn't allowed to listen on ${port} (EACCES). Use a port above 1023, or grant CAP_NET_BIND_SERVICE.`,
      );
    case 'EADDRNOTAVAIL':
    // For example, a link-local IPv6 address without its zone, or any IPv6 address on a machine without IPv6.
    case 'EINVAL':
    case 'EAFNOSUPPORT':
      return new ConfigError(`${prefix}HOST`, `${host} isn't an address of this machine (${errorCode(error)}). Use one that is.`);
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ConfigError(`${prefix}HOST`, `unknown host name ${host} (${errorCode(error)}). Use an IP address of this machine.`);
    default:
      return error;
  }
}

/** Explains in one line, without the password, why the database can't be used. Returns an error that may be a bug unchanged. */
export function toDatabaseError(error: unknown, location: DatabaseLocation): unknown {
  const isKnown = error instanceof Problem || isOutage(error) || explainDatabaseError(error)?.remedy;
  if (!isKnown) return error;
  // A store reports an outage as a Problem, which is meant for callers. Its cause says what went wrong.
  const cause = error instanceof Problem && error.cause instanceof Error ? error.cause : error;
  return new ConfigError('DATABASE_URL', databaseErrorText(error, location) ?? oneLine(cause));
}

function oneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ').trim();
}
