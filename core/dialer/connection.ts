import { Agent, buildConnector, type Dispatcher } from 'undici';
import { errorCode } from '../domain/problem.ts';

/**
 * Opens connections for requests that must not be repeated if they may have been received. The core and the recipes in `scripts/providers`
 * use it to decide which requests definitely weren't sent.
 */
export type Connections = {
  dispatcher: Dispatcher;
  /**
   * Says why the request definitely wasn't sent: the connection couldn't be opened, or TLS failed. Returns null if the first byte may have
   * been sent, because no later error shows how much arrived.
   */
  unsentReason(error: unknown): string | null;
};

/** Explains each error to the operator. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name not resolved',
  ETIMEDOUT: 'connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
};

/** @param timeout in ms, for connecting including TLS. Must be shorter than the caller's wait for the response */
export function openConnections(timeout: number): Connections {
  const openOne = buildConnector({ timeout });
  const notSent = new WeakSet<Error>();
  const connect: buildConnector.connector = (options, callback) => {
    openOne(options, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (!error) return callback(null, socket);
      notSent.add(error);
      callback(error, null);
    });
  };
  return {
    dispatcher: new Agent({ connect }),
    unsentReason(error) {
      if (!(error instanceof Error) || !notSent.has(error)) return null;
      const code = errorCode(error);
      return reasons[code] ?? (code || error.message);
    },
  };
}
