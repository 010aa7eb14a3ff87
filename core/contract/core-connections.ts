import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import { withDeadline } from './request-deadline.ts';

/** An untrusted server must not get a secret, whatever NODE_TLS_REJECT_UNAUTHORIZED says in the program that uses this. */
const checked = { rejectUnauthorized: true };
const connectTimeout = 5_000;

/**
 * @property agent options for the connections to the core
 * @property ca replaces Node.js's own certificate authorities
 * @property proxy empty for a direct connection
 * @property noProxy by default, NO_PROXY
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

/** If the proxy can't be reached, the error names it instead of the server. */
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

/** Errors about the proxy's certificate aren't. */
function isNetworkError(error: Error): boolean {
  return /^E(?!RR_)|^UND_ERR_CONNECT_TIMEOUT$/.test('code' in error ? String(error.code) : '');
}
