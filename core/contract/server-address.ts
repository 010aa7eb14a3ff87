/** @returns the address of a core without a trailing slash, or an error that says what to do */
export function readServerAddress(text: string): { ok: true; address: string } | { ok: false; problem: string } {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return { ok: false, problem: `"${text}" isn't a server address. Use an address such as https://calls.example.com` };
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    return { ok: false, problem: 'The server address can have only a host, a port and a path.' };
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return { ok: false, problem: `Keys and passwords would cross the network unencrypted. Use https://${url.host}` };
  }
  return { ok: true, address: (url.origin + url.pathname).replace(/\/+$/, '') };
}

/** Whether a host is this machine. @param host as in a URL (with every IPv4 address in dotted decimal), or a plain address */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

export function isDecodable(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
