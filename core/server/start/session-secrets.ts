import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Randomness } from '../../domain/ports.ts';
import { errorCode } from '../../domain/problem.ts';
import type { DatabaseLocation } from '../../storage/engine/database.ts';
import { type Config, ConfigError } from './config.ts';
import { toDatabaseError } from './start-errors.ts';

/**
 * Returns the secrets that sign session cookies: the ones in the environment, or one that's generated once and stored next to the SQLite
 * file.
 *
 * @throws ConfigError if it can't be stored, or if the stored one can't be used
 */
export function loadSessionSecrets(config: Config, randomness: Randomness): readonly string[] {
  const { sessionSecrets, database } = config;
  if (sessionSecrets) return sessionSecrets;
  if (database.kind !== 'sqlite') throw new Error('SESSION_SECRETS must be set when the database is PostgreSQL.');
  const file = secretFilePath(database);
  try {
    if (!lstatSync(file, { throwIfNoEntry: false })) makeSecret(file, randomness);
  } catch (error) {
    throw toDatabaseError(error, database);
  }
  const { secret, fault } = readSecret(file);
  if (fault !== null) throw new ConfigError('SESSION_SECRETS', fault);
  return [secret];
}

export function secretFilePath({ filename }: Extract<DatabaseLocation, { kind: 'sqlite' }>): string {
  return `${filename}.session-secret`;
}

/** Stores a new secret. A core that starts at the same time, or after a power failure, finds either the complete secret or no file. */
function makeSecret(file: string, randomness: Randomness): void {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomness.id()}`;
  try {
    writeFileSync(temporary, `${Buffer.from(randomness.bytes(32)).toString('base64url')}\n`, { flag: 'wx', mode: 0o600, flush: true });
    giveName(temporary, file);
    flushToDisk(folder);
  } finally {
    rmSync(temporary, { force: true });
  }
}

const remedy =
  'Delete the file and start the core, which generates a new secret. Everyone then has to sign in again, and second factors have to be reset';

/** Reads the stored secret. @returns `fault`, in one line that says what to do, if the secret can't be used */
export function readSecret(file: string): { secret: string; fault: string | null } {
  let secret: string;
  try {
    secret = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { secret: '', fault: `the session secret can't be read (${reason}). Give the core's user read access to ${file}` };
  }
  if (secret === '') return { secret, fault: `${file} is empty. ${remedy}` };
  // After a power failure, a file can have its length but only zero bytes, with which anyone could sign cookies.
  if (!/^[\w-]{43}$/.test(secret)) return { secret, fault: `${file} must contain the 43 characters that a core writes there. ${remedy}` };
  // The group may have access, because it may be the volume's group, as in Kubernetes. `admin check` reports this.
  if (process.platform !== 'win32' && (statSync(file).mode & 0o007) !== 0)
    return {
      secret,
      fault: `every user of this machine can open ${file}. Run chmod 600 ${file}. If anyone may have read it, delete it instead: the core generates a new one`,
    };
  return { secret, fault: null };
}

/** Writes a file's content, or a folder's entries, to the disk, so that it survives a power failure. */
export function flushToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Renames a file. A hard link, where supported, never replaces a file that was just created. @returns whether the name wasn't taken */
export function giveName(from: string, to: string): boolean {
  try {
    linkSync(from, to);
  } catch (error) {
    if (existsSync(to)) return false;
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EOPNOTSUPP'].includes(errorCode(error))) throw error;
    renameSync(from, to);
  }
  return true;
}
