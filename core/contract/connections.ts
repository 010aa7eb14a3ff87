import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import { withDeadline } from './deadline.ts';

/** An untrusted server must not get a secret, whatever NODE_TLS_REJECT_UNAUTHORIZED says in the program that uses this. */
const checked = { rejectUnauthorized: true };
const connectTimeout = 5_000;

/**
 * @property agent options for the connections to the core
 * @property ca the certificates of trusted authorities, instead of Node.js's own
 * @property proxy the proxy's address; empty for a direct connection
 * @property noProxy the servers that are contacted directly. By default, NO_PROXY
 * @property proxyTimeout how long the proxy may take to connect, in ms
 */
type ConnectionOptions = {
  server: string;
  agent: Omit<Agent.Options, 'connect'>;
  ca?: string[];
  proxy: string;
  noProxy?: string;
  proxyTimeout: number;
};

/** Creates connections to a core, directly or through a proxy, which sees only the server's name, because the requests are encrypted. */
export function createConnections({ server, agent, ca, proxy, noProxy, proxyTimeout }: ConnectionOptions): Dispatcher {
  const tls = { ...checked, ...(ca && { ca }) };
  const options = { ...agent, connect: { timeout: connectTimeout, ...tls } };
  // Doesn't use a proxy, which would see the secrets without TLS. Only the local machine is contacted without TLS.
  if (server.startsWith('http:')) return new Agent(options);
  // The option `connect` doesn't apply to the proxy.
  return new EnvHttpProxyAgent({
    ...options,
    connectTimeout,
    requestTls: tls,
    clientFactory: (address: URL) => toProxy(address, tls).compose(withDeadline(proxyTimeout)),
    httpProxy: '',
    httpsProxy: proxy,
    ...(noProxy !== undefined && { noProxy }),
  });
}

/** Creates connections to a proxy. If the proxy can't be reached, the error names it instead of the server. */
function toProxy(proxy: URL, tls: object): Dispatcher {
  const connect = buildConnector({ timeout: connectTimeout, ...tls });
  return new Pool(proxy, {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, callback) =>
      connect(target, (...[error, socket]) => {
        if (error === null) callback(null, socket);
        else callback(isNetworkError(error) ? new errors.ProxyConnectionError(error) : error, null);
      }),
  });
}

/** Whether an error is about the network. Errors about the proxy's certificate aren't. */
function isNetworkError(error: Error): boolean {
  return /^E(?!RR_)|^UND_ERR_CONNECT_TIMEOUT$/.test('code' in error ? String(error.code) : '');
}

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

/** Returns the status with which a proxy refused to connect. The request wasn't sent. @returns undefined for any other error */
export function proxyStatus(error: unknown): number | undefined {
  return Number(error instanceof Error && /^Proxy response \((\d+)\)/.exec(error.message)?.[1]) || undefined;
}

/**
 * Reads the proxy's address in HTTPS_PROXY, whose name also works in lowercase.
 *
 * @returns an empty string if the variable isn't set, or null if it isn't valid. It may contain a password, so don't repeat it
 */
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

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
