import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import { CallkeyError, errorCode } from './errors.ts';

const timeouts = { connect: 5_000, answer: 10_000 };
const largestAnswer = 1024 * 1024;
/** The client is a library, too: whatever NODE_TLS_REJECT_UNAUTHORIZED says, no stranger gets the key. */
const checked = { rejectUnauthorized: true };

/**
 * Connections to a core, through the proxy of HTTPS_PROXY unless NO_PROXY names the core, both also in lower case.
 *
 * @throws CallkeyError `usage` where HTTPS_PROXY is no address
 */
export function createDispatcher(server: string, connections: number): Dispatcher {
  const options = {
    connections,
    pipelining: 1,
    connect: { timeout: timeouts.connect, ...checked },
    headersTimeout: timeouts.answer,
    bodyTimeout: timeouts.answer,
    maxResponseSize: largestAnswer,
  };
  // Without TLS a proxy would see the key; and only this very machine is spoken to without.
  if (server.startsWith('http:')) return new Agent(options);
  // Its connection to the proxy, and the proxy's answer, know nothing of `connect` and `headersTimeout`.
  return new EnvHttpProxyAgent({
    ...options,
    connectTimeout: timeouts.connect,
    requestTls: checked,
    clientFactory: toProxy,
    httpProxy: '',
    httpsProxy: proxyAddress(),
  });
}

const connectToProxy = buildConnector({ timeout: timeouts.connect, ...checked });

/** Connections to a proxy. Where there is none, the error says so: the server is not to blame. */
function toProxy(proxy: URL): Dispatcher {
  return new Pool(proxy, {
    headersTimeout: timeouts.answer,
    connect: (target, callback) =>
      connectToProxy(target, (...[error, socket]) => {
        if (error === null) callback(null, socket);
        else callback(isOfNetwork(error) ? new errors.ProxyConnectionError(error) : error, null);
      }),
  });
}

/** Not of the proxy's certificate. */
function isOfNetwork(error: Error): boolean {
  return /^E(?!RR_)|^UND_ERR_CONNECT_TIMEOUT$/.test(errorCode(error) ?? '');
}

/** @returns empty where there is none */
function proxyAddress(): string {
  const given = process.env['https_proxy'] ?? process.env['HTTPS_PROXY'] ?? '';
  if (given === '') return '';
  // As curl and others take it.
  const address = given.includes('://') ? given : `http://${given}`;
  const url = URL.parse(address);
  if (url && /^(https?|socks5?):$/.test(url.protocol) && isDecodable(url.username + url.password)) return address;
  // It may hold a password: it is not repeated.
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
