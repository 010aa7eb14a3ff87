import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshDirectory } from './databases.ts';

export const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });

/** Creates a certificate for localhost that no one trusts. Returns the environment variables with which a core uses it. */
export function selfSignedCertificate({ days = 2 } = {}): { TLS_CERT_FILE: string; TLS_KEY_FILE: string } {
  const directory = freshDirectory();
  const files = { TLS_CERT_FILE: join(directory, 'cert.pem'), TLS_KEY_FILE: join(directory, 'key.pem') };
  const subject = ['-days', `${days}`, '-subj', '/CN=localhost'];
  openssl('req', '-x509', ...newKey, ...subject, '-keyout', files.TLS_KEY_FILE, '-out', files.TLS_CERT_FILE);
  return files;
}

/** Creates a certificate for localhost from a test authority. Only programs that load `caFile` trust it. */
export function certificateAuthority(): { caFile: string; cert: Buffer; key: Buffer } {
  const directory = freshDirectory();
  const at = (name: string) => join(directory, name);
  openssl('req', '-x509', ...newKey, '-days', '2', '-subj', '/CN=Test authority', '-keyout', at('ca.key'), '-out', at('ca.pem'));
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  openssl('req', ...newKey, ...name, '-keyout', at('key.pem'), '-out', at('request.pem'));
  const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-copy_extensions', 'copy'];
  openssl('x509', '-req', '-in', at('request.pem'), ...by, '-days', '2', '-out', at('cert.pem'));
  return { caFile: at('ca.pem'), cert: readFileSync(at('cert.pem')), key: readFileSync(at('key.pem')) };
}
