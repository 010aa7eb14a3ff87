import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';

const { DISPLAY, WAYLAND_DISPLAY } = process.env;
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
  if (process.platform !== 'linux' || DISPLAY || WAYLAND_DISPLAY) return {};
  display ??= startDisplay();
  return { DISPLAY: await display };
}
