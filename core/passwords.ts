import { setTimeout } from 'node:timers/promises';
import argon2 from 'argon2';
import { limits } from '#contract/limits.ts';
import { normalized } from '#contract/text.ts';
import type { Passwords, Randomness } from './domain/ports.ts';
import { Problem } from './domain/problem.ts';

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB of memory, two passes and one lane. */
const recommended = { memoryCost: 19 * 1024, timeCost: 2 };
const saltBytes = 16;

/** How many may wait. At 20 ms a check and as long a rest, the last one waits for little more than a second. */
const queueLength = 32;
/** In ms: on a busy machine a check takes long, and the rest must not take as long again. */
const longestRest = 100;

/**
 * Checks one password at a time: argon2 shares libuv's threads with the database, and takes 19 MiB for each check. After each check it rests
 * as long as the check took, so that a flood of sign-ins gets half of one processor core at most.
 *
 * @param cost of each new hash, with the memory in KiB
 */
export function argon2Passwords(randomness: Randomness, cost = recommended): Passwords {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  /** Holds a place in the queue for as long as the work takes. */
  async function placed<Result>(work: () => Promise<Result>): Promise<Result> {
    if (waiting >= queueLength)
      throw new Problem('too-many-requests', 'Too many people are signing in. Try again shortly.', { retryAfter: 1 });
    waiting++;
    try {
      return await work();
    } finally {
      waiting--;
    }
  }

  function inTurn<Result>(work: () => Promise<Result>, rests: boolean): Promise<Result> {
    let start = 0;
    const begin = () => {
      start = performance.now();
      return work();
    };
    const result = last.then(begin);
    last = result.catch(() => undefined).then(() => (rests ? setTimeout(Math.min(performance.now() - start, longestRest)) : undefined));
    return result;
  }

  const hash = (password: string) =>
    argon2.hash(normalized(password, limits.passwordMax), {
      ...cost,
      type: argon2.argon2id,
      parallelism: 1,
      salt: Buffer.from(randomness.bytes(saltBytes)),
    });

  // Checked where no such user exists, so that both take the same time.
  let nobody: string | undefined;

  return {
    hash: (password) => placed(() => inTurn(() => hash(password), false)),
    verify: (find, password) =>
      placed(async () => {
        const credentials = await find();
        const matches = await inTurn(async () => {
          nobody ??= await hash(Buffer.from(randomness.bytes(24)).toString('base64'));
          return argon2.verify(credentials?.passwordHash ?? nobody, normalized(password, limits.passwordMax));
        }, true);
        return matches ? credentials : null;
      }),
  };
}
