import { errors } from 'undici';
import { proxyStatus, type unsentCodes } from '#contract/proxies.ts';
import { CallkeyError, errorCode } from './errors.ts';

/** Temporary errors that occur before the request is sent. */
const beforeSending: Readonly<Record<(typeof unsentCodes)[number], string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name lookup failed',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
  UND_ERR_PRX_CONN: "the proxy in HTTPS_PROXY isn't responding",
};

/** Temporary errors after which the request may or may not have arrived. */
const afterSending: Readonly<Record<string, string>> = {
  ECONNRESET: 'connection lost',
  UND_ERR_SOCKET: 'connection lost',
  UND_ERR_HEADERS_TIMEOUT: 'no response in time',
  UND_ERR_BODY_TIMEOUT: 'no complete response in time',
  UND_ERR_HEADERS_OVERFLOW: 'the response has too many headers',
};

/** @property mayHaveArrived whether the core may have processed the request */
export type ConnectionFailure = { reason: string; mayHaveArrived: boolean };

/**
 * Returns the reason why there was no response, if a retry may help.
 *
 * @throws CallkeyError `failed` if a retry can't help, in which case this request wasn't sent; the error itself if it isn't a network error
 */
export function toConnectionFailure(error: unknown, server: string): ConnectionFailure {
  // Compare the class, because only some of these errors have a code.
  if (error instanceof errors.HTTPParserError) return { reason: "the response isn't HTTP", mayHaveArrived: true };
  const code = errorCode(error);
  if (code === undefined || code.startsWith('UND_ERR_INVALID')) throw error;
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const message = `The response from ${server} is too large for a Callkey core. Check the server address.`;
    throw new CallkeyError('failed', message, { cause: error });
  }
  if (/^ERR_SSL_.*(VERSION|PROTOCOL|HANDSHAKE|CERTIFICATE|INSUFFICIENT|UNRECOGNIZED_NAME)/.test(code) && code !== wrongVersion) {
    const message = `${server} and this machine couldn't agree on TLS (${code}): their TLS versions don't match, or the server requires a client certificate, which callkey doesn't support.`;
    throw new CallkeyError('failed', message, { code: 'untrusted-certificate', cause: error });
  }
  const certificate = certificateProblem(code);
  if (certificate !== undefined) {
    throw new CallkeyError('failed', `Can't trust ${server}: ${certificate}`, { code: 'untrusted-certificate', cause: error });
  }
  if (code === wrongVersion || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    const message = `${server} doesn't use TLS. Check the address and the port.`;
    throw new CallkeyError('failed', message, { code: 'untrusted-certificate', cause: error });
  }
  const unsent = proxyReason(error) ?? (isUnsentCode(code) ? beforeSending[code] : undefined);
  return unsent === undefined ? { reason: afterSending[code] ?? code, mayHaveArrived: true } : { reason: unsent, mayHaveArrived: false };
}

function isUnsentCode(code: string): code is keyof typeof beforeSending {
  return Object.hasOwn(beforeSending, code);
}

/** OpenSSL's code for a response that isn't TLS. */
const wrongVersion = 'ERR_SSL_WRONG_VERSION_NUMBER';

/** Describes an error code about a certificate, from OpenSSL (X509_STORE_CTX_get_error(3)) or Node.js. */
function certificateProblem(code: string): string | undefined {
  if (code === 'CERT_HAS_EXPIRED') return "its certificate has expired, or this machine's clock is wrong.";
  if (code === 'CERT_NOT_YET_VALID') return "its certificate isn't valid yet, or this machine's clock is wrong.";
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'its certificate is for a different host name. Check the address.';
  if (code === 'UND_ERR_PRX_TLS') return "the proxy's certificate is for a different host name. Check HTTPS_PROXY.";
  return /CERT|SELF_SIGNED|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/.test(code)
    ? `its certificate wasn't issued by an authority that this machine trusts (${code}). To add an authority, set NODE_EXTRA_CA_CERTS=FILE.`
    : undefined;
}

/** @throws CallkeyError `failed` if the proxy refuses */
function proxyReason(error: unknown): string | undefined {
  const status = proxyStatus(error);
  if (status === undefined) return undefined;
  if (status >= 500) return `the proxy returned ${status}`;
  const advice =
    status === 407
      ? 'It requires a username and password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.'
      : 'To bypass the proxy, add the server to NO_PROXY.';
  throw new CallkeyError('failed', `The proxy in HTTPS_PROXY returned ${status}. ${advice}`, { code: 'proxy-refused', cause: error });
}
