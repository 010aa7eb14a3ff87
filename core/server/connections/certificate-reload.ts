import { X509Certificate } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import type { Logger } from 'pino';
import { readTls, type Tls } from '../start/config.ts';

/** In ms. The files are polled, because a watcher would keep watching the old file if a renewal replaces a symbolic link. */
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
      const files = readTls(tls.certFile, tls.keyFile);
      if (files.cert.equals(current.cert) && files.key.equals(current.key)) return;
      use(files);
      current = files;
      log.info({ validTo: new X509Certificate(files.cert).validToDate.toISOString() }, 'certificate reloaded');
    } catch (err) {
      // This also happens if only one of the two files has been replaced so far.
      log.warn({ err }, 'certificate not reloaded: still using the previous one');
    }
  };
  const files = [tls.certFile, tls.keyFile];
  for (const file of files) watchFile(file, { interval, persistent: false }, look);
  return () => {
    for (const file of files) unwatchFile(file, look);
  };
}
