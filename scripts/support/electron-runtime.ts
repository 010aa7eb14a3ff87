import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';

const { DISPLAY, WAYLAND_DISPLAY, ELECTRON_OVERRIDE_DIST_PATH } = process.env;

export const electronPackage = dirname(createRequire(import.meta.url).resolve('electron/package.json'));
export const electronFolder = ELECTRON_OVERRIDE_DIST_PATH ?? join(electronPackage, 'dist');
export const electronVersion = () => readFileSync(join(electronFolder, 'version'), 'utf8').trim().replace(/^v/, '');

/** Returns the path of Electron's runtime. It doesn't exist until the package's `install.js` has downloaded it. */
export function electronFile(): string {
  const pathFile = join(electronPackage, 'path.txt');
  return join(electronFolder, existsSync(pathFile) ? readFileSync(pathFile, 'utf8') : 'electron');
}

/** As root, Chromium refuses to start with its sandbox. */
export const rootArgs = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

/** Whether Electron needs an Xvfb to show anything. */
export const lacksDisplay = process.platform === 'linux' && !DISPLAY && !WAYLAND_DISPLAY;

let display: Promise<string> | undefined;

async function startDisplay(): Promise<string> {
  const server = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1600x1200x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  process.once('exit', () => server.kill('SIGKILL'));
  const numbers = server.stdio[3];
  if (!(numbers instanceof Readable)) throw new Error('Xvfb has no pipe to report its display on.');
  const [number] = await once(createInterface({ input: numbers }), 'line');
  numbers.destroy();
  server.unref();
  return `:${number}`;
}

/** Returns the variables with which Electron finds a display: on Linux without one, those of an Xvfb that ends with this process. */
export async function displayEnvironment(): Promise<Record<string, string>> {
  if (!lacksDisplay) return {};
  display ??= startDisplay();
  return { DISPLAY: await display };
}
