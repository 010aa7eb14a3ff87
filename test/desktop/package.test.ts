import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { FuseState, FuseV1Options, getCurrentFuseWire } from '@electron/fuses';
import { expect } from 'chai';
import { electronFolder, electronVersion, rootArgs } from '../../scripts/support/electron-runtime.ts';
import { freshDirectory } from '../support/databases.ts';
import { consoleEnvironment, describeDesktop, watchOver } from '../support/electron.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

type Entry = { files?: Record<string, Entry> };

/** Returns the files in an asar archive. It starts with three sizes, and the length and text of a JSON index. */
function filesIn(archive: string): string[] {
  const bytes = readFileSync(archive);
  const { files = {} }: Entry = JSON.parse(bytes.toString('utf8', 16, 16 + bytes.readUInt32LE(12)));
  const walk = (entries: Record<string, Entry>, path: string): string[] =>
    Object.entries(entries).flatMap(([name, entry]) => (entry.files ? walk(entry.files, `${path}/${name}`) : `${path}/${name}`));
  return walk(files, '');
}

describeDesktop('the packaged console', () => {
  if (process.platform !== 'linux') {
    it.skip("isn't tested: packages for this system are signed and have a different layout");
    return;
  }
  const folder = freshDirectory();
  const packed = join(folder, 'linux-unpacked');
  const program = join(packed, 'callkey-console');

  before(async () => {
    const builder = join(root, 'node_modules/electron-builder/cli.js');
    const settings = [`-c.directories.output=${folder}`, `-c.electronDist=${electronFolder}`, `-c.electronVersion=${electronVersion()}`];
    const args = ['--config', 'desktop/electron-builder.yml', '--publish', 'never', '--linux', 'dir', ...settings];
    await promisify(execFile)(process.execPath, [builder, ...args], { cwd: root });
  });

  it('contains only the built files', () => {
    const files = filesIn(join(packed, 'resources/app.asar'));
    const others = files.filter((file) => !/^\/(?:dist\/desktop\/(?:main|preload|renderer)\/|package\.json$)/.test(file));
    expect(others).to.deep.equal([]);
    expect(files).to.include.members([
      '/dist/desktop/main/main.js',
      '/dist/desktop/preload/preload.cjs',
      '/dist/desktop/renderer/index.html',
    ]);
    // The window's icon.
    expect(files.filter((file) => /^\/dist\/desktop\/main\/.*\.png$/.test(file))).to.have.length(1);
  });

  it("gives its window the class of its desktop file, so that the system's dock shows one icon", () => {
    const { desktopName } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(desktopName).to.equal(`${basename(program)}.desktop`);
  });

  it('contains every language, because fields for dates follow it, and the Chromium licenses in compressed form', () => {
    expect(readdirSync(join(packed, 'locales'))).to.have.members(readdirSync(join(electronFolder, 'locales')));
    expect(readdirSync(packed).filter((name) => name.startsWith('LICENSE'))).to.deep.equal([
      'LICENSE.electron.txt',
      'LICENSES.chromium.html.gz',
    ]);
    expect(gunzipSync(readFileSync(join(packed, 'LICENSES.chromium.html.gz'))).toString()).to.include('The Chromium Authors');
  });

  it('has Electron’s dangerous fuses turned off', async () => {
    const fuses = await getCurrentFuseWire(program);
    const isOn = (fuse: FuseV1Options) => fuses[fuse] === FuseState.ENABLE;
    expect({
      runAsNode: isOn(FuseV1Options.RunAsNode),
      nodeOptions: isOn(FuseV1Options.EnableNodeOptionsEnvironmentVariable),
      inspect: isOn(FuseV1Options.EnableNodeCliInspectArguments),
      fileProtocol: isOn(FuseV1Options.GrantFileProtocolExtraPrivileges),
      cookieEncryption: isOn(FuseV1Options.EnableCookieEncryption),
      asarIntegrity: isOn(FuseV1Options.EnableEmbeddedAsarIntegrityValidation),
      asarOnly: isOn(FuseV1Options.OnlyLoadAppFromAsar),
    }).to.deep.equal({
      runAsNode: false,
      nodeOptions: false,
      inspect: false,
      fileProtocol: false,
      cookieEncryption: true,
      asarIntegrity: true,
      asarOnly: true,
    });
  });

  async function start(userData: string, args: string[] = []) {
    const env = await consoleEnvironment({ ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '--inspect' });
    const child = spawn(program, [...rootArgs, `--user-data-dir=${userData}`, ...args], {
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return watchOver(child);
  }

  it('starts, and refuses every debugger switch', async () => {
    const userData = freshDirectory();
    const changes = watch(userData);
    const first = await start(userData, ['--remote-debugging-port=0', '--inspect=0']);
    const written: string[] = [];
    first.stderr?.on('data', (chunk) => written.push(String(chunk)));
    for await (const { filename } of changes) if (filename === 'SingletonLock') break;
    // A second instance exits, because the first one responds to it.
    expect(await once(await start(userData), 'exit')).to.deep.equal([0, null]);
    first.kill('SIGTERM');
    expect(await once(first, 'exit')).to.deep.equal([0, null]);
    expect(written.join('')).not.to.match(/listening on/i);
    expect(JSON.parse(readFileSync(join(userData, 'settings.json'), 'utf8')).window).to.include({ width: 1280, height: 800 });
  });
});
