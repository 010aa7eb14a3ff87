import { session } from 'electron';
import { invalidProxyAddress, readProxyAddress } from '#contract/connections.ts';
import { UnusableProxy } from './network-errors.ts';

/** How to reach a server: the proxy's address, or empty for a direct connection, and the servers that don't use it. */
export type ProxyChoice = { proxy: string; noProxy?: string };

const schemes: Readonly<Record<string, string>> = { PROXY: 'http', HTTPS: 'https', SOCKS5: 'socks5' };

/**
 * Chooses the proxy for a server: the one in HTTPS_PROXY, as in the command line. Without it, the one in the system's settings.
 *
 * @throws UnusableProxy
 */
export async function chooseProxy(server: string): Promise<ProxyChoice> {
  if (server.startsWith('http:')) return { proxy: '' };
  const proxy = readProxyAddress(process.env);
  if (proxy === null) throw new UnusableProxy(invalidProxyAddress);
  if (proxy !== '') return { proxy };
  // Returns a list such as `PROXY proxy.example.com:3128; DIRECT`, in order of preference.
  const [first = ''] = (await session.defaultSession.resolveProxy(server)).split(';');
  const [kind = '', host = ''] = first.trim().split(' ');
  if (kind === '' || kind === 'DIRECT') return { proxy: '' };
  const scheme = schemes[kind];
  if (scheme === undefined) throw new UnusableProxy(unsupportedProxy(kind === 'SOCKS' ? 'SOCKS4' : kind, host));
  return { proxy: `${scheme}://${host}`, noProxy: '' };
}

function unsupportedProxy(kind: string, host: string): string {
  return `The proxy ${host} in this computer’s settings uses ${kind}, which the console doesn’t support. Use an HTTP, HTTPS or SOCKS5 proxy.`;
}
