// Builds and starts the console: `npm run desktop`. If the console can't start, this script says why in one sentence.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { electronFile, electronPackage } from './support/electron-runtime.ts';

const root = join(import.meta.dirname, '..');
const { ELECTRON_OVERRIDE_DIST_PATH } = process.env;

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

/** Returns the path of Electron's runtime, and downloads it at the first start. */
function runtime(): string {
  if (existsSync(electronFile())) return electronFile();
  if (ELECTRON_OVERRIDE_DIST_PATH !== undefined)
    fail(
      `${ELECTRON_OVERRIDE_DIST_PATH} contains no Electron runtime. Set ELECTRON_OVERRIDE_DIST_PATH to a folder that does, or unset it.`,
    );
  process.stderr.write('Downloading the Electron runtime (only this time)…\n');
  const { status, stderr } = spawnSync(process.execPath, [join(electronPackage, 'install.js')], { encoding: 'utf8' });
  const [reason = ''] = /^\w*Error: .*/m.exec(stderr) ?? [];
  if (status !== 0)
    fail(
      `Couldn’t download the Electron runtime (${reason}). Check the network, or set ELECTRON_OVERRIDE_DIST_PATH to a folder that contains it.`,
    );
  return electronFile();
}

async function start(electron: string): Promise<never> {
  const child = spawn(electron, [root], { stdio: ['inherit', 'inherit', 'pipe'] });
  process.on('SIGTERM', () => child.kill());
  let isForbidden = false;
  createInterface({ input: child.stderr }).on('line', (line) => {
    // Hides this line and the stack trace after it, because the message below says what to do.
    isForbidden ||= /:FATAL:.*sandbox/i.test(line);
    if (!isForbidden) process.stderr.write(`${line}\n`);
  });
  const [code]: unknown[] = await once(child, 'close');
  if (isForbidden)
    fail(
      'This system doesn’t allow Electron’s sandbox, and the console doesn’t start without it. Allow unprivileged user namespaces: see desktop/README.md.',
    );
  process.exit(typeof code === 'number' ? code : 1);
}

if (process.platform === 'linux' && process.getuid?.() === 0)
  fail('The console doesn’t start as root, because Electron’s sandbox doesn’t work for root. Start it as another user.');
const electron = runtime();
const vite = join(root, 'node_modules/electron-vite/bin/electron-vite.js');
const built = spawnSync(process.execPath, [vite, 'build', '--config', 'desktop/electron.vite.config.ts', '--logLevel', 'warn'], {
  cwd: root,
  stdio: 'inherit',
});
if (built.status !== 0) process.exit(1);
await start(electron);
