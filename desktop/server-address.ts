import { isLoopback, readServerAddress } from '#contract/server-address.ts';

/**
 * Parses a server address as people type it. The default scheme is https, or http for the local machine, where a core starts without TLS.
 */
export function readTypedAddress(typed: string): ReturnType<typeof readServerAddress> {
  const text = typed.trim();
  if (text.includes('://')) return readServerAddress(text);
  const host = URL.parse(`http://${text}`)?.hostname ?? '';
  return readServerAddress(`${isLoopback(host) ? 'http' : 'https'}://${text}`);
}

/** Returns the address of a server's page for integrators. */
export function referenceUrl(server: string): string {
  return `${server.replace(/\/+$/, '')}/reference`;
}
