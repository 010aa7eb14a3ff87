import type { Ports } from '../../core/domain/ports/ports.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { noSecretBox } from '../../core/server/sealed-secrets.ts';
import { systemClock, systemRandomness } from '../../core/server/start/system.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, type Storage, unobserved } from '../../core/storage/index.ts';

/** Brings a database to the current schema, and opens it for scripts that fill or measure it without a core. */
export async function openPorts(location: DatabaseLocation): Promise<{ ports: Ports; storage: Storage }> {
  const storage = openStorage(location, systemClock, unobserved);
  await storage.migrate();
  const ports = {
    ...{ clock: systemClock, randomness: systemRandomness, passwords: argon2Passwords(systemRandomness) },
    ...{ stores: storage.stores, throttle: storage.throttle, provider: null, passwordSignIn: true, maxActiveKeys: 1_000 },
    adminCommand: 'npm run admin --',
    ...{ onOutcome: () => undefined, onStopped: () => undefined, onListed: () => undefined },
    ...{ secretBox: noSecretBox, requiresSecondFactor: false },
  };
  return { ports, storage };
}

/** Opens a database by its DATABASE_URL. */
export function openDirect(databaseUrl: string): Promise<{ ports: Ports; storage: Storage }> {
  const location = parseDatabaseUrl(databaseUrl);
  if (!location) throw new Error(`${databaseUrl} isn't a valid database.`);
  return openPorts(location);
}
