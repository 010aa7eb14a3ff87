import type { Passwords } from '../../core/domain/ports/environment.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { testRandomness } from './clock.ts';

/** Returns the product's own hashing, for tests in which many requests wait for it. A hash takes 20 ms of processor time. */
export const costlyPasswords = (): Passwords => argon2Passwords(testRandomness);

/** Returns the product's own hashing, but with hashes as cheap as argon2 allows. */
export const cheapPasswords = (): Passwords => argon2Passwords(testRandomness, { memoryCost: 8, timeCost: 2 });
