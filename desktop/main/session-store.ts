import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { safeStorage } from 'electron';
import { z } from 'zod';
import type { SessionPersistence } from '../ipc.ts';
import { replaceFile, setAside } from './replace-file.ts';

const storedSessionsSchema = z.array(z.object({ server: z.string(), cookies: z.record(z.string(), z.string()) }));
type StoredSession = z.infer<typeof storedSessionsSchema>[number];

const notAvailable =
  process.platform === 'linux'
    ? 'This system has no keyring, or it’s locked. Install or unlock one, then restart the console to stay signed in.'
    : 'This system’s encrypted storage isn’t available. Unlock it and restart the console to stay signed in.';

/** Stores sessions between starts, but only if the system can encrypt them. */
export class SessionStore {
  readonly #path: string;
  readonly #isAllowed: boolean;
  #stored: Promise<StoredSession[]> | null = null;
  #written: Promise<unknown> = Promise.resolve();
  #persistence: SessionPersistence = {
    possible: false,
    reason: 'Waiting for this system’s encrypted storage. If it asks for your password, enter it there.',
    isWaiting: true,
  };
  #notice: string | null = null;

  constructor(folder: string, isAllowed: boolean) {
    this.#isAllowed = isAllowed;
    this.#path = join(folder, 'session');
  }

  /** Whether sessions can be stored, as far as it's known by now. */
  get persistence(): SessionPersistence {
    return this.#persistence;
  }

  get notice(): string | null {
    return this.#notice;
  }

  /** Whether sessions may be stored that couldn't be read yet. */
  get hasUnreadFile(): boolean {
    return !this.#persistence.possible && existsSync(this.#path);
  }

  /** Reads the stored sessions as soon as the system's encrypted storage responds. It may first ask the user for a password. */
  read(): Promise<StoredSession[]> {
    this.#stored ??= this.#open();
    return this.#stored;
  }

  async #open(): Promise<StoredSession[]> {
    if (!this.#isAllowed) {
      this.#persistence = { possible: false, reason: 'Your administrator has turned this off.' };
      await rm(this.#path, { force: true });
      return [];
    }
    const isSafe = await canEncrypt();
    this.#persistence = isSafe ? { possible: true } : { possible: false, reason: notAvailable };
    try {
      return await this.#readFile(isSafe);
    } catch {
      this.#persistence = { possible: false, reason: `The console can’t read the file ${basename(this.#path)} in its folder.` };
      return [];
    }
  }

  async #readFile(isSafe: boolean): Promise<StoredSession[]> {
    const encrypted = await readFile(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (!encrypted) return [];
    // It may be readable after the next start, so it's left as it is. Nothing replaces it, because without encryption, nothing is written.
    if (!isSafe) {
      const reason = 'Your keyring is locked, so the console can’t read your saved sessions. Unlock it, then restart the console.';
      this.#persistence = { possible: false, reason };
      return [];
    }
    const sessions = await decrypt(encrypted);
    if (sessions) return sessions;
    this.#notice = `The console couldn’t read your saved sessions, so sign in again. It keeps them as ${basename(setAside(this.#path))} in its folder.`;
    return [];
  }

  /** Replaces all stored sessions, unless they can't be encrypted. Call it only after `read`. */
  write(sessions: readonly StoredSession[]): Promise<unknown> {
    if (!this.#persistence.possible) return Promise.resolve();
    this.#written = this.#written.then(() => this.#replace(sessions)).catch(() => undefined);
    return this.#written;
  }

  async #replace(sessions: readonly StoredSession[]): Promise<void> {
    if (sessions.length === 0) return rm(this.#path, { force: true });
    const encrypted = await safeStorage.encryptStringAsync(JSON.stringify(sessions));
    if (hasPublicKey(encrypted)) return;
    await replaceFile(this.#path, (file) => file.writeFile(encrypted).then(() => true), 0o600);
  }
}

/** Encrypts a text to find out, because on Linux, Electron announces encryption even if it would use a public key. */
async function canEncrypt(): Promise<boolean> {
  // Before Electron 44, this is false until a keyring has responded, and encrypting would crash. Later releases wait.
  while (!(await safeStorage.isAsyncEncryptionAvailable())) await pause(pollMs);
  try {
    return !hasPublicKey(await safeStorage.encryptStringAsync('trial'));
  } catch {
    return false;
  }
}

const pollMs = 25;

/**
 * Whether anyone can decrypt it. On Linux, the first three bytes name the key: `v11` is from a keyring, and `v12` from the desktop's portal.
 * Without either, Chromium uses a fixed password, named `v10`. On macOS and Windows, its key is always from the system.
 */
function hasPublicKey(encrypted: Buffer): boolean {
  return process.platform === 'linux' && !/^v1[12]/.test(encrypted.toString('latin1', 0, 3));
}

/** @returns null if it's damaged, or was encrypted with another key or a public one */
async function decrypt(encrypted: Buffer): Promise<StoredSession[] | null> {
  if (hasPublicKey(encrypted)) return null;
  try {
    const { result } = await safeStorage.decryptStringAsync(encrypted);
    return storedSessionsSchema.parse(JSON.parse(result));
  } catch {
    return null;
  }
}
