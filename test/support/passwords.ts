import type { Passwords } from '../../core/domain/ports.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { testRandomness } from './clock.ts';

/** The product's, for tests in which a crowd has to wait for them. A hash takes 20 ms of a processor. */
export const costlyPasswords = (): Passwords => argon2Passwords(testRandomness);

/** The same, but for hashes as cheap as argon2 makes them. */
export const cheapPasswords = (): Passwords => argon2Passwords(testRandomness, { memoryCost: 8, timeCost: 2 });
