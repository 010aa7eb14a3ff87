import { isDecodable } from './server-address.ts';

// Doesn't load undici, so that the app can start without it.

/** Error codes that occur before the request is sent. */
export const unsentCodes = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_PRX_CONN',
] as const;

/** Returns the status with which a proxy refused to connect, so that the request wasn't sent. */
export function proxyStatus(error: unknown): number | undefined {
  return Number(error instanceof Error && /^Proxy response \((\d+)\)/.exec(error.message)?.[1]) || undefined;
}

/** Returns an empty string if HTTPS_PROXY isn't set, or null if it isn't valid. It may contain a password, so don't repeat it. */
export function readProxyAddress(environment: Readonly<Record<string, string | undefined>>): string | null {
  const value = environment['https_proxy'] ?? environment['HTTPS_PROXY'] ?? '';
  if (value === '') return '';
  // Accept an address without a scheme, as curl and other programs do.
  const address = value.includes('://') ? value : `http://${value}`;
  const url = URL.parse(address);
  return url && /^(https?|socks5?):$/.test(url.protocol) && isDecodable(url.username + url.password) ? address : null;
}

export const invalidProxyAddress =
  "HTTPS_PROXY isn't a valid proxy address. Set it to an address such as http://proxy.example.com:3128, or unset it. In the password, write % as %25.";
