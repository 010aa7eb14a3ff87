import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';

const managedSchema = z.strictObject({
  /** The server in the sign-in form at the first start. */
  server: z
    .string()
    .refine((text) => readServerAddress(text).ok, { error: 'Must be an https URL.' })
    .transform((text) => text.replace(/\/+$/, ''))
    .optional(),
  /** False turns off "Keep me signed in". */
  keepSignedIn: z.boolean().default(true),
  /** After this many minutes without input, the app signs out of all servers. */
  signOutAfterMinutes: z.number().int().min(1).max(1_440).optional(),
});
export type ManagedSettings = z.infer<typeof managedSchema>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns where an administrator can put settings for all users of this computer. The first file that exists counts. */
export function managedPaths(platform: NodeJS.Platform, environment: Environment): string[] {
  if (platform === 'darwin') return ['/Library/Application Support/Callkey/console.json'];
  if (platform === 'win32') return [join(environment['ProgramData'] ?? 'C:\\ProgramData', 'Callkey', 'console.json')];
  const folders = (environment['XDG_CONFIG_DIRS'] || '/etc/xdg').split(':').filter((folder) => folder.startsWith('/'));
  return folders.map((folder) => join(folder, 'callkey', 'console.json'));
}

/** @throws Error with the reason, if the file exists but can't be used. Ignoring it would turn off what the administrator requires */
export function readManagedSettings(paths: readonly string[]): ManagedSettings {
  for (const path of paths) {
    const text = readIfExists(path);
    if (text === null) continue;
    const read = managedSchema.safeParse(parse(text));
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    throw new Error(`${path} is invalid. ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
  }
  return managedSchema.parse({});
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function readIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
    throw new Error(`${path} can't be read.`);
  }
}
