import { errorCode, Problem } from '../../domain/problem.ts';
import type { DatabaseLocation } from '../../storage/engine/database.ts';
import { databaseErrorText, explainDatabaseError, isOutage } from '../../storage/engine/errors.ts';
import { ConfigError } from './config.ts';

/** Explains in one line why a listener can't start, and which variable to change. Returns any other error unchanged. */
export function toListenError(error: unknown, listener: 'public' | 'management', { host, port }: { host: string; port: number }): unknown {
  const prefix = listener === 'management' ? 'MANAGEMENT_' : '';
  const code = errorCode(error);
  const wrongPort = (message: string) => new ConfigError(`${prefix}PORT`, message);
  const wrongHost = (message: string) => new ConfigError(`${prefix}HOST`, message);
  if (code === 'EADDRINUSE')
    return wrongPort(`${port} on ${host} is already in use (${code}). Stop the program that uses it, or choose another port.`);
  if (code === 'EACCES')
    return wrongPort(`this user isn't allowed to listen on ${port} (${code}). Use a port above 1023, or grant CAP_NET_BIND_SERVICE.`);
  // For example, a link-local IPv6 address without its zone, or any IPv6 address on a machine without IPv6.
  if (['EADDRNOTAVAIL', 'EINVAL', 'EAFNOSUPPORT'].includes(code))
    return wrongHost(`${host} isn't an address of this machine (${code}). Use one that is.`);
  if (['ENOTFOUND', 'EAI_AGAIN'].includes(code))
    return wrongHost(`unknown host name ${host} (${code}). Use an IP address of this machine.`);
  return error;
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
