import { errors } from 'undici';
import { CallkeyError, errorCode } from './errors.ts';

/** What may pass: the request is sent again. */
const temporary: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection broke off',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  UND_ERR_SOCKET: 'the connection broke off',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'no complete answer in time',
  UND_ERR_HEADERS_OVERFLOW: 'the answer has too many headers',
  UND_ERR_PRX_CONN: 'the proxy broke the connection off',
};

/**
 * Why no answer came, where another try may get one.
 *
 * @throws CallkeyError `failed` where it cannot: this request was not sent. The error itself where it did not come from the network
 */
export function temporaryReason(error: unknown, server: string): string {
  // Some of these have a code, some have none.
  if (error instanceof errors.HTTPParserError) return 'the answer is not HTTP';
  const code = errorCode(error);
  if (code === undefined || code.startsWith('UND_ERR_INVALID')) throw error;
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const message = `The answer of ${server} is longer than any of a Callkey core. Check the server address.`;
    throw new CallkeyError('failed', message, { cause: error });
  }
  const certificate = certificateProblem(code);
  if (certificate !== undefined) {
    throw new CallkeyError('failed', `Could not trust ${server}: ${certificate}`, { code: 'untrusted-certificate', cause: error });
  }
  if (/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/.test(code)) {
    const message = `${server} does not speak TLS. Check the address and its port.`;
    throw new CallkeyError('failed', message, { code: 'untrusted-certificate', cause: error });
  }
  return proxyReason(error) ?? temporary[code] ?? code;
}

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
