import type { Passwords } from '../../core/domain/ports.ts';
import { argon2Passwords } from '../../core/server/passwords.ts';
import { testRandomness } from './clock.ts';

/** Returns the product's own hashing, for tests in which many requests wait for it. A hash takes 20 ms of processor time. */
export const costlyPasswords = (): Passwords => argon2Passwords(testRandomness);

/** Returns the product's own hashing, but with hashes as cheap as argon2 allows. */
export const cheapPasswords = (): Passwords => argon2Passwords(testRandomness, { memoryCost: 8, timeCost: 2 });

/** Returns cheap hashing with a gate behind it, so that a test can make a change while a request waits for a password. */
export function gatedPasswords() {
  const passwords = cheapPasswords();
  let gate: { reach: () => void; opened: Promise<void> } | undefined;
  async function behindGate<Result>(result: Promise<Result>): Promise<Result> {
    await result.catch(() => undefined);
    gate?.reach();
    await gate?.opened;
    return result;
  }
  return {
    passwords: {
      hash: (password) => behindGate(passwords.hash(password)),
      verify: (...args) => behindGate(passwords.verify(...args)),
    } satisfies Passwords,
    /** Makes `change` once one of the requests that `send` sends waits for a password. @returns their responses */
    async whileWaiting<Answer>(send: () => Promise<Answer>, change: () => Promise<unknown>): Promise<Answer> {
      const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      gate = { reach: reached.resolve, opened: opened.promise };
      const answer = send();
      await Promise.race([reached.promise, answer]);
      gate = undefined;
      try {
        await change();
      } finally {
        opened.resolve();
      }
      return answer;
    },
  };
}
