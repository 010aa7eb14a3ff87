export const tlsChecksWarning =
  'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always checked. To trust your own certificate authority, set NODE_EXTRA_CA_CERTS.';

/**
 * Node.js reads the variable for each connection, and a forgotten setting would expose keys, passwords and contacts to anyone on the network.
 *
 * @returns whether the checks had been turned off
 */
export function restoreTlsChecks(environment: Record<string, string | undefined>): boolean {
  const wereOff = environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0';
  delete environment['NODE_TLS_REJECT_UNAUTHORIZED'];
  return wereOff;
}
