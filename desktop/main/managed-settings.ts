import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { parseJson } from '#contract/text/json.ts';

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
