import { session } from 'electron';
import { readProxyAddress } from '#contract/connections.ts';

/** How to reach a server: the proxy's address, or empty for a direct connection, and the servers that don't use it. */
export type ProxyChoice = { proxy: string | null; noProxy?: string };

const schemes: Readonly<Record<string, string>> = { PROXY: 'http', HTTPS: 'https', SOCKS5: 'socks5' };

/** Chooses the proxy for a server: the one in HTTPS_PROXY, as in the command line. Without it, the one in the system's settings. */
export async function chooseProxy(server: string): Promise<ProxyChoice> {
  if (server.startsWith('http:')) return { proxy: '' };
  const proxy = readProxyAddress(process.env);
  if (proxy !== '') return { proxy };
  // Returns a list such as `PROXY proxy.example.com:3128; DIRECT`, in order of preference.
  const [first = ''] = (await session.defaultSession.resolveProxy(server)).split(';');
  const [kind = '', host = ''] = first.trim().split(' ');
  const scheme = schemes[kind];
  return { proxy: scheme === undefined ? '' : `${scheme}://${host}`, noProxy: '' };
}
