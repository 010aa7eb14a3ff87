import type { Ports } from '../../core/domain/ports.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { noSecretBox } from '../../core/server/sealed-secrets.ts';
import { systemClock, systemRandomness } from '../../core/server/start/system.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, type Storage, unobserved } from '../../core/storage/storage.ts';

/**
 * Brings a database to the current schema, and opens it for scripts and tests that fill or measure it without a core.
 *
 * @param others ports to use instead of the usual ones
 */
export async function openPorts(
  location: DatabaseLocation,
  { clock = systemClock, ...others }: Partial<Ports> = {},
): Promise<{ ports: Ports; storage: Storage }> {
  const storage = openStorage(location, clock, unobserved);
  await storage.migrate();
  const ports = {
    ...{ clock, randomness: systemRandomness, passwords: argon2Passwords(systemRandomness) },
    ...{ stores: storage.stores, throttle: storage.throttle, provider: null, passwordSignIn: true, maxActiveKeys: 1_000 },
    adminCommand: 'npm run admin --',
    ...{ onOutcome: () => undefined, onStopped: () => undefined, onListed: () => undefined, onHoursChanged: () => undefined },
    ...{ secretBox: noSecretBox, requiresSecondFactor: false },
    ...others,
  };
  return { ports, storage };
}

/** Opens a database by its DATABASE_URL. */
export function openDirect(databaseUrl: string, others?: Partial<Ports>): Promise<{ ports: Ports; storage: Storage }> {
  const location = parseDatabaseUrl(databaseUrl);
  return openPorts(location, others);
}
