import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { safeStorage } from 'electron';
import { z } from 'zod';
import type { Keeping } from '../ipc.ts';

const keptSchema = z.object({ server: z.string(), cookies: z.record(z.string(), z.string()) });
export type KeptSession = z.infer<typeof keptSchema>;

/** A session kept from one start to the next, encrypted by the system's own storage, or not at all. */
export class KeptSessionFile {
  readonly #path: string;

  constructor(folder: string) {
    this.#path = join(folder, 'session');
  }

  /** Whether the system offers storage that is worth the name. */
  async keeping(): Promise<Keeping> {
    if (process.platform === 'linux' && safeStorage.getSelectedStorageBackend() === 'basic_text') {
      return { possible: false, reason: 'This system offers no keyring, so the session would be kept in plain text.' };
    }
    try {
      if (await safeStorage.isAsyncEncryptionAvailable()) return { possible: true };
    } catch {
      // Then it is as good as none.
    }
    return { possible: false, reason: 'This system offers no encrypted storage at the moment.' };
  }

  async keep(session: KeptSession): Promise<void> {
    if (!(await this.keeping()).possible) return;
    await writeFile(this.#path, await safeStorage.encryptStringAsync(JSON.stringify(session)), { mode: 0o600 });
  }

  /** @returns null where none is kept, or it cannot be decrypted any more */
  async read(): Promise<KeptSession | null> {
    try {
      const encrypted = await readFile(this.#path);
      if (!(await this.keeping()).possible) return null;
      const { result } = await safeStorage.decryptStringAsync(encrypted);
      return keptSchema.parse(JSON.parse(result));
    } catch {
      return null;
    }
  }

  async forget(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
