import { X509Certificate } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import type { Logger } from 'pino';
import { readTls, type Tls } from '../start/config.ts';

/** In ms. The files are polled instead of watched, because a watcher would stay with the old file if a renewal replaces a symbolic link. */
const interval = 5_000;

/**
 * Uses renewed certificates for new connections, without a restart.
 *
 * @returns a function that stops it
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
      // One of certificate and key may arrive before the other.
      log.warn({ err }, 'certificate not reloaded: still using the previous one');
    }
  };
  const files = [tls.certFile, tls.keyFile];
  for (const file of files) watchFile(file, { interval, persistent: false }, look);
  return () => {
    for (const file of files) unwatchFile(file, look);
  };
}
