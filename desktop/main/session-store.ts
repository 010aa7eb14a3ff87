import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { safeStorage } from 'electron';
import { z } from 'zod';
import type { SessionPersistence } from '../ipc.ts';

const storedSessionSchema = z.object({ server: z.string(), cookies: z.record(z.string(), z.string()) });
type StoredSession = z.infer<typeof storedSessionSchema>;
/** Release 0.1.0 stored a single session. */
const storedSessionsSchema = z.union([z.array(storedSessionSchema), storedSessionSchema.transform((session) => [session])]);

/** Stores sessions between starts, but only if the system can encrypt them. */
export class SessionStore {
  readonly #path: string;

  constructor(folder: string) {
    this.#path = join(folder, 'session');
  }

  /** Whether the system can encrypt sessions. `basic_text` is Chromium's plain-text fallback. */
  async persistence(): Promise<SessionPersistence> {
    if (process.platform === 'linux' && safeStorage.getSelectedStorageBackend() === 'basic_text') {
      return {
        possible: false,
        reason: 'This system has no keyring, so your session would be stored as plain text. Install a keyring to stay signed in.',
      };
    }
    try {
      if (await safeStorage.isAsyncEncryptionAvailable()) return { possible: true };
    } catch {
      // A failure means that encryption isn't available.
    }
    return {
      possible: false,
      reason: 'This system’s encrypted storage isn’t available. Unlock it and restart the console to stay signed in.',
    };
  }

  /** Replaces all stored sessions. */
  async write(sessions: readonly StoredSession[]): Promise<void> {
    if (sessions.length === 0) await rm(this.#path, { force: true });
    else if ((await this.persistence()).possible)
      await writeFile(this.#path, await safeStorage.encryptStringAsync(JSON.stringify(sessions)), { mode: 0o600 });
  }

  /** Reads the stored sessions. Returns none if they can't be decrypted. */
  async read(): Promise<StoredSession[]> {
    try {
      const encrypted = await readFile(this.#path);
      if (!(await this.persistence()).possible) return [];
      const { result } = await safeStorage.decryptStringAsync(encrypted);
      return storedSessionsSchema.parse(JSON.parse(result));
    } catch {
      return [];
    }
  }
}
