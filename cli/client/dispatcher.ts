import type { Dispatcher } from 'undici';
import { createConnections, invalidProxyAddress, readProxyAddress } from '#contract/connections.ts';
import { withDeadline } from '#contract/deadline.ts';
import { CallkeyError } from './errors.ts';

const maxResponseBytes = 1024 * 1024;

/**
 * Creates connections to a core, through the proxy in HTTPS_PROXY unless NO_PROXY includes the core.
 *
 * @param timeout how long a complete response may take, in milliseconds
 * @throws CallkeyError `usage` if HTTPS_PROXY isn't a valid address
 */
export function createDispatcher(server: string, connections: number, timeout: number): Dispatcher {
  const proxy = server.startsWith('http:') ? '' : readProxyAddress(process.env);
  if (proxy === null) throw new CallkeyError('usage', invalidProxyAddress);
  return createConnections({
    server,
    // Turns off undici's own timeouts, because withDeadline limits the time for the whole response.
    agent: { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxResponseSize: maxResponseBytes },
    proxy,
    proxyTimeout: timeout,
  }).compose(withDeadline(timeout));
}
