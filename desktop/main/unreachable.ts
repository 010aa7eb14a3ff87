/** What Node and undici call the ways in which a server can be out of reach, in plain words. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Nothing listens at that address.',
  ECONNRESET: 'The connection was cut.',
  UND_ERR_SOCKET: 'The connection was cut.',
  ENOTFOUND: 'There is no server of that name.',
  EAI_AGAIN: 'The name could not be looked up. Is this machine online?',
  ENETUNREACH: 'There is no way to that network. Is this machine online?',
  EHOSTUNREACH: 'There is no way to that server.',
  ETIMEDOUT: 'The server took too long to answer.',
  UND_ERR_CONNECT_TIMEOUT: 'The server took too long to answer.',
  UND_ERR_HEADERS_TIMEOUT: 'The server took too long to answer.',
  UND_ERR_BODY_TIMEOUT: 'The server took too long to answer.',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'The answer was too large.',
  CERT_HAS_EXPIRED: 'The server’s certificate has expired.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The server’s certificate is for another name.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The server does not speak https there. Is it http?',
  EPROTO: 'The server does not speak https there. Is it http?',
  HPE_INVALID_CONSTANT: 'The server does not speak http there. Is it https?',
};

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?))$/;

/** Why a request had no answer, as a sentence for people. */
export function whyUnreachable(error: unknown): string {
  const code = codeOf(error);
  if (untrusted.test(code)) {
    return 'This machine does not trust the server’s certificate. Have your administrator install the authority that signed it.';
  }
  return reasons[code] ?? `The connection failed${code === '' ? '' : ` (${code})`}.`;
}

/** The code of an error, or of the first one that it stands for: several addresses may have been tried. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return codeOf(error.cause);
}
