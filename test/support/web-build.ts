import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));

// `npm test` builds it once for all files, because two builds at the same time would overwrite each other.
let built = process.env['WEB_CONSOLE_IS_BUILT'] === '1' ? Promise.resolve() : undefined;

/** Builds the console for the browser once. */
export function buildWebConsole(): Promise<void> {
  built ??= build();
  return built;
}

async function build(): Promise<void> {
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  await promisify(execFile)(process.execPath, [vite, 'build', '--config', 'desktop/web.vite.config.ts', '--logLevel', 'warn'], {
    cwd: root,
  });
}
