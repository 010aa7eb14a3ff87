import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from './config.ts';
import { codeOf } from './domain/error-code.ts';
import type { Randomness } from './domain/ports.ts';
import { asDatabaseError } from './start-errors.ts';

/**
 * The secrets that sign session cookies: those of the environment, or one that is made once and kept beside the SQLite file.
 *
 * @throws ConfigError where there is no place for it
 */
export function sessionSecretsOf(config: Config, randomness: Randomness): readonly string[] {
  if (config.sessionSecrets) return config.sessionSecrets;
  if (config.database.kind !== 'sqlite') throw new Error('PostgreSQL has no place beside it to keep a secret.');
  try {
    return [keptSecret(`${config.database.filename}.session-secret`, randomness)];
  } catch (error) {
    throw asDatabaseError(error, config.database);
  }
}

function keptSecret(file: string, randomness: Randomness): string {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    // `wx` makes the file or fails: of two cores that start at once, one makes it and both read it.
    writeFileSync(file, `${Buffer.from(randomness.bytes(32)).toString('base64url')}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  return readFileSync(file, 'utf8').trim();
}
