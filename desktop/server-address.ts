import { isLoopback, readServerAddress } from '#contract/server-address.ts';

/**
 * Parses a server address as people type it, or a link to one of its screens. The default scheme is https, or http for the local machine,
 * where a core starts without TLS.
 */
export function readTypedAddress(typed: string): ReturnType<typeof readServerAddress> {
  // The screen's address comes after the server's: https://calls.example.com/#/api-keys?search=Blue
  const text = typed.trim().replace(/[?#].*$/s, '');
  if (text.includes('://')) return readServerAddress(text);
  const host = URL.parse(`http://${text}`)?.hostname ?? '';
  return readServerAddress(`${isLoopback(host) ? 'http' : 'https'}://${text}`);
}

/** Returns the address of a server's page for integrators. */
export function referenceUrl(server: string): string {
  return `${server.replace(/\/+$/, '')}/reference`;
}
