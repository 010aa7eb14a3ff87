import { Agent, buildConnector, type Dispatcher } from 'undici';
import { codeOf } from '../domain/error-code.ts';

/**
 * Opens connections for requests that must not be repeated if they may have gone through. Decides, for the core and for the recipes of
 * `scripts/providers`, which of them certainly haven't.
 */
export type Connections = {
  dispatcher: Dispatcher;
  /**
   * Why the request certainly wasn't sent: the connection couldn't be opened, or TLS failed. Null if its first byte may have left, after which
   * no error tells how far it got.
   */
  whyNotSent(error: unknown): string | null;
};

/** What an operator has to look for. */
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

/** @param timeout in ms, for connecting, TLS included. Shorter than what the caller waits for the answer */
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
    whyNotSent(error) {
      if (!(error instanceof Error) || !notSent.has(error)) return null;
      const code = codeOf(error);
      return reasons[code] ?? (code || error.message);
    },
  };
}
