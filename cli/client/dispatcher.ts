import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { CallkeyError } from './errors.ts';

const timeouts = { connect: 5_000, answer: 10_000 };
const largestAnswer = 1024 * 1024;

/**
 * Connections to a core, through the proxy of HTTPS_PROXY unless NO_PROXY names the core, both also in lower case.
 *
 * @throws CallkeyError `usage` where HTTPS_PROXY is no address
 */
export function createDispatcher(server: string, connections: number): Dispatcher {
  const options = {
    connections,
    pipelining: 1,
    connect: { timeout: timeouts.connect },
    headersTimeout: timeouts.answer,
    bodyTimeout: timeouts.answer,
    maxResponseSize: largestAnswer,
  };
  // Without TLS a proxy would see the key; and only this very machine is spoken to without.
  if (server.startsWith('http:')) return new Agent(options);
  return new EnvHttpProxyAgent({ ...options, httpProxy: '', httpsProxy: proxyAddress() });
}

/** @returns empty where there is none */
function proxyAddress(): string {
  const given = process.env['https_proxy'] ?? process.env['HTTPS_PROXY'] ?? '';
  if (given === '') return '';
  // As curl and others take it.
  const address = given.includes('://') ? given : `http://${given}`;
  if (/^(https?|socks5?):$/.test(URL.parse(address)?.protocol ?? '')) return address;
  // It may hold a password: it is not repeated.
  throw new CallkeyError(
    'usage',
    'HTTPS_PROXY is no address of a proxy. Set it to one such as http://proxy.example.com:3128, or unset it.',
  );
}
