import { errors } from 'undici';
import { CallkeyError, errorCode } from './errors.ts';

/** What may pass, and comes before the request is sent. */
const beforeSending: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_PRX_CONN: 'the proxy of HTTPS_PROXY does not answer',
};

/** What may pass, and leaves open whether the request has arrived. */
const afterSending: Readonly<Record<string, string>> = {
  ECONNRESET: 'the connection broke off',
  UND_ERR_SOCKET: 'the connection broke off',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'no complete answer in time',
  UND_ERR_HEADERS_OVERFLOW: 'the answer has too many headers',
};

/** @property mayHaveArrived whether the core may have done what it was asked to */
export type NoAnswer = { reason: string; mayHaveArrived: boolean };

/**
 * Why no answer came, where another try may get one.
 *
 * @throws CallkeyError `failed` where it cannot: this request was not sent. The error itself where it did not come from the network
 */
export function noAnswerOf(error: unknown, server: string): NoAnswer {
  // Some of these have a code, some have none.
  if (error instanceof errors.HTTPParserError) return { reason: 'the answer is not HTTP', mayHaveArrived: true };
  const code = errorCode(error);
  if (code === undefined || code.startsWith('UND_ERR_INVALID')) throw error;
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const message = `The answer of ${server} is longer than any of a Callkey core. Check the server address.`;
    throw new CallkeyError('failed', message, { cause: error });
  }
  if (/^ERR_SSL_.*(VERSION|PROTOCOL|HANDSHAKE|CERTIFICATE|INSUFFICIENT|UNRECOGNIZED_NAME)/.test(code) && code !== wrongVersion) {
    const message = `${server} and this machine do not agree on TLS (${code}): on a version, or on a certificate of the client, which callkey has none of.`;
    throw new CallkeyError('failed', message, { code: 'untrusted-certificate', cause: error });
  }
  const certificate = certificateProblem(code);
  if (certificate !== undefined) {
    throw new CallkeyError('failed', `Could not trust ${server}: ${certificate}`, { code: 'untrusted-certificate', cause: error });
  }
  if (code === wrongVersion || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    const message = `${server} does not speak TLS. Check the address and its port.`;
    throw new CallkeyError('failed', message, { code: 'untrusted-certificate', cause: error });
  }
  const unsent = proxyReason(error) ?? beforeSending[code];
  return unsent === undefined ? { reason: afterSending[code] ?? code, mayHaveArrived: true } : { reason: unsent, mayHaveArrived: false };
}

/** What OpenSSL makes of an answer that is not TLS. */
const wrongVersion = 'ERR_SSL_WRONG_VERSION_NUMBER';

/** The codes are OpenSSL's (X509_STORE_CTX_get_error(3)) and Node's own. */
function certificateProblem(code: string): string | undefined {
  if (code === 'CERT_HAS_EXPIRED') return "its certificate has expired, or this machine's clock is wrong.";
  if (code === 'CERT_NOT_YET_VALID') return "its certificate is not valid yet, or this machine's clock is wrong.";
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'its certificate is for another name. Check the address.';
  if (code === 'UND_ERR_PRX_TLS') return "the proxy's certificate is for another name. Check HTTPS_PROXY.";
  return /CERT|SELF_SIGNED|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/.test(code)
    ? `no authority that this machine knows has signed its certificate (${code}). NODE_EXTRA_CA_CERTS=FILE adds an authority.`
    : undefined;
}

/** @throws CallkeyError `failed` where the proxy refuses */
function proxyReason(error: unknown): string | undefined {
  const status = Number(error instanceof Error && /^Proxy response \((\d+)\)/.exec(error.message)?.[1]);
  if (!status) return undefined;
  if (status >= 500) return `the proxy answers ${status}`;
  const advice =
    status === 407
      ? 'It wants a user and a password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.'
      : 'Name the server in NO_PROXY to go without it.';
  throw new CallkeyError('failed', `The proxy of HTTPS_PROXY answers ${status}. ${advice}`, { code: 'proxy-refused', cause: error });
}
