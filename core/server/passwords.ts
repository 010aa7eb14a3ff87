import { setTimeout as delay } from 'node:timers/promises';
import argon2 from 'argon2';
import { limits } from '#contract/limits.ts';
import { toLargeNetwork, toNetworks } from '#contract/text/networks.ts';
import { toNfc } from '#contract/text/text.ts';
import { FairQueue, inOrder } from '../domain/fair-queue.ts';
import type { Attempt, Passwords, Randomness } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { toOneTimePassword } from '../domain/sign-in/second-factor.ts';

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB of memory, two passes and one lane. */
const recommended = { memoryCost: 19 * 1024, timeCost: 2 };
const saltBytes = 16;

/** Each queue holds about as many attempts as are served in `wait` ms: fewer on a busy machine, but at least `min` and at most `max`. */
const queue = { max: 32, min: 4, wait: 1_500 };
/** In ms, measured on a quiet machine: 20 for a check, and twice as much for the pause. */
const usualTurn = 60;
/** The maximum pause, in ms. On a busy machine, a check takes a long time, and the pause must not take even longer. */
const maxPause = 100;
/** In ms. The maximum wait, even if the database hangs. */
const maxWait = 10_000;

/** Only signed-in users set new passwords, so these attempts count as vouched for. */
const newPasswords: Attempt = { email: '', address: '', vouched: 'new passwords' };

/**
 * Checks one password at a time, because argon2 shares libuv's threads with the database and takes 19 MiB for each check. After each check,
 * pauses for twice as long as the check took, so that a flood of sign-ins gets at most a third of one processor core.
 *
 * @param cost the time and memory that each new hash takes, with the memory in KiB
 */
export function argon2Passwords(randomness: Randomness, cost = recommended): Passwords {
  const turns = new PasswordQueue();

  const hash = (password: string) =>
    argon2.hash(toNfc(password, limits.passwordMax), {
      ...cost,
      type: argon2.argon2id,
      parallelism: 1,
      salt: Buffer.from(randomness.bytes(saltBytes)),
    });

  // Unknown users are checked against this hash, so that both cases take the same time.
  let dummyHash: string | undefined;

  return {
    hash: (password) => turns.inTurn(newPasswords, { prepare: async () => password, work: hash, pausesAfter: false }),
    verify: (find, password, origin) =>
      turns.inTurn(origin, {
        prepare: find,
        async work(credentials) {
          dummyHash ??= await hash(Buffer.from(randomness.bytes(24)).toString('base64'));
          const given = credentials?.passwordExpiresAt == null ? password : toOneTimePassword(password);
          const matches = await argon2.verify(credentials?.passwordHash ?? dummyHash, toNfc(given, limits.passwordMax));
          return matches ? credentials : null;
        },
        pausesAfter: true,
      }),
  };
}

type Turn<Prepared, Result> = {
  /** Runs during the pause of the previous turn, because it may have to wait for the database. */
  prepare: () => Promise<Prepared>;
  work: (prepared: Prepared) => Promise<Result>;
  /** Whether the turn is followed by a pause. */
  pausesAfter: boolean;
};

/**
 * A queue of password checks. Sessions and known devices have their own queue, and the two queues take turns, so that a flood of strangers
 * doesn't delay users. In the queue of sessions and known devices, users take turns, because each can have any number of devices.
 */
class PasswordQueue {
  readonly #limits = { waiting: () => Math.min(queue.max, Math.max(queue.min, Math.floor(queue.wait / this.#turn))), wait: maxWait };
  readonly #vouched = new FairQueue(this.#limits, setTimeout);
  readonly #strangers = new FairQueue(this.#limits, setTimeout);
  readonly #startNext = inOrder(this.#vouched, this.#strangers, 1);
  #isRunning = false;
  /** The recent duration of a turn, in ms. */
  #turn = usualTurn;
  #pause: Promise<unknown> = Promise.resolve();

  /** @throws Problem `too-many-requests` */
  async inTurn<Prepared, Result>({ email, address, vouched }: Attempt, turn: Turn<Prepared, Result>): Promise<Result> {
    const waiting =
      vouched === null
        ? this.#strangers.wait([toLargeNetwork(address), ...toNetworks(address).toReversed()])
        : this.#vouched.wait([email, vouched]);
    if (!this.#isRunning) this.#isRunning = this.#startNext();
    if ((await waiting) !== 'turn')
      throw new Problem('too-many-requests', 'Too many people are signing in. Try again in 1 second.', { retryAfter: 1 });
    const start = performance.now();
    try {
      return await this.#run(turn);
    } finally {
      this.#turn += (performance.now() - start - this.#turn) / 8;
      this.#isRunning = this.#startNext();
    }
  }

  async #run<Prepared, Result>({ prepare, work, pausesAfter }: Turn<Prepared, Result>): Promise<Result> {
    const prepared = await prepare();
    await this.#pause;
    const start = performance.now();
    try {
      return await work(prepared);
    } finally {
      if (pausesAfter) this.#pause = delay(Math.min(2 * (performance.now() - start), maxPause));
    }
  }
}
