import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import { withDeadline } from './deadline.ts';
import { CallkeyError, errorCode } from './errors.ts';

const connectTimeout = 5_000;
/** Turns off undici's own timeouts, because withDeadline limits the time for the whole response. */
const noTimeouts = { headersTimeout: 0, bodyTimeout: 0 };
const maxResponseBytes = 1024 * 1024;
/** An untrusted server must not get the key, whatever NODE_TLS_REJECT_UNAUTHORIZED says in the program that uses this library. */
const checked = { rejectUnauthorized: true };

/**
 * Creates connections to a core, through the proxy in HTTPS_PROXY unless NO_PROXY includes the core. Both names also work in lowercase.
 *
 * @param timeout how long a complete response may take, in milliseconds
 * @throws CallkeyError `usage` if HTTPS_PROXY isn't a valid address
 */
export function createDispatcher(server: string, connections: number, timeout: number): Dispatcher {
  const options = {
    connections,
    pipelining: 1,
    connect: { timeout: connectTimeout, ...checked },
    ...noTimeouts,
    maxResponseSize: maxResponseBytes,
  };
  const deadline = withDeadline(timeout);
  // Doesn't use a proxy, which would see the key without TLS. Only the local machine is contacted without TLS.
  if (server.startsWith('http:')) return new Agent(options).compose(deadline);
  // The options `connect` and `headersTimeout` don't apply to the proxy. Instead, `toProxy` and `deadline` limit the connection to it and
  // its response.
  return new EnvHttpProxyAgent({
    ...options,
    connectTimeout,
    requestTls: checked,
    clientFactory: (proxy: URL) => toProxy(proxy).compose(deadline),
    httpProxy: '',
    httpsProxy: proxyAddress(),
  }).compose(deadline);
}

const connectToProxy = buildConnector({ timeout: connectTimeout, ...checked });

/** Creates connections to a proxy. If the proxy can't be reached, the error names it instead of the server. */
function toProxy(proxy: URL): Dispatcher {
  return new Pool(proxy, {
    ...noTimeouts,
    connect: (target, callback) =>
      connectToProxy(target, (...[error, socket]) => {
        if (error === null) callback(null, socket);
        else callback(isNetworkError(error) ? new errors.ProxyConnectionError(error) : error, null);
      }),
  });
}

/** Whether an error is about the network. Errors about the proxy's certificate aren't. */
function isNetworkError(error: Error): boolean {
  return /^E(?!RR_)|^UND_ERR_CONNECT_TIMEOUT$/.test(errorCode(error) ?? '');
}

/** Returns the proxy's address, or an empty string if the variable isn't set. */
function proxyAddress(): string {
  const value = process.env['https_proxy'] ?? process.env['HTTPS_PROXY'] ?? '';
  if (value === '') return '';
  // Accept an address without a scheme, as curl and other programs do.
  const address = value.includes('://') ? value : `http://${value}`;
  const url = URL.parse(address);
  if (url && /^(https?|socks5?):$/.test(url.protocol) && isDecodable(url.username + url.password)) return address;
  // The address may contain a password, so it isn't repeated.
  throw new CallkeyError(
    'usage',
    "HTTPS_PROXY isn't a valid proxy address. Set it to an address such as http://proxy.example.com:3128, or unset it. In the password, write % as %25.",
  );
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
