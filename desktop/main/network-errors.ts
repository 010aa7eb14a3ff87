import { proxyStatus, unsentCodes } from '#contract/proxies.ts';
import { isLoopback } from '#contract/server-address.ts';
import type { Failure } from '../ipc.ts';

/** Says why the proxy can't be used. Nothing was sent, because a direct connection could be against the administrator's rules. */
export class UnusableProxy extends Error {}

const slow = 'The server took too long to respond. Check that it’s running.';
const noHttp = 'The server doesn’t use HTTP at this address. Try https://.';

/** For each error code of Node.js and undici, what happened and what to check. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused. Check the address, and make sure that the server is running.',
  ENOTFOUND: 'Server not found. Check the address.',
  EAI_AGAIN: 'The name lookup failed. Check this computer’s network connection.',
  ENETUNREACH: 'The network is unreachable. Check this computer’s network connection.',
  EHOSTUNREACH: 'The server is unreachable. Check the address and the network.',
  ETIMEDOUT: slow,
  UND_ERR_CONNECT_TIMEOUT: slow,
  UND_ERR_HEADERS_TIMEOUT: slow,
  UND_ERR_BODY_TIMEOUT: slow,
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'The server’s response was too large. Check the address.',
  CERT_HAS_EXPIRED: 'The server’s certificate has expired. Ask your administrator to renew it.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The server’s certificate is for a different host name. Check the address.',
  UND_ERR_PRX_TLS: 'The proxy’s certificate is for a different host name. Check the proxy’s address.',
  HPE_INVALID_CONSTANT: noHttp,
  HPE_INVALID_VERSION: noHttp,
};

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?))$/;
const notTls = /^(?:ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST|EPROTO)$/;
const lost = /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/;

/** Says why the server didn't respond, and whether the request can't have been sent. @param proxy empty for a direct connection */
export function toNetworkFailure(error: unknown, server: string, proxy: string): Extract<Failure, { kind: 'unreachable' }> {
  if (error instanceof UnusableProxy) return { kind: 'unreachable', detail: error.message, isUnsent: true };
  const code = errorCode(error);
  const status = proxyStatus(error) ?? proxyStatus(error instanceof Error && error.cause);
  const isCertificate = untrusted.test(code) || /^(?:CERT_|ERR_TLS_CERT_|UND_ERR_PRX_)/.test(code);
  const isUnsent = status !== undefined || isCertificate || notTls.test(code) || unsentCodes.some((each) => each === code);
  const detail = status === undefined ? describeCode(code, server, proxy) : describeRefusal(status, proxy);
  return { kind: 'unreachable', detail, ...(isUnsent && { isUnsent }) };
}

function describeCode(code: string, server: string, proxy: string): string {
  const { protocol, hostname } = new URL(server);
  if (notTls.test(code)) {
    // Suggest http only for this computer, because the console refuses it for others.
    return `The server doesn’t use HTTPS at this address. ${isLoopback(hostname) ? 'Try http://.' : 'Check the port.'}`;
  }
  if (untrusted.test(code)) {
    return 'This computer doesn’t trust the server’s certificate. Ask your administrator to install the certificate authority that issued it.';
  }
  if (code === 'UND_ERR_PRX_CONN')
    return `The proxy ${proxyHost(proxy)} isn’t responding. Check this computer’s network and proxy settings.`;
  if (lost.test(code)) {
    return protocol === 'http:'
      ? 'The server closed the connection. If it uses HTTPS, enter https:// in front of its address. Otherwise, check that it’s running.'
      : 'The server closed the connection. Check that it’s running.';
  }
  return reasons[code] ?? `Connection failed${code === '' ? '' : ` (${code})`}. Check the address and your network connection.`;
}

function describeRefusal(status: number, proxy: string): string {
  const says = `The proxy ${proxyHost(proxy)} returned ${status}.`;
  if (status === 407) return `${says} It requires a username and password: start the app with HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.`;
  if (status >= 500) return `${says} It can’t reach the server. Check that the server is running.`;
  return `${says} It doesn’t allow this server. Ask your administrator, or add the server to NO_PROXY.`;
}

/** Without the username and password. */
function proxyHost(proxy: string): string {
  return URL.parse(proxy)?.host ?? '';
}

/** Returns the code of an error or of its cause. If several addresses were tried, returns the first one's code. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string' && !(error instanceof AggregateError)) return error.code;
  if (error instanceof AggregateError) return errorCode(error.errors[0]);
  return errorCode(error.cause);
}
