import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { freshDirectory } from './databases.ts';

export const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;

/** A certificate for localhost that no one trusts, in the form of a core's variables. */
export function selfSignedCertificate(): { TLS_CERT_FILE: string; TLS_KEY_FILE: string } {
  const directory = freshDirectory();
  const files = { TLS_CERT_FILE: join(directory, 'cert.pem'), TLS_KEY_FILE: join(directory, 'key.pem') };
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  execFileSync('openssl', [...kind, '-keyout', files.TLS_KEY_FILE, '-out', files.TLS_CERT_FILE], { stdio: 'ignore' });
  return files;
}
