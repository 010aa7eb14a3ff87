import type { Millis } from '../instant.ts';
import type { Credentials } from '../model.ts';
import type { Attempt } from './sign-in.ts';

export type Clock = {
  now(): Millis;
};

export type Randomness = {
  /** Returns bytes from a cryptographic source. */
  bytes(size: number): Uint8Array;
  /** Returns a new ID. It sorts after all IDs from earlier milliseconds, so that tables grow at their end. */
  id(): string;
  /**
   * Returns the limits of IDs generated around a time. An ID below `lowestId` was certainly generated before that time, and an ID of at
   * least `highestId` at that time or later.
   */
  idsAround(at: Millis): { lowestId: string; highestId: string };
};

export type Passwords = {
  /** Hashes a password. @returns an argon2id hash in PHC format */
  hash(password: string): Promise<string>;
  /**
   * Waits for a turn in the queue, then looks up the credentials and verifies the password. Takes the same time if there are no
   * credentials, so that the time doesn't reveal which email addresses exist.
   *
   * @returns the credentials, or null if the password is wrong
   * @throws Problem `too-many-requests` if the queue is full and turns this attempt away, or if the attempt has waited too long
   */
  verify(find: () => Promise<Credentials | null>, password: string, origin: Attempt): Promise<Credentials | null>;
};

/** Stores the latest time from a clock that was right: see clock.ts. */
export type ClockStore = {
  /** `newestAt` is null until a core has recorded a time. `serverAt` is the time on the database server; null on SQLite. */
  read(): Promise<{ newestAt: Millis | null; serverAt: Millis | null }>;
  /** Records a time if it's later than the recorded one. */
  advance(now: Millis): Promise<void>;
  /** Records a time even if it's earlier than the recorded one. */
  set(now: Millis): Promise<void>;
};

/** Encrypts secrets that must not be readable in a copy of the database. */
export type SecretBox = {
  /** The beginning of every secret that's encrypted with the newest key. */
  newest: string;
  /** @param owner the ID of the user; the secret can't be decrypted for another user */
  seal(owner: string, secret: Uint8Array): string;
  /** @throws Error if none of the keys can decrypt the secret */
  open(owner: string, sealed: string): Uint8Array;
};
