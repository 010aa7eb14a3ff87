// Builds what a release consists of into dist, and starts each part: `npm run release -- --dry`. Without --dry, HEAD must have the version's
// tag, and the changelog must have its date. Names of parts select them, as .github/workflows/release.yml does on each system.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, rootPackage, run } from './pack.ts';
import { displayEnvironment, electronFolder, electronVersion, rootArgs } from './support/electron-runtime.ts';
import { startServerProcess, track } from './support/server-process.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { dry: { type: 'boolean', default: false } } });
const { version } = rootPackage;
const dist = join(root, 'dist');
const work = mkdtempSync(join(tmpdir(), 'callkey-release-'));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Thrown with the reason if this machine can't build or start a part. */
class Skipped extends Error {}

function expect(isRight: boolean, message: string): void {
  if (!isRight) throw new Error(message);
}

/** Builds and starts each part. Each returns what was shown. */
const parts: Readonly<Record<string, () => string | Promise<string>>> = {
  version() {
    for (const file of ['package-lock.json', 'core/openapi.json']) {
      const content = JSON.parse(read(file));
      expect((content.info ?? content).version === version, `${file} has another version than package.json.`);
    }
    const [date = ''] = read('CHANGELOG.md').split(`\n## [${version}] - `)[1]?.split('\n') ?? [];
    expect(date !== '', `CHANGELOG.md has no section for ${version}.`);
    if (values.dry) return `${version}, in the changelog as "${date}"`;
    expect(/^\d{4}-\d\d-\d\d$/.test(date), 'CHANGELOG.md must say when this version was released.');
    const tag = execFileSync('git', ['describe', '--exact-match', '--tags'], { cwd: root, encoding: 'utf8' }).trim();
    expect(tag === `v${version}`, `HEAD must have the tag v${version}, and has ${tag}.`);
    // Newer numbering plans have numbers that can't be called with older ones.
    run('npm', ['outdated', 'libphonenumber-js']);
    return `${version}, released on ${date}`;
  },

  audit() {
    const { stdout } = spawnSync('npm', ['audit', '--omit', 'dev', '--json'], { cwd: root, encoding: 'utf8' });
    const { metadata, message = 'no report' } = JSON.parse(stdout || '{}');
    if (!metadata) throw new Skipped(`the registry doesn't answer audits: ${message}`);
    expect(metadata.vulnerabilities.total === 0, 'npm audit reports vulnerabilities in what is published.');
    return 'no known vulnerabilities';
  },

  async packages() {
    run('npm', ['run', '--silent', 'pack:core']);
    const [core = '', cli = ''] = ['core', 'cli'].map((name) => join(dist, `callkey-${name}-${version}.tgz`));
    execFileSync('tar', ['--extract', '--file', core, '--directory', work]);
    const folder = join(work, 'package');
    // The packages that npm would install, from this checkout.
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const env = { ...process.env, DATABASE_URL: `sqlite:${join(work, 'callkey.db')}`, PORT: '0', MANAGEMENT_PORT: '0' };
    const server = await startServerProcess([join(folder, 'bin', 'callkey-core.js')], env, work);
    const pages = await Promise.all([`${server.url}/`, `${server.managementUrl}/readyz`].map(async (url) => (await fetch(url)).status));
    expect(
      pages.every((status) => status === 200),
      `The core answered ${pages}.`,
    );
    expect((await server.stop()) === 0, 'The core didn’t stop with 0.');
    run('npm', ['install', '--global', '--prefix', work, '--omit', 'optional', '--offline', cli]);
    const printed = execFileSync(join(work, 'bin', 'callkey'), ['--version'], { encoding: 'utf8' }).trim();
    expect(printed === version, `callkey --version printed ${printed}.`);
    for (const licenses of globSync('{callkey,callkey-core}/THIRD-PARTY-LICENSES.txt', { cwd: dist }))
      expect(readFileSync(join(dist, licenses), 'utf8').length > 1_000, `${licenses} is too short.`);
    return 'a core started, showed its console, was ready, and stopped; callkey was installed and started; both contain license texts';
  },

  sbom() {
    const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    const { components }: { components: { name: string; licenses?: unknown[] }[] } = JSON.parse(text);
    const unlicensed = components.filter(({ licenses = [] }) => licenses.length === 0).map(({ name }) => name);
    expect(components.length > 0 && unlicensed.length === 0, `These packages name no license: ${unlicensed}`);
    mkdirSync(dist, { recursive: true });
    writeFileSync(join(dist, `callkey-${version}.cdx.json`), text);
    return `${components.length} packages, each with a license`;
  },

  executable() {
    // This script starts it.
    run(process.execPath, [join('scripts', 'pack-executable.ts')]);
    return 'started';
  },

  async desktop() {
    run('npm', ['run', '--silent', 'build:desktop']);
    const hasOwn = process.env['ELECTRON_OVERRIDE_DIST_PATH'] !== undefined;
    const own = hasOwn ? [`-c.electronDist=${electronFolder}`, `-c.electronVersion=${electronVersion()}`] : [];
    // The workflow sets a secret that no one has stored to an empty text, which electron-builder reads as the path of a certificate.
    const env = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
    const pack = (...args: string[]) => {
      const builder = ['electron-builder', '--config', 'desktop/electron-builder.yml', '--publish', 'never', ...args, ...own];
      const { status, stdout, stderr } = spawnSync('npx', ['--no-install', ...builder], {
        cwd: root,
        env,
        encoding: 'utf8',
        shell: process.platform === 'win32',
      });
      const [reason] = /.*(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|[Cc]annot download|status code \d+).*/.exec(stdout + stderr) ?? [];
      if (status !== 0 && reason !== undefined)
        throw new Skipped(`electron-builder couldn't download what it needs for ${args[0]}: ${reason.trim().slice(0, 120)}`);
      expect(status === 0, stdout + stderr);
    };
    pack('--dir');
    if (process.platform !== 'linux') {
      pack();
      return 'packed; only started on Linux';
    }
    const packed = join(dist, 'desktop-packages', 'linux-unpacked');
    await startApp(join(packed, 'callkey-console'));
    try {
      pack('--prepackaged', packed);
    } catch (error) {
      if (error instanceof Skipped) throw new Skipped(`the unpacked app started and stopped, but ${error.message}`);
      throw error;
    }
    const [image = ''] = globSync('*.AppImage', { cwd: join(dist, 'desktop-packages') });
    await startApp(join(dist, 'desktop-packages', image), '--appimage-extract-and-run');
    return `${image} started and stopped`;
  },

  image() {
    if (spawnSync('docker', ['info'], { stdio: 'ignore' }).status !== 0) throw new Skipped("Docker isn't running");
    const tag = `callkey-core:${version}`;
    run('docker', ['build', '--quiet', '--file', 'core/deploy/Dockerfile', '--tag', tag, '.']);
    for (const command of ['/usr/local/bin/callkey-core', '/usr/local/bin/callkey-admin'])
      run('docker', ['run', '--rm', '--entrypoint', command, tag, '--version']);
    return 'built, and its commands started';
  },

  provenance() {
    throw new Skipped("GitHub and npm sign it in the workflow, with the workflow's identity");
  },
};

