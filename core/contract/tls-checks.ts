export const tlsChecksWarning =
  'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always checked. To trust your own certificate authority, set NODE_EXTRA_CA_CERTS.';

/**
 * Turns certificate checks on, even if the environment turns them off. Node.js reads the variable for each connection, and a forgotten
 * setting would expose keys, passwords and contacts to anyone on the network.
 *
 * @param environment the process's environment variables
 * @returns whether the checks had been turned off
 */
export function restoreTlsChecks(environment: Record<string, string | undefined>): boolean {
  const wereOff = environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0';
  delete environment['NODE_TLS_REJECT_UNAUTHORIZED'];
  return wereOff;
}
