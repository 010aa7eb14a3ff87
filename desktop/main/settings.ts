import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Rectangle } from 'electron';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { parseJson } from '#contract/text/json.ts';
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

const managedSchema = z.strictObject(
  {
    /** The server in the sign-in form at the first start. */
    server: z
      .string()
      .transform((text, { addIssue }) => {
        const read = readServerAddress(text);
        if (read.ok) return read.address;
        addIssue(read.problem);
        return z.NEVER;
      })
      .optional(),
    /** False turns off "Keep me signed in". */
    keepSignedIn: z.boolean().default(true),
    /** After this many minutes without input, the app signs out of all servers. */
    signOutAfterMinutes: z.number().int().min(1).max(1_440).optional(),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'It must be a JSON object.' : undefined) },
);
export type ManagedSettings = z.infer<typeof managedSchema>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns where an administrator can put settings for all users of this computer. The first file that exists counts. */
export function managedPaths(platform: NodeJS.Platform, environment: Environment): string[] {
  if (platform === 'darwin') return ['/Library/Application Support/Callkey/console.json'];
  if (platform === 'win32') return [join(environment['ProgramData'] ?? 'C:\\ProgramData', 'Callkey', 'console.json')];
  // /etc/xdg comes first, because users can set the variable.
  const folders = `/etc/xdg:${environment['XDG_CONFIG_DIRS'] ?? ''}`.split(':').filter((folder) => folder.startsWith('/'));
  return [...new Set(folders)].map((folder) => join(folder, 'callkey', 'console.json'));
}

/** @throws Error with the reason, if the file exists but can't be used. Ignoring it would turn off what the administrator requires */
export function readManagedSettings(paths: readonly string[]): ManagedSettings {
  for (const path of paths) {
    const text = readIfExists(path);
    if (text === null) continue;
    // PowerShell writes a byte order mark.
    const read = managedSchema.safeParse(parseJson(text.replace(/^\uFEFF/, '')));
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    throw new Error(`${path} is invalid. ${[...(issue?.path ?? []), issue?.message].join(': ')}`);
  }
  return managedSchema.parse({});
}

function readIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
    throw new Error(`${path} can't be read.`);
  }
}

type WindowBounds = NonNullable<Settings['window']>;

/** The part of the title bar that must be visible to drag the window, in device-independent pixels. */
const grip = { width: 120, height: 32 };
const defaultSize = { width: 1280, height: 800 };

/**
 * Returns where to open the window: at its last bounds, if enough of its title bar would be on a screen to drag it. Otherwise, in the
 * middle of the primary screen, at its last size or as large as fits.
 *
 * @param last null at the first start
 * @param screens the work areas of all screens, the primary one first
 */
export function boundsOnScreen(
  last: WindowBounds | null,
  screens: readonly Rectangle[],
): Partial<Rectangle> & { width: number; height: number } {
  const { width, height } = last ?? defaultSize;
  const screen = last && screens.find((area) => isReachable(last, area));
  const room = screen ?? screens[0] ?? { width, height };
  const size = { width: Math.min(width, room.width), height: Math.min(height, room.height) };
  return screen ? { ...size, x: last.x, y: last.y } : size;
}

function isReachable({ x, y, width }: WindowBounds, area: Rectangle): boolean {
  const visibleWidth = Math.min(x + width, area.x + area.width) - Math.max(x, area.x);
  return visibleWidth >= grip.width && y >= area.y && y + grip.height <= area.y + area.height;
}
