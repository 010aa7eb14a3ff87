import { isLoopback, readServerAddress } from '#contract/server-address.ts';

/** Parses a server's address as people type it, or a link. By default, it's https, but http for this computer, where cores have no TLS. */
export function readTypedAddress(typed: string): ReturnType<typeof readServerAddress> {
  // The screen's address comes after the server's: https://calls.example.com/#/api-keys?search=Blue
  const text = typed.trim().replace(/[?#].*$/s, '');
  if (text.includes('://')) return readServerAddress(text);
  const host = URL.parse(`http://${text}`)?.hostname ?? '';
  return readServerAddress(`${isLoopback(host) ? 'http' : 'https'}://${text}`);
}

/** A link's own scheme, which opens the app instead of a browser. */
export const linkScheme = 'callkey';

export function isLink(text: string): boolean {
  return /^(?:https?|callkey):\/\/\S+$/i.test(text.trim());
}

/** Reads a link to a screen: the server's address, and the part after it. */
export function readLink(link: string): ReturnType<typeof readServerAddress> & { screen: string } {
  const text = link.trim().replace(/^callkey:\/\//i, '');
  return { ...readTypedAddress(text), screen: /#\/.*$/s.exec(text)?.[0] ?? '' };
}

/** Returns the address of a server's page for integrators. */
export function referenceUrl(server: string): string {
  return `${server.replace(/\/+$/, '')}/reference`;
}
