import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const settingsSchema = z.object({
  server: z.string().default(''),
  email: z.string().default(''),
  /** Where the window was, in device-independent pixels. */
  window: z
    .object({ x: z.number().int(), y: z.number().int(), width: z.number().int(), height: z.number().int(), isMaximized: z.boolean() })
    .nullable()
    .default(null),
});
export type Settings = z.infer<typeof settingsSchema>;

/** What the console remembers from one start to the next. Nothing secret is among it. */
export class SettingsFile {
  readonly #path: string;
  #settings: Settings;
  #written: Promise<void> = Promise.resolve();

  /** @param folder of the user's profile. A file that cannot be understood counts as none. */
  constructor(folder: string) {
    this.#path = join(folder, 'settings.json');
    this.#settings = settingsSchema.parse(readJson(this.#path));
  }

  get current(): Settings {
    return this.#settings;
  }

  /** Remembers the changes. One write follows another, each replacing the whole file. */
  change(changes: Partial<Settings>): Promise<void> {
    this.#settings = { ...this.#settings, ...changes };
    const text = `${JSON.stringify(this.#settings, undefined, 2)}\n`;
    this.#written = this.#written
      .then(async () => {
        await writeFile(`${this.#path}.new`, text, { mode: 0o600 });
        await rename(`${this.#path}.new`, this.#path);
      })
      .catch(() => undefined);
    return this.#written;
  }
}

function readJson(path: string): unknown {
  try {
    const read = settingsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
    return read.success ? read.data : {};
  } catch {
    return {};
  }
}