/** Starts the app with an empty folder, waits until it answers a second instance, and stops it. */
async function startApp(program: string, ...args: string[]): Promise<void> {
  const folder = mkdtempSync(join(work, 'app-'));
  const changes = watch(folder);
  const { ELECTRON_RUN_AS_NODE, ...inherited } = process.env;
  const env = { ...inherited, ...(await displayEnvironment()) };
  const start = () => {
    const child = spawn(program, [...args, ...rootArgs, `--user-data-dir=${folder}`], { env, stdio: 'ignore' });
    return { child, ended: track(child) };
  };
  const first = start();
  const isRunning = async () => {
    for await (const { filename } of changes) if (filename === 'SingletonLock') return 'running';
    return 'ended';
  };
  expect((await Promise.race([isRunning(), first.ended])) === 'running', `${program} ended too early.`);
  expect((await start().ended) === 0, `${program} didn't answer a second instance.`);
  first.child.kill();
  expect((await first.ended) === 0, `${program} didn't stop with 0.`);
}

const lines: string[] = [];
try {
  for (const [name, part] of Object.entries(parts)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    process.stderr.write(`${name}…\n`);
    try {
      lines.push(`ok       ${name}: ${await part()}`);
    } catch (error) {
      const isSkipped = error instanceof Skipped;
      lines.push(`${isSkipped ? 'skipped' : 'FAILED '}  ${name}: ${error instanceof Error ? error.message : String(error)}`);
      // A release must not silently lack something.
      if (!isSkipped || !values.dry) process.exitCode = 1;
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
const artifacts = globSync('{callkey-*.*,callkey-*-*,desktop-packages/*.*}', { cwd: dist }).filter((name) =>
  /\.(?:tgz|json|AppImage|deb|dmg|exe)$|-(?:x64|arm64)$/.test(name),
);
const sums = artifacts.toSorted().map((name) => `${hash('sha256', readFileSync(join(dist, name)))}  ${name}\n`);
process.stdout.write(`\n${lines.join('\n')}\n\n${sums.join('')}`);
