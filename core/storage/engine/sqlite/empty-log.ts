import { promisify } from 'node:util';
import type { Database as Connection } from 'sqlite3';
import { deadlines } from '../../../domain/deadlines.ts';
import type { Lane } from '../database.ts';
import { markBroken } from './sqlite-connection.ts';

/**
 * Empties SQLite's write-ahead log, because it still contains erased data. Gives up soon if others are reading, because no one can
 * write during that time. The next erasure tries again.
 */
export async function emptyLog({ kind, write }: Lane): Promise<void> {
  if (kind !== 'sqlite') return;
  const connection: Connection = await write.client.acquireConnection();
  const execute = promisify<string, void>(connection.exec.bind(connection));
  try {
    await execute(`PRAGMA busy_timeout = 50; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = ${deadlines.lock}`);
  } catch (error) {
    // Don't reuse the connection, because it may still have the short timeout.
    markBroken(connection, error);
  } finally {
    write.client.releaseConnection(connection);
  }
}
