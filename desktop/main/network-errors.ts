import { isLoopback } from '#contract/server-address.ts';

/** For each error code of Node.js and undici, what happened and what to check. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused. Check the address, and make sure that the server is running.',
  ECONNRESET: 'The server closed the connection. Check that it’s running.',
  UND_ERR_SOCKET: 'The server closed the connection. Check that it’s running.',
  ENOTFOUND: 'Server not found. Check the address.',
  EAI_AGAIN: 'The name lookup failed. Check this computer’s network connection.',
  ENETUNREACH: 'The network is unreachable. Check this computer’s network connection.',
  EHOSTUNREACH: 'The server is unreachable. Check the address and the network.',
  ETIMEDOUT: 'The server took too long to respond. Check that it’s running.',
  UND_ERR_CONNECT_TIMEOUT: 'The server took too long to respond. Check that it’s running.',
  UND_ERR_HEADERS_TIMEOUT: 'The server took too long to respond. Check that it’s running.',
  UND_ERR_BODY_TIMEOUT: 'The server took too long to respond. Check that it’s running.',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'The server’s response was too large. Check the address.',
  CERT_HAS_EXPIRED: 'The server’s certificate has expired. Ask your administrator to renew it.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The server’s certificate is for a different host name. Check the address.',
  HPE_INVALID_CONSTANT: 'The server doesn’t use HTTP at this address. Try https://.',
};

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?))$/;

/** Says why the server didn't respond, and what to check. */
export function describeNetworkError(error: unknown, server: string): string {
  const code = errorCode(error);
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO') {
    // Suggest http only for this computer, because the console refuses it for others.
    return `The server doesn’t use HTTPS at this address. ${isLoopback(new URL(server).hostname) ? 'Try http://.' : 'Check the port.'}`;
  }
  if (untrusted.test(code)) {
    return 'This computer doesn’t trust the server’s certificate. Ask your administrator to install the certificate authority that issued it.';
  }
  return reasons[code] ?? `Connection failed${code === '' ? '' : ` (${code})`}. Check the address and your network connection.`;
}

/** Returns the code of an error or of its cause. If several addresses were tried, returns the first one's code. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (error instanceof AggregateError) return errorCode(error.errors[0]);
  return errorCode(error.cause);
}
