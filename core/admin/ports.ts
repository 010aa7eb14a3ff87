import type { Ports } from '../domain/ports.ts';
import { adminCommand } from '../program.ts';
import { argon2Passwords } from '../server/passwords.ts';
import { noSecretBox } from '../server/sealed-secrets.ts';
import { systemClock, systemRandomness } from '../server/start/system.ts';
import type { Storage } from '../storage/storage.ts';

/** Returns the ports of a program that uses the database without a core. It tells no core what it does, but cores notice within a minute. */
export function portsWithoutCore({ stores, throttle }: Pick<Storage, 'stores' | 'throttle'>): Ports {
  const ignore = () => undefined;
  return {
    ...{ clock: systemClock, randomness: systemRandomness, passwords: argon2Passwords(systemRandomness), stores, throttle },
    ...{ identityProvider: null, passwordSignIn: true, requiresSecondFactor: false, secretBox: noSecretBox },
    ...{ serverName: '', maxActiveKeys: 1_000, adminCommand },
    ...{ onOutcome: ignore, onStopped: ignore, onDoNotCallAdded: ignore, onRulesChanged: ignore, onCallsLeft: ignore },
  };
}
