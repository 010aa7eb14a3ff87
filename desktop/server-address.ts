import { isLoopback, readServerAddress } from '#contract/server-address.ts';

/** Reads a server's address as people type it. Without a scheme, it is https; http for this very machine, where a core begins without TLS. */
export function readTypedAddress(typed: string): ReturnType<typeof readServerAddress> {
  const text = typed.trim();
  if (text.includes('://')) return readServerAddress(text);
  const host = URL.parse(`http://${text}`)?.hostname ?? '';
  return readServerAddress(`${isLoopback(host) ? 'http' : 'https'}://${text}`);
}
