import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { maxServerLabel, serverColors } from '../ipc.ts';
import { replaceFile, setAside } from './replace-file.ts';

const settingsSchema = z.object({
  /** The servers that the user has signed in to, latest first. */
  servers: z
    .array(
      z.object({
        address: z.string(),
        email: z.string(),
        label: z.string().max(maxServerLabel).optional(),
        color: z.enum(serverColors).optional(),
      }),
    )
    .default([]),
  /** The servers that the user signed out of while the stored sessions couldn't be read. */
  signedOut: z.array(z.string()).optional(),
  /** Whose secret is on screen. If the app ends unexpectedly, the user may not have saved it. */
  unsaved: z
    .object({ server: z.string(), kind: z.enum(['key', 'user']), id: z.string(), name: z.string() })
    .nullable()
    .default(null),
  /** Whether to notify the user before keys expire. */
  notifiesExpiry: z.boolean().default(true),
  /** The keys of the notifications on the latest day with one. */
  notified: z.object({ day: z.string(), keys: z.array(z.string()) }).default({ day: '', keys: [] }),
  /** The window's last bounds in device-independent pixels. */
  window: z
    .object({ x: z.number().int(), y: z.number().int(), width: z.number().int(), height: z.number().int(), isMaximized: z.boolean() })
    .nullable()
    .default(null),
});
export type Settings = z.infer<typeof settingsSchema>;

/** What the console remembers between starts. Nothing in it is secret. */
export class SettingsFile {
  readonly #path: string;
  #settings: Settings;
  #written: Promise<void> = Promise.resolve();

  /** @param folder the user's profile folder. A file that's damaged or can't be read is renamed. */
  constructor(folder: string) {
    this.#path = join(folder, 'settings.json');
    this.#settings = readSettings(this.#path);
  }

  get current(): Settings {
    return this.#settings;
  }

  /** Changes are written one after the other. Each write replaces the whole file, so a crash leaves either the old file or the new one. */
  change(changes: Partial<Settings>): Promise<void> {
    this.#settings = { ...this.#settings, ...changes };
    const text = `${JSON.stringify(this.#settings, undefined, 2)}\n`;
    this.#written = this.#written
      .then(async () => {
        await replaceFile(this.#path, (file) => file.writeFile(text).then(() => true), 0o600);
      })
      .catch(() => undefined);
    return this.#written;
  }
}

function readSettings(path: string): Settings {
  try {
    return settingsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    // The next change would replace a file that can't be read.
    if (existsSync(path)) setAside(path);
    return settingsSchema.parse({});
  }
}
