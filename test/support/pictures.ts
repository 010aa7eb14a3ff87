// The pictures in desktop/screenshots, and what they were made from.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const screens = {
  apiKeys: 'api-keys/api-keys.tsx',
  calls: 'calls/calls.tsx',
  users: 'users/users.tsx',
  shell: 'shell/shell.tsx',
};

/** In the paths by which the shell imports them. */
const otherScreens = [
  '../activity.tsx',
  '../directory.tsx',
  ...['api-keys', 'calls', 'protection', 'session', 'users'].map((folder) => `../${folder}/*`),
];

/** The names of the pictures, with the file that shows what's in the picture. */
export const pictures: Readonly<Record<string, string>> = {
  'api-keys': screens.apiKeys,
  'api-key-details': screens.apiKeys,
  'create-key': screens.apiKeys,
  'save-key': screens.apiKeys,
  revoke: screens.apiKeys,
  calls: screens.calls,
  'delete-user': screens.users,
  'tenancy-switcher': screens.shell,
};

export const pictureFolder = fileURLToPath(new URL('../../desktop/screenshots/', import.meta.url));

/**
 * Returns a hash for each picture of the code and styles that draw it, with everything that they import from the renderer. It's made from the
 * minified code, so that comments and formatting don't change it, and without the screens that the shell shows elsewhere.
 */
export async function hashPictures(): Promise<Record<string, string>> {
  const hashes = new Map<string, string>();
  for (const file of new Set(Object.values(pictures))) {
    const shown = new Set([screens.shell, file].map((path) => `./screens/${path}`));
    const contents = [...shown, '../screens.ts', './styles/app.css'].map((path) => `export * from '${path}';`).join('\n');
    const resolveDir = fileURLToPath(new URL('../../desktop/renderer', import.meta.url));
    const options = {
      bundle: true,
      minify: true,
      write: false,
      packages: 'external',
      external: otherScreens,
      format: 'esm',
      outdir: '/',
      logLevel: 'error',
    } as const;
    const { outputFiles } = await build({
      ...options,
      stdin: { contents, resolveDir },
      jsx: 'automatic',
      loader: { '.woff2': 'empty', '.svg': 'text' },
    });
    const hash = createHash('sha256');
    for (const { text } of outputFiles) hash.update(text);
    hashes.set(file, hash.digest('hex'));
  }
  return Object.fromEntries(Object.entries(pictures).map(([name, file]) => [name, hashes.get(file) ?? '']));
}
