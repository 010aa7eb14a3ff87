import { X509Certificate } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import type { Logger } from 'pino';
import { readTls, type Tls } from '../start/config.ts';

/** In ms. The files are looked at, not subscribed to: a subscription stays with the old file where a renewal replaces a link to it. */
const interval = 5_000;

/**
 * Takes renewed certificates into use, for new connections and without a restart.
 *
 * @returns ends it
 */
export function reloadCertificate(tls: Tls, use: (renewed: Tls) => void, log: Logger): () => void {
  let current = tls;
  const look = () => {
    try {
      const found = readTls(tls.certFile, tls.keyFile);
      if (found.cert.equals(current.cert) && found.key.equals(current.key)) return;
      use(found);
      current = found;
      log.info({ validTo: new X509Certificate(found.cert).validToDate.toISOString() }, 'certificate reloaded');
    } catch (err) {
      // Of certificate and key, one may be there before the other.
      log.warn({ err }, 'certificate not reloaded: still using the previous one');
    }
  };
  const files = [tls.certFile, tls.keyFile];
  for (const file of files) watchFile(file, { interval, persistent: false }, look);
  return () => {
    for (const file of files) unwatchFile(file, look);
  };
}
