import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const { DISPLAY, WAYLAND_DISPLAY, ELECTRON_OVERRIDE_DIST_PATH } = process.env;

const installed = dirname(createRequire(import.meta.url).resolve('electron/package.json'));
/** The runtime that `npm run desktop` would start. The tests don't download one. */
export const electronFolder = ELECTRON_OVERRIDE_DIST_PATH ?? join(installed, 'dist');
export const electronFile = join(electronFolder, electronName());
export const electronVersion = () => readFileSync(join(electronFolder, 'version'), 'utf8').trim().replace(/^v/, '');

function electronName(): string {
  const pathFile = join(installed, 'path.txt');
  return existsSync(pathFile) ? readFileSync(pathFile, 'utf8') : 'electron';
}

/** As root, Chromium refuses to start with its sandbox. */
export const rootArgs = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

function findProblem(): string | undefined {
  // `npm test` has looked, and built the console for all files.
  if (process.env['CONSOLE_IS_BUILT'] === '1') return undefined;
  if (!existsSync(electronFile)) return 'no Electron runtime is installed (npx install-electron)';
  const { status, stderr } = spawnSync(electronFile, ['--version', ...rootArgs], { encoding: 'utf8', timeout: 10_000 });
  if (status !== 0) return `the Electron runtime doesn't start (${stderr.trim().split('\n', 1)[0]})`;
  if (process.platform !== 'linux' || DISPLAY || WAYLAND_DISPLAY) return undefined;
  return spawnSync('Xvfb', ['-help']).error ? 'there is neither a display nor Xvfb to provide one' : undefined;
}

/** Why the console can't start here; undefined if it can. */
export const whyNoElectron = findProblem();
